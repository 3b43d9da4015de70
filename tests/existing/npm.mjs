// Builds servers of npm as plugins, unchanged, and compares them with the same servers in Node.js: lists, and the results of calls.
//
//     npm install && node npm.mjs [--wharf BINARY] [--folder DIR] [--python PYTHON] [--brief] [--lists] [NAME…]
//
// The answers of a server's service are those of npm.toml: a proxy gives them to both (`canned.py`, which needs Python with `cryptography`).
// It prints a table in Markdown. With --brief it takes only servers that have calls. With --built it takes components that an earlier run made. With --lists it compares the lists that the build finds in
// Node.js, makes no components and calls nothing: that takes seconds for each server. The exit code is 1 if a server that has calls differs.

import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual, parseArgs } from "node:util";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { parse } from "smol-toml";

import { started } from "../../sdk-guest/ts/build/mcp/build.js";
import { findEntry } from "../../sdk-guest/ts/build/mcp/entry.js";
import { install, installBuild } from "./install.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = join(HERE, "../..");
const SDK = join(ROOT, "sdk-guest/ts/bin/wharf-sdk.js");
const CALLS = 30;
const START_MS = 60_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    wharf: { type: "string" },
    python: { type: "string", default: "python3" },
    canned: { type: "string", default: join(HERE, "canned.py") },
    folder: { type: "string" },
    brief: { type: "boolean" },
    lists: { type: "boolean" },
    built: { type: "boolean" },
  },
});
const wharf = resolve(values.wharf ?? process.env.WHARF_BIN ?? join(ROOT, "target/release/wharf"));
const work = resolve(values.folder ?? join(ROOT, "target/existing-npm"));

const run = (program, args, options) =>
  new Promise((done, failed) => {
    execFile(program, args, { maxBuffer: 1 << 24, ...options }, (error, stdout, stderr) =>
      error ? failed(Object.assign(error, { stderr })) : done({ stdout, stderr }),
    );
  });

/** Starts the proxy that gives these answers. Returns its address, and the file with its authority. */
async function answering(answers, folder) {
  const file = join(folder, "answers.toml");
  // Strings of JSON are strings of TOML.
  const member = ([key, value]) => `${key} = ${typeof value === "object" ? table(value) : JSON.stringify(value)}`;
  const table = (value) =>
    `{ ${Object.entries(value)
      .map(([key, one]) => `${JSON.stringify(key)} = ${JSON.stringify(one)}`)
      .join(", ")} }`;
  writeFileSync(
    file,
    answers.map((answer) => ["[[answer]]", ...Object.entries(answer).map(member), ""].join("\n")).join("\n"),
  );
  const made = join(folder, "authority");
  mkdirSync(made, { recursive: true });
  const proxy = spawn(values.python, [values.canned, file, "--folder", made, "--log"], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  let said = "";
  proxy.stderr.on("data", (piece) => (said += piece));
  const line = await new Promise((done, failed) => {
    proxy.stdout.once("data", (piece) => done(String(piece)));
    proxy.once("error", failed);
    proxy.once("close", () => failed(new Error(`the proxy for the answers ended: ${said.trim().slice(-300)}`)));
  });
  const { port, ca } = JSON.parse(line);
  return {
    url: `http://127.0.0.1:${port}`,
    ca,
    said: () => said,
    close: async () => proxy.stdin.end(),
  };
}

/** Starts a server and returns a client of it. */
async function connect(command, args, env) {
  const transport = new StdioClientTransport({
    command,
    args,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stderr: "pipe",
  });
  let said = "";
  transport.stderr.on("data", (piece) => (said = (said + piece).slice(-2000)));
  const client = new Client(
    { name: "existing", version: "1.0.0" },
    { capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } } },
  );
  client.setRequestHandler((await import("@modelcontextprotocol/sdk/types.js")).ListRootsRequestSchema, () => ({
    roots: [],
  }));
  try {
    await client.connect(transport, { timeout: START_MS });
  } catch (thrown) {
    await client.close();
    throw new Error(`${thrown.message}; it wrote: ${said.trim().slice(-300)}`);
  }
  return client;
}

