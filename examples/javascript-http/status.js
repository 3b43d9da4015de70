// One tool that asks another server, with `fetch`. What it may ask is the operator's to say: `http` in its grants.
export const tools = {
  listTools() {
    return [
      {
        name: "status",
        description: "Says how a web page answers: its status, and how long it is.",
        inputSchema: JSON.stringify({
          type: "object",
          properties: { url: { type: "string", description: "The page's URL." } },
          required: ["url"],
        }),
      },
    ];
  },

  async callTool(name, args, _context) {
    if (name !== "status") {
      throw new Error(`unknown tool: ${name}`);
    }
    const response = await fetch(JSON.parse(args).url);
    const text = await response.text();
    return { tag: "text", val: `${response.status}, ${text.length} characters` };
  },
};
