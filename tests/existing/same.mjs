// Compares the values of expressions in a plugin with those in Node.js: one component, one call. A plugin may only differ by an error that says
// what it does not have.
//
//     node same.mjs --wharf BINARY --folder DIR

import { execFileSync, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import codes from "./expressions.mjs";
import { installBuild } from "./install.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const SDK = join(HERE, "../../sdk-guest/ts/bin/wharf-sdk.js");
const SERVER = join(HERE, "smoke/evaluate.mjs");
/** So many may be refused, or the comparison compares too little. */
const MOST_REFUSED = 0.2;

const { values } = parseArgs({ options: { wharf: { type: "string" }, folder: { type: "string" }, verbose: { type: "boolean" } } });
const folder = resolve(values.folder);

/** The values that a server gives. */
function valuesOf(program, args) {
  const child = spawn(program, args, { env: { ...process.env, TZ: "UTC" }, stdio: ["pipe", "pipe", "ignore"] });
  const say = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const clientInfo = { name: "same", version: "1.0.0" };
  say({ id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo } });
  say({ method: "notifications/initialized" });
  say({ id: 2, method: "tools/call", params: { name: "evaluate", arguments: { codes } } });
  return new Promise((done, failed) => {
    child.once("exit", () => failed(new Error(`${program} ended without an answer`)));
    createInterface({ input: child.stdout }).on("line", (line) => {
      const { id, result } = JSON.parse(line);
      if (id !== 2) return;
      child.kill();
      const { text } = result.content[0];
      if (result.isError) failed(new Error(text));
      else done(JSON.parse(text));
    });
  });
}

await installBuild(folder);
const plugin = join(folder, "evaluate.wasm");
execFileSync(process.execPath, [SDK, "build", "--mcp", SERVER, "-o", plugin], { cwd: folder, stdio: "pipe" });
const config = join(folder, "evaluate.toml");
writeFileSync(config, `[plugins.p]\npath = ${JSON.stringify(plugin)}\nprefix = ""\n`);
// It is compiled here, and not while the call waits.
execFileSync(values.wharf, ["check", "-c", config], { stdio: "pipe" });

const [native, given] = [
  await valuesOf(process.execPath, [SERVER]),
  await valuesOf(values.wharf, ["run", "-c", config]),
];
const refused = (one) => / does not (work|exist) /.test(one.says);
const wrong = codes.filter((_, at) => {
  const [one, other] = [native[at], given[at]];
  return !refused(other) && (one.value !== other.value || one.error !== other.error);
});
for (const code of wrong.slice(0, 20)) {
  const at = codes.indexOf(code);
  console.log(`${code}\n  Node.js: ${JSON.stringify(native[at])}\n  plugin:  ${JSON.stringify(given[at])}`);
}
if (values.verbose) for (const one of given) if (refused(one)) console.log(one.says);
const count = given.filter((one, at) => refused(one) && native[at].error === undefined).length;
console.log(`${codes.length} expressions: ${wrong.length} wrong, ${count} refused in a sentence`);
if (wrong.length || count > codes.length * MOST_REFUSED) process.exitCode = 1;