/** Returns all lists of a server, page by page. */
async function lists(client) {
  const can = client.getServerCapabilities() ?? {};
  const all = async (ask, member) => {
    const found = [];
    let cursor;
    do {
      const page = await ask(cursor === undefined ? {} : { cursor }).catch((thrown) => {
        if (thrown.code === -32601) return { [member]: [] };
        throw thrown;
      });
      found.push(...page[member]);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return found;
  };
  return {
    tools: can.tools ? await all((page) => client.listTools(page), "tools") : [],
    resources: can.resources ? await all((page) => client.listResources(page), "resources") : [],
    templates: can.resources ? await all((page) => client.listResourceTemplates(page), "resourceTemplates") : [],
    prompts: can.prompts ? await all((page) => client.listPrompts(page), "prompts") : [],
  };
}

/**
 * Drops what says nothing: members without a value, `$schema`, the plugin that wharf names, that a tool does not run as a task, and that a result
 * is not an error.
 */
function plain(value) {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const { _meta: { "dev.wharf/plugin": _, ...meta } = {}, ...rest } = value;
  const members = { ...rest, ...(Object.keys(meta).length && { _meta: meta }) };
  const said = Object.entries(members).filter(
    ([key, one]) =>
      one !== undefined &&
      key !== "$schema" &&
      key !== "execution" &&
      !(key === "description" && one === "") &&
      !(key === "isError" && one === false),
  );
  return Object.fromEntries(said.map(([key, one]) => [key, plain(one)]));
}

/** Returns the first difference between two values, as a path. */
function difference(one, other, path = "") {
  if (isDeepStrictEqual(one, other)) return undefined;
  if (typeof one !== "object" || typeof other !== "object" || !one || !other)
    return `${path || "all"}: ${JSON.stringify(one)?.slice(0, 60)} / ${JSON.stringify(other)?.slice(0, 60)}`;
  for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const found = difference(one[key], other[key], `${path}${path && "."}${one[key]?.name ?? key}`);
    if (found) return found;
  }
  return `${path || "all"}: in another order`;
}

/** Empty annotations say the same as no annotations. */
const tool = ({ annotations = {}, ...rest }) =>
  plain({ ...rest, ...(Object.keys(annotations).length && { annotations }) });

/** A prompt with an empty list of arguments is one without a list. */
const prompt = ({ arguments: args = [], ...rest }) => ({ ...rest, ...(args.length && { arguments: args }) });

function compare(row, theirs, ours) {
  const kinds = ["tools", "resources", "templates", "prompts"];
  const differs = kinds
    .map((kind) => {
      const form = { tools: tool, prompts: prompt }[kind] ?? ((one) => one);
      const [one, other] = [theirs[kind], ours[kind]].map((list) => byName(list.map(form)));
      return [kind, difference(one, other)];
    })
    .filter(([, found]) => found);
  row.lists = differs.length ? "differ" : `${theirs.tools.length} tools`;
  row.same = !differs.length;
  if (differs.length) row.note = `${differs[0][0]}: ${differs[0][1]}`;
}

/** Compares the lists that the build finds with those of the server in Node.js. */
async function onlyLists(row, { name, project, args, env, native }) {
  const entry = findEntry(`npm:${name}`, project);
  const { parts, found } = await started({ entry, project, args, env });
  row.size = `${((parts.head.length + parts.tail.length) / 1e6).toFixed(1)} MB of JavaScript`;
  if (native.failed) throw new Error(`does not start in Node.js without an account: ${native.failed.message}`);
  compare(row, plain(await lists(native)), plain(found.lists));
  return row;
}

const byName = (list) => [...list].sort((one, other) => ((one.name ?? one.uri) < (other.name ?? other.uri) ? -1 : 1));

const after = (ms) => new Promise((done) => setTimeout(done, ms));

async function timed(client, { tool, arguments: args }, pause) {
  const times = [];
  let last;
  for (let count = 0; count < (pause ? 3 : CALLS); count++) {
    if (pause) await after(pause);
    const start = performance.now();
    last = await client.callTool({ name: tool, arguments: args });
    times.push(performance.now() - start);
  }
  times.sort((one, other) => one - other);
  return { last, p50: times[times.length >> 1] };
}

