// A server that was written for Node.js, built as a plugin and served by wharf, next to the same server in Node.js: an official client gets the
// same from both. `WHARF_BIN` is the wharf binary; without it, that of `cargo xtask build`.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { build } from "esbuild";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const SDK = join(HERE, "../..");
const wharf = process.env.WHARF_BIN ?? join(SDK, "../../target/release/wharf");
const folder = mkdtempSync(join(SDK, "test/tmp-run-"));
const data = join(folder, "data");
const env = { PATH: process.env.PATH, HOME: process.env.HOME, NOTES_TOKEN: "t0ken" };
let [native, plugin] = [];
const logged = [];

async function connect(command, args) {
  const client = new Client({ name: "test", version: "1.0.0" }, { capabilities: { elicitation: {}, sampling: {} } });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { sure: true } }));
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    model: "m",
    role: "assistant",
    content: { type: "text", text: "yes" },
  }));
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logged.push(params.data));
  await client.connect(new StdioClientTransport({ command, args, env, cwd: data, stderr: "ignore" }));
  return client;
}

before(async () => {
  mkdirSync(data);
  const source = join(HERE, "servers/notes.ts");
  await build({
    entryPoints: [source],
    outfile: join(folder, "notes.mjs"),
    format: "esm",
    platform: "node",
    packages: "external",
  });
  const output = join(folder, "plugin.wasm");
  execFileSync(process.execPath, [join(SDK, "bin/wharf-sdk.js"), "build", "--mcp", source, "-o", output], {
    cwd: SDK,
    stdio: "pipe",
  });
  const grants = `env = ["NOTES_TOKEN"]\nask = ["elicitation", "sampling"]\ndirs = [{ host = ${JSON.stringify(data)}, access = "read-write" }]`;
  const config = join(folder, "wharf.toml");
  writeFileSync(config, `[plugins.p]\npath = ${JSON.stringify(output)}\nprefix = ""\n[plugins.p.grants]\n${grants}\n`);
  // wharf compiles the plugin here, and not while the client waits for its first answer.
  execFileSync(wharf, ["check", "-c", config], { env, stdio: "pipe" });
  native = await connect(process.execPath, [join(folder, "notes.mjs")]);
  plugin = await connect(wharf, ["run", "-c", config]);
});

after(async () => {
  await native?.close();
  await plugin?.close();
  rmSync(folder, { recursive: true });
});

/** Asks both servers the same, and returns the answer if it is the same. */
async function both(ask) {
  const [one, other] = [await ask(native), await ask(plugin)];
  assert.deepEqual(other, one);
  return one;
}

const call = (name, args = {}) => both((client) => client.callTool({ name, arguments: args }));

test("lists", async () => {
  const plain = ({ execution: _e, _meta: _m, ...tool }) => tool;
  await both(async (client) => (await client.listTools()).tools.map(plain));
  await both(async (client) => (await client.listResources()).resources.map(plain));
  await both(async (client) => (await client.listResourceTemplates()).resourceTemplates.map(plain));
  await both(async (client) => (await client.listPrompts()).prompts.map(plain));
});

test("instructions", () => {
  assert.equal(native.getInstructions(), "Search before you create.");
  assert.ok(readFileSync(join(folder, "plugin.wasm")).includes("wharf:instructionsSearch before you create."));
});

test("a call, with a variable that the operator grants", async () => {
  const { structuredContent } = await call("hash", { text: "abc" });
  assert.deepEqual([structuredContent.calls, structuredContent.token], [1, "t0ken"]);
});

test("a call finds what the one before left in memory", async () => {
  const { structuredContent } = await call("hash", { text: "abc" });
  assert.equal(structuredContent.calls, 2);
});

test("files in a folder that the operator grants", () => call("save", { file: "a.txt", text: "x" }));
test("an error", () => call("broken"));
test("elicitation", () => call("remove"));
test("sampling", () => call("think"));

