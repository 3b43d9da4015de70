// A server with one tool that evaluates JavaScript, without any package: what an expression gives in a plugin.

import * as buffer from "node:buffer";
import * as crypto from "node:crypto";

/** What expressions use, and what the build has to see in a source, because expressions come in calls. */
const modules = { buffer, crypto, tags: ["en-GB", "de-DE", "fr-FR", "ja-JP"], form: "NFKC", pattern: "\\p{Lu}\\p{Cf}" };
const options = [fetch, Intl, "timeZone", "currency", "unit", "DisplayNames"];

/** Returns the value as JSON, or the error. */
async function valueOf(code) {
  try {
    return { value: JSON.stringify(await (0, eval)(`(modules) => (${code})`)({ ...modules, options })) };
  } catch (thrown) {
    return { error: thrown?.constructor?.name ?? typeof thrown, says: String(thrown?.message ?? thrown) };
  }
}

const METHODS = {
  initialize: () => ({
    protocolVersion: "2025-06-18",
    capabilities: { tools: {} },
    serverInfo: { name: "evaluate", version: "1.0.0" },
  }),
  "tools/list": () => ({ tools: [{ name: "evaluate", inputSchema: { type: "object" } }] }),
  "tools/call": async ({ arguments: { codes = [] } }) => {
    const all = [];
    for (const code of codes) all.push(await valueOf(code));
    return { content: [{ type: "text", text: JSON.stringify(all) }] };
  },
};

process.stdin.setEncoding("utf8");
let begun = "";
process.stdin.on("data", async (text) => {
  const lines = (begun + text).split("\n");
  begun = lines.pop();
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) continue;
    const made = METHODS[method];
    const answer = made ? { result: await made(params) } : { error: { code: -32601, message: method } };
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
  }
});
