// A server of the official SDK that keeps state in memory: `cargo xtask check existing` runs it as it is, and looks whether the state stays.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const notes: string[] = [];
let count = 0;
let greetings = 0;
const pool: { used: number }[] = [];

const server = new McpServer({ name: "notes", version: "1.0.0" });
server.server.oninitialized = () => {
  greetings++;
  pool.push({ used: 0 });
};
const text = (text: string) => ({ content: [{ type: "text" as const, text }] });
const keep = (note: string) => text((notes.push(note), notes.join(", ")));

server.registerTool(
  "add",
  { description: "Adds two numbers.", inputSchema: { a: z.coerce.number(), b: z.coerce.number() } },
  async ({ a, b }) => text(`${a} + ${b} = ${a + b}`),
);
server.registerTool(
  "note",
  { description: "Keeps a note.", inputSchema: { text: z.string() } },
  async ({ text }) => keep(text),
);
server.registerTool("increment", { description: "Counts.", inputSchema: {} }, async () => text(String(++count)));
server.registerTool(
  "pool",
  { description: "Takes a connection from the pool that a greeting opens.", inputSchema: {} },
  async () => text(`${++pool[0].used} of start ${greetings}`),
);
server.registerTool(
  "ask",
  { description: "Asks before it keeps a note.", inputSchema: { text: z.string() } },
  async ({ text: note }) => {
    const requestedSchema = { type: "object" as const, properties: { sure: { type: "boolean" as const } } };
    const { action } = await server.server.elicitInput({ message: "Sure?", requestedSchema });
    return action === "accept" ? keep(note) : text("nothing was kept");
  },
);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
server.registerTool(
  "slow",
  { description: "Counts, slowly.", inputSchema: { ms: z.number() } },
  async ({ ms }) => {
    const before = count;
    await sleep(ms);
    return text(`${before}, ${++count}`);
  },
);
server.registerTool(
  "stall",
  { description: "Blocks, as no server should.", inputSchema: { ms: z.number() } },
  async ({ ms }) => {
    for (const begun = Date.now(); Date.now() < begun + ms; );
    return text(String(++count));
  },
);
server.registerTool("end", { description: "Ends the process.", inputSchema: {} }, async () => process.exit(3));

await server.connect(new StdioServerTransport());
