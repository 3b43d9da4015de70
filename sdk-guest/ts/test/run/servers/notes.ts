#!/usr/bin/env node
// A server as authors write it for Node.js and the official SDK. Nothing in it knows of wharf.

import { createHash, randomUUID } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const token = process.env.NOTES_TOKEN;
const server = new McpServer(
  { name: "notes", version: "1.2.3" },
  { instructions: "Search before you create.", capabilities: { logging: {} } },
);
let calls = 0;
const said = (text: string) => ({ content: [{ type: "text" as const, text }] });

server.registerTool(
  "hash",
  {
    description: "Hashes a text.",
    inputSchema: { text: z.string().describe("The text.") },
    outputSchema: { hash: z.string(), calls: z.number(), token: z.string().optional() },
    annotations: { readOnlyHint: true },
  },
  async ({ text }) => {
    calls++;
    const hash = createHash("sha256").update(text).digest("hex");
    return { ...said(hash), structuredContent: { hash, calls, token } };
  },
);

server.registerTool(
  "save",
  { description: "Saves.", inputSchema: { file: z.string(), text: z.string() } },
  async ({ file, text }) => {
    const place = path.join(process.cwd(), file);
    await writeFile(place, `${text} ${randomUUID().length}`);
    return said(await readFile(place, "utf8"));
  },
);

server.registerTool("remove", { description: "Asks." }, async () => {
  const requestedSchema = { type: "object" as const, properties: { sure: { type: "boolean" as const } } };
  return said(JSON.stringify(await server.server.elicitInput({ message: "Sure?", requestedSchema })));
});

server.registerTool("think", { description: "Samples." }, async () => {
  const messages = [{ role: "user" as const, content: { type: "text" as const, text: "hi" } }];
  const { content } = await server.server.createMessage({ messages, maxTokens: 5 });
  return said(JSON.stringify(content));
});

server.registerTool("slow", { description: "Reports progress." }, async ({ _meta, sendNotification }) => {
  const progressToken = _meta?.progressToken;
  for (const progress of [1, 2, 3]) {
    if (progressToken)
      await sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 3 } });
  }
  await server.sendLoggingMessage({ level: "warning", data: "slow" });
  console.log("not JSON-RPC");
  return said("done");
});

server.registerTool("broken", { description: "Fails." }, async () => {
  throw new Error("no such note");
});

server.registerResource("today", "note:///today", { mimeType: "text/plain" }, async ({ href: uri }) => ({
  contents: [{ uri, text: "today" }],
}));
const complete = { day: (typed: string) => ["monday", "tuesday"].filter((day) => day.startsWith(typed)) };
server.registerResource(
  "day",
  new ResourceTemplate("note:///{day}", { list: undefined, complete }),
  {},
  async ({ href: uri }, { day }) => ({
    contents: [{ uri, text: String(day) }],
  }),
);
server.registerPrompt("plan", { argsSchema: { day: z.string() } }, ({ day }) => ({
  messages: [{ role: "user", content: { type: "text", text: `Plan ${day}` } }],
}));

await server.connect(new StdioServerTransport());
