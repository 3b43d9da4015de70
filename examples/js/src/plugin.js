import { plugin, tool } from "wharf-sdk";

const greet = tool("greet", {
  description: "Greets a person.",
  input: {
    type: "object",
    properties: { name: { type: "string", description: "Whom to greet." } },
    required: ["name"],
  },
  run: ({ name }) => `Hello, ${name}!`,
});

export default plugin([greet]);