async function server({
  name,
  version,
  args = [],
  env = {},
  calls = [],
  answers = [],
  pause,
  native: own = {},
  folder,
  files = {},
  host,
}) {
  const row = { name: `${name} ${version}`, host, lists: "", calls: "", size: "", ms: "", native: "", note: "" };
  const project = join(work, name.replace(/[@/]/g, "_"));
  const data = join(project, "data");
  const empty = () => {
    rmSync(data, { recursive: true, force: true });
    mkdirSync(data, { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(join(data, file), text);
  };
  empty();
  const filled = (value) => JSON.parse(JSON.stringify(value).replaceAll("FOLDER", data));
  const entry = `npm:${name}@${version}`;
  const clients = [];
  try {
    if (!existsSync(join(project, "node_modules", name))) await install(project, { [name]: version });
    const { file } = findEntry(entry, project);
    const proxy = answers.length ? await answering(answers, project) : undefined;
    if (proxy) clients.push(proxy);
    const proxied = proxy ? { EXISTING_PROXY: proxy.url, NODE_EXTRA_CA_CERTS: proxy.ca } : {};
    const preload = proxy ? ["--import", join(HERE, "proxied.mjs")] : [];
    const native = await connect(process.execPath, [...preload, file, ...filled(args)], {
      ...filled(env),
      ...proxied,
      ...Object.fromEntries(Object.entries(own).map(([name, value]) => [name, value.replace("PROXY", proxy?.url)])),
    }).catch((thrown) => ({ failed: thrown }));
    if (!native.failed) clients.push(native);
    if (values.lists) return await onlyLists(row, { name, project, args: filled(args), env: filled(env), native });
    const output = join(project, "plugin.wasm");
    const began = performance.now();
    const building = ["build", "--mcp", entry, "-o", output, "--", ...filled(args)];
    const made = values.built && existsSync(output);
    const built = made
      ? undefined
      : await run("node", [SDK, ...building], {
          cwd: project,
        }).catch((thrown) => {
          const text = String(thrown.stderr || thrown.message).trim();
          writeFileSync(join(project, "build.log"), text);
          throw new Error(`does not build: ${text.split("\n").at(-1)}`);
        });
    if (built) {
      row.seconds = `${((performance.now() - began) / 1000).toFixed(0)} s`;
      writeFileSync(join(project, "build.log"), built.stderr);
    }
    row.size = `${(statSync(output).size / 1e6).toFixed(0)} MB`;
    if (native.failed) throw new Error(`does not start in Node.js without an account: ${native.failed.message}`);
    const config = join(project, "wharf.toml");
    const http = [...new Set(answers.map(({ url }) => new URL(url.replaceAll("*", "x")).origin))].map(
      (origin) => `{ url = ${JSON.stringify(origin)}, methods = "any" }`,
    );
    const grants = [
      `http = [${http.join(", ")}]`,
      `env = ${JSON.stringify(Object.keys(env))}`,
      ...(folder ? [`dirs = [{ host = ${JSON.stringify(data)}, access = "read-write" }]`] : []),
    ];
    const lines = [
      ...(proxy ? ["[egress]", `proxy = ${JSON.stringify(proxy.url)}`, `ca = [${JSON.stringify(proxy.ca)}]`] : []),
      "[plugins.p]",
      `path = ${JSON.stringify(output)}`,
      'prefix = ""',
      "[plugins.p.config]",
      `args = ${JSON.stringify(filled(args))}`,
      "[plugins.p.grants]",
      ...grants,
    ];
    writeFileSync(config, `${lines.join("\n")}\n`);
    await run(wharf, ["check", "-c", config], { env: { ...process.env, ...filled(env) } }).catch(() => {});
    const plugin = await connect(wharf, ["run", "-c", config], filled(env));
    clients.push(plugin);
    const [theirs, ours] = [plain(await lists(native)), plain(await lists(plugin))];
    compare(row, theirs, ours);
    let same = 0;
    for (const call of calls.map(filled)) {
      const prepared = calls.map(filled).slice(
        0,
        calls.map(filled).findIndex((one) => isDeepStrictEqual(one, call)),
      );
      const results = [];
      for (const client of [native, plugin]) {
        empty();
        // What is in the folder was made by the calls before.
        if (pause) await after(pause);
        if (folder)
          for (const before of prepared) await client.callTool({ name: before.tool, arguments: before.arguments });
        results.push(plain(await client.callTool({ name: call.tool, arguments: call.arguments })));
      }
      // Two refusals that are the same say nothing of the server, unless it is the refusal that is expected.
      const failed = Boolean(results[0].isError) !== Boolean(call.fails);
      const found = failed ? `in Node.js: ${JSON.stringify(results[0]).slice(0, 160)}` : difference(...results);
      if (found) row.note ||= `${call.tool}: ${found}`;
      else same++;
    }
    if (calls.length) {
      row.calls = `${same} of ${calls.length}`;
      row.wrong = same < calls.length || !row.same;
      const call = filled(calls[0]);
      row.native = `${(await timed(native, call, pause)).p50.toFixed(1)} ms`;
      row.ms = `${(await timed(plugin, call, pause)).p50.toFixed(1)} ms`;
    }
  } catch (thrown) {
    if (values.lists) writeFileSync(join(project, "failed.log"), `${thrown.stack}\n${thrown.where ?? ""}`);
    row.note = thrown.message.replaceAll("\n", " ").replaceAll("|", "/").replaceAll(work, "").slice(0, 200);
    row.wrong = calls.length > 0;
  } finally {
    for (const client of clients) await client.close();
  }
  writeFileSync(join(project, "row.json"), JSON.stringify(row));
  return row;
}

// The build's packages are in the folder above those of the servers, once for all.
await installBuild(work);
const { server: all } = parse(readFileSync(join(HERE, "npm.toml"), "utf8"));
const chosen = all.filter(({ name, calls }) =>
  positionals.length ? positionals.includes(name) : !values.brief || calls,
);
console.log("| server | built in | size | lists | calls | a call | in Node.js | |\n|---|---|---|---|---|---|---|---|");
const rows = [];
for (const one of chosen) {
  const row = await server(one);
  rows.push(row);
  const note = [row.note, row.host && `made for the user's machine: ${row.host}`].filter(Boolean).join("; ");
  console.log(
    `| ${row.name} | ${row.seconds ?? ""} | ${row.size} | ${row.lists} | ${row.calls} | ${row.ms} | ${row.native} | ${note} |`,
  );
}
const count = (right) => rows.filter(right).length;
console.log(
  `\n${count(({ size }) => size)} of ${rows.length} build, ${count(({ same }) => same)} have the lists that they have in Node.js, ` +
    `${count(({ same, calls, wrong }) => same && calls && !wrong)} run: their lists and calls are the same.`,
);
if (rows.some(({ wrong }) => wrong)) process.exitCode = 1;
