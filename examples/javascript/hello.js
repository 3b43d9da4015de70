// One tool. The contract's `list-tools` is `listTools` here, and so on.
export const tools = {
  listTools() {
    return [
      {
        name: "greet",
        description: "Greets a person.",
        inputSchema: JSON.stringify({
          type: "object",
          properties: { name: { type: "string", description: "Whom to greet." } },
          required: ["name"],
        }),
      },
    ];
  },

  callTool(name, args, _context) {
    if (name !== "greet") {
      throw new Error(`unknown tool: ${name}`);
    }
    return { tag: "text", val: `Hello, ${JSON.parse(args).name}!` };
  },
};
