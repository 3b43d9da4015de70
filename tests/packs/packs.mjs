// What an author's users do: `wharf new`, `wharf build`, `wharf pack`; then each package is installed where nothing is, without a network,
// and called by the official client. The bundle is unpacked and started as a desktop client does, with MCPB's own library.
//
// node packs.mjs --bin WHARF --plugins FOLDER --modules NODE_MODULES
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { bin: { type: "string" }, plugins: { type: "string" }, modules: { type: "string" } } });
const require = createRequire(join(resolve(values.modules), "anything.js"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { getMcpConfigForManifest, unpackExtension } = await import(require.resolve("@anthropic-ai/mcpb"));
const Ajv = require("ajv");

const bin = resolve(values.bin);
const place = mkdtempSync(join(tmpdir(), "wharf-packs-"));
process.on("exit", () => rmSync(place, { recursive: true, force: true }));

// Runs a program, and returns what it printed.
function run(program, args, options = {}) {
  return execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"], ...options });
}

// Runs wharf where it has to fail, and returns what it complained about.
function fails(args) {
  const { status, stderr } = spawnSync(bin, args, { encoding: "utf8" });
  assert.notEqual(status, 0, `wharf ${args.join(" ")} succeeded`);
  return stderr;
}

// An environment with an empty home and nothing else.
function home(name, more = {}) {
  const folder = join(place, name, "home");
  mkdirSync(folder, { recursive: true });
  return { PATH: process.env.PATH, HOME: folder, ...more };
}

// Starts a server as a client does, and lets `use` call its tools by the end of their names.
async function serve(command, args, env, use) {
  const client = new Client({ name: "packs", version: "1" });
  const transport = new StdioClientTransport({ command, args, env, cwd: env.HOME, stderr: "inherit" });
  await client.connect(transport);
  try {
    const { tools } = await client.listTools();
    const call = async (end, given) => {
      const tool = tools.find(({ name }) => name.endsWith(end));
      assert(tool, `no tool ${end} among ${tools.map(({ name }) => name)}`);
      const { content } = await client.callTool({ name: tool.name, arguments: given });
      return { text: content.map(({ text }) => text).join("\n") };
    };
    await use(call);
  } finally {
    await client.close();
  }
}

// Writes the table [package] of a project.
function describe(project, more = "") {
  const file = join(project, "plugin.toml");
  const text = readFileSync(file, "utf8").replace(/\[package\][^[]*/, "");
  writeFileSync(file, `${text}\n[package]\nversion = "1.2.0"\ndescription = "Greets and reads"\nauthor = "The authors"\nlicense = "MIT"\n${more}`);
}

async function checked(step, what) {
  const began = Date.now();
  await what();
  console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(6)} s  ${step}`);
}

// 1. An author's first plugin, which wants nothing.
const greeter = join(place, "greeter");
await checked("wharf new, wharf build", () => {
  run(bin, ["new", "--lang", "rust", greeter]);
  assert.match(fails(["pack", greeter]), /does not exist yet; build the plugin first: wharf build/);
  run(bin, ["build", greeter]);
});
const REGISTRY = 'registry = "io.github.acme/greeter"\nrepository = "https://github.com/acme/greeter"\ndownloads = "https://github.com/acme/greeter/releases/download/v1.2.0"\n';
describe(greeter, `npm = "@acme/greeter"\n${REGISTRY}`);
const out = join(greeter, "dist/packages");
await checked("wharf pack", () => run(bin, ["pack", greeter]));
const made = readdirSync(out);
const file = (end) => join(out, made.find((name) => name.endsWith(end)) ?? assert.fail(`no ${end} among ${made}`));

await checked("the npm package, installed into an empty home without a network", async () => {
  const env = home("npm");
  const folder = join(place, "npm/project");
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), '{ "private": true }');
  run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--loglevel=error", file(".tgz")], { cwd: folder, env });
  await serve(join(folder, "node_modules/.bin/greeter"), [], env, async (call) => {
    assert.equal((await call("greet", { name: "Ada" })).text, "Hello, Ada!");
  });
  await serve("npx", ["--yes", "--offline", "--package", file(".tgz"), "--", "greeter"], env, async (call) => {
    assert.equal((await call("greet", { name: "Ada" })).text, "Hello, Ada!");
  });
});

await checked("the wheel, installed into an empty environment without a network", async () => {
  const env = home("wheel");
  const venv = join(place, "wheel/venv");
  run("python3", ["-m", "venv", venv]);
  run(join(venv, "bin/pip"), ["install", "--quiet", "--disable-pip-version-check", "--no-index", file(".whl")], { env });
  await serve(join(venv, "bin/greeter"), [], env, async (call) => {
    assert.equal((await call("greet", { name: "Ada" })).text, "Hello, Ada!");
  });
});

await checked("server.json, by the schema of the registry", () => {
  const ajv = new Ajv({ strict: false });
  require("ajv-formats")(ajv);
  const schema = JSON.parse(readFileSync(join(import.meta.dirname, "../data/registry/server.schema.json"), "utf8"));
  const server = JSON.parse(readFileSync(join(out, "server.json"), "utf8"));
  assert(ajv.validate(schema, server), ajv.errorsText());
  assert.equal(server.$schema, schema.$id);
  assert.deepEqual(server.packages.map(({ registryType }) => registryType), ["npm", "pypi", "mcpb"]);
  assert.equal(server.packages[2].fileSha256, run("sha256sum", [file(".mcpb")]).slice(0, 64));
});

// 2. A plugin that wants folders, a variable and a URL.
const reader = join(place, "reader");
mkdirSync(join(reader, "dist"), { recursive: true });
cpSync(join(values.plugins, "reach.wasm"), join(reader, "dist/reader.wasm"));
writeFileSync(join(reader, "plugin.toml"), 'name = "reader"\n[build]\ncommand = "true"\nartifact = "dist/reader.wasm"\n');
assert.match(fails(["pack", reader]), /has no table \[package\]/);
describe(reader, 'npm = "Reader"\n');
assert.match(fails(["pack", reader]), /not a name that npm takes/);
describe(reader);
assert.match(spawnSync(bin, ["pack", "--depend", "--to", "npm", reader], { encoding: "utf8" }).stderr, /does not say what it wants/);
writeFileSync(
  join(reader, "wants.toml"),
  'roots = { access = "read-write", why = "Keeps notes in them." }\nenv = ["TZ"]\nhttp = [{ url = "https://api.example/", secret = "token" }]\n' +
    'secrets = [{ name = "token" }]\nsettings = [{ key = "most", type = "number" }]\n',
);
run(bin, ["build", "--embed", join(reader, "dist/reader.wasm"), "--wants", join(reader, "wants.toml")]);
await checked("wharf pack, of a plugin with wants", () => run(bin, ["pack", "--to", "mcpb", reader]));

await checked("the bundle, unpacked and started as a desktop client does", async () => {
  const extensionPath = join(place, "unpacked");
  const mcpbPath = join(reader, "dist/packages", readdirSync(join(reader, "dist/packages")).find((name) => name.endsWith(".mcpb")));
  run("node", [join(values.modules, ".bin/mcpb"), "info", mcpbPath]);
  assert(await unpackExtension({ mcpbPath, outputDir: extensionPath, silent: true }));
  const manifest = JSON.parse(readFileSync(join(extensionPath, "manifest.json"), "utf8"));
  run("node", [join(values.modules, ".bin/mcpb"), "validate", join(extensionPath, "manifest.json")]);
  const allowed = Object.entries(manifest.user_config).filter(([, { type }]) => type === "boolean");
  assert.deepEqual(allowed.map(([, { default: value }]) => value), [false, false, false], "something is allowed by default");
  const env = home("mcpb", { TZ: "Europe/Oslo" });
  const notes = join(env.HOME, "notes");
  mkdirSync(notes);
  writeFileSync(join(notes, "a.txt"), "Ship the crane by Friday.");
  const start = async (userConfig, use) => {
    const config = await getMcpConfigForManifest({ manifest, extensionPath, systemDirs: {}, userConfig, pathSeparator: "/" });
    if (!config) return assert.fail("the client does not start it");
    await serve(config.command, config.args, { ...env, ...config.env }, use);
  };
  // Without a folder, the client does not start it at all.
  assert.equal(await getMcpConfigForManifest({ manifest, extensionPath, systemDirs: {}, userConfig: {}, pathSeparator: "/" }), undefined);
  const folders = [notes];
  await start({ folders }, async (call) => {
    assert.match((await call("read", { path: join(notes, "a.txt") })).text, /Ship the crane/);
    assert.match((await call("write", { path: join(notes, "b.txt"), text: "x" })).text, /^error/, "it may write without an answer");
  });
  await start({ folders, reader_allow_write: true }, async (call) => {
    assert.doesNotMatch((await call("write", { path: join(notes, "b.txt"), text: "x" })).text, /^error/);
  });
  assert.equal(readFileSync(join(notes, "b.txt"), "utf8"), "x");
});
