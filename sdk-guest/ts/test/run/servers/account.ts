// A server that starts only with a file of its user.

import { readFileSync } from "node:fs";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";

const { name } = JSON.parse(readFileSync(process.env.ACCOUNT ?? "/account.json", "utf8"));
const server = new McpServer({ name: "account", version: "1.0.0" });

server.registerTool("who", { description: `Says that the account is ${name}'s.` }, async () => ({
  content: [{ type: "text", text: name }],
}));

await server.connect(new StdioServerTransport());
