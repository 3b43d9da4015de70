// A server of the official SDK: `cargo xtask check existing` runs it as it is.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "notes", version: "1.0.0" });

server.registerTool(
  "add",
  { description: "Adds two numbers.", inputSchema: { a: z.coerce.number(), b: z.coerce.number() } },
  async ({ a, b }) => ({ content: [{ type: "text", text: `${a} + ${b} = ${a + b}` }] }),
);

await server.connect(new StdioServerTransport());
