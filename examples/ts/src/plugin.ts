import { toStandardJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import { plugin, tool } from "wharf-sdk";

const Greet = v.object({ name: v.pipe(v.string(), v.description("Whom to greet.")) });

const greet = tool("greet", {
  description: "Greets a person.",
  input: toStandardJsonSchema(Greet),
  run: ({ name }) => `Hello, ${name}!`,
});

export default plugin([greet]);