test("progress, log records, and what is written to stdout", async () => {
  const seen = [];
  await plugin.callTool({ name: "slow", arguments: {} }, undefined, {
    onprogress: ({ progress }) => seen.push(progress),
  });
  assert.deepEqual(seen, [1, 2, 3]);
  assert.ok(logged.includes("slow"));
  assert.ok(logged.includes("not JSON-RPC"));
});

test("resources, prompts and completions", async () => {
  await both((client) => client.readResource({ uri: "note:///today" }));
  await both((client) => client.readResource({ uri: "note:///friday" }));
  await both((client) => client.getPrompt({ name: "plan", arguments: { day: "monday" } }));
  const ref = { type: "ref/resource", uri: "note:///{day}" };
  await both(
    async (client) => (await client.complete({ ref, argument: { name: "day", value: "m" } })).completion.values,
  );
});

test("a build for development runs the server's code as it is in a folder", async () => {
  const notes = readFileSync(join(HERE, "servers/notes.ts"), "utf8");
  const source = join(folder, "developed.ts");
  const [component, live] = [join(folder, "live/plugin.wasm"), join(folder, "live/source")];
  const config = join(folder, "live.toml");
  const dirs = `dirs = [{ host = ${JSON.stringify(live)}, guest = "/.wharf-live", access = "read" }]`;
  writeFileSync(config, `[plugins.p]\npath = ${JSON.stringify(component)}\nprefix = ""\ngrants = { ${dirs} }\n`);
  const served = async (word, last = "") => {
    writeFileSync(source, `${notes.replace("Hashes a text.", `Hashes ${word}.`)}\n${last}`);
    const build = ["build", "--mcp", source, "-o", component, "--live", live];
    execFileSync(process.execPath, [join(SDK, "bin/wharf-sdk.js"), ...build], { cwd: SDK, stdio: "pipe" });
    const client = await connect(wharf, ["run", "-c", config]);
    const { tools } = await client.listTools();
    assert.equal(tools[0].description, `Hashes ${word}.`);
    const { structuredContent } = await client.callTool({ name: "hash", arguments: { text: "abc" } });
    assert.equal(structuredContent.calls, 1);
    await client.close();
    return statSync(component).mtimeMs;
  };
  const first = await served("one");
  assert.equal(await served("two"), first, "the component is the same");
  const more = 'import { gzipSync } from "node:zlib";\ngzipSync("x");\n';
  assert.notEqual(await served("three", more), first, "the component has another package");
});

test("a server that needs a file before it answers lists its tools when it is loaded", async () => {
  const source = join(HERE, "servers/account.ts");
  const output = join(folder, "account.wasm");
  execFileSync(process.execPath, [join(SDK, "bin/wharf-sdk.js"), "build", "--mcp", source, "-o", output], {
    cwd: SDK,
    stdio: "pipe",
  });
  const config = join(folder, "account.toml");
  const plugin = `[plugins.p]\npath = ${JSON.stringify(output)}\nprefix = ""\n`;
  writeFileSync(config, plugin);
  assert.throws(() => execFileSync(wharf, ["check", "-c", config], { env, stdio: "pipe", encoding: "utf8" }), {
    stdout: /ENOENT.*account\.json/,
  });
  writeFileSync(join(data, "account.json"), '{"name":"ann"}');
  const grants = `env = ["ACCOUNT"]\ndirs = [{ host = ${JSON.stringify(data)}, access = "read" }]`;
  writeFileSync(config, `${plugin}[plugins.p.grants]\n${grants}\n`);
  const given = { ...env, ACCOUNT: join(data, "account.json") };
  const transport = { command: wharf, args: ["run", "-c", config], env: given, stderr: "ignore" };
  const client = new Client({ name: "test", version: "1.0.0" });
  await client.connect(new StdioClientTransport(transport));
  const { tools } = await client.listTools();
  assert.deepEqual([tools[0].name, tools[0].description], ["who", "Says that the account is ann's."]);
  const { content } = await client.callTool({ name: "who", arguments: {} });
  assert.deepEqual(content, [{ type: "text", text: "ann" }]);
  await client.close();
});
