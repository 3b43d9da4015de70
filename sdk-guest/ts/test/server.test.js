// Servers that were written for Node.js: what the build finds in them, and what they do on the modules that replace those of Node.js. The
// bundle is run in Node.js; `test/run` calls the same servers as plugins.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { bundle } from "../build/mcp/bundle.js";
import { assembled, probed, started } from "../build/mcp/build.js";
import { findEntry } from "../build/mcp/entry.js";
import { probe } from "../build/mcp/probe.js";
import { nodeFile } from "../build/mcp/resolve.js";
import { wantsOf } from "../build/mcp/wants.js";
import { warningsOf } from "../build/mcp/warnings.js";

const projects = mkdtempSync(join(fileURLToPath(new URL(".", import.meta.url)), "tmp-server-"));
after(() => rmSync(projects, { recursive: true }));
let made = 0;

function project(files) {
  const folder = join(projects, `${++made}`);
  for (const [name, text] of Object.entries({ "package.json": '{ "type": "module" }', ...files })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

const HEAD = `#!/usr/bin/env node
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";
const server = new McpServer({ name: "mine", version: "1.0.0" }, { instructions: "Be kind." });
`;
const TAIL = "\nawait server.connect(new StdioServerTransport());\n";
const tool = (body, more = "{}") =>
  `server.registerTool("go", { description: "Goes.", ...${more} }, async (args) => ${body});`;

async function parts(source, files = {}, name = "server.ts") {
  const folder = project({ [name]: source, ...files });
  const entry = findEntry(name, folder);
  return { entry, project: folder, ...(await bundle({ entry, project: folder })) };
}

/** Builds a server as far as the probe, and returns what the probe found. */
async function found(source, files, name) {
  const all = await parts(source, files, name);
  return (await probed(all, { project: all.project, args: [], entry: all.entry })).found;
}

/** Runs `work` in the server's place and returns the text that it sends as its only tool's description. */
async function told(expression, imports = "", files) {
  const source = `${imports}\n${HEAD}server.registerTool("go", { description: String(${expression}) }, async () => ({ content: [] }));${TAIL}`;
  const { lists } = await found(source.replace("#!/usr/bin/env node\n", ""), files);
  return lists.tools[0].description;
}

test("lists, instructions and annotations are those of the server", async () => {
  const source = `${HEAD}${tool("({ content: [] })", '{ title: "Go", inputSchema: { n: z.number().int().describe("How many.") }, annotations: { readOnlyHint: true } }')}
    server.registerResource("today", "note:///today", { mimeType: "text/plain" }, async (uri) => ({ contents: [{ uri: uri.href, text: "x" }] }));
    server.registerResource("day", new ResourceTemplate("note:///{day}", { list: undefined }), {}, async (uri) => ({ contents: [] }));
    server.registerPrompt("plan", { argsSchema: { day: z.string() } }, () => ({ messages: [] }));${TAIL}`;
  const { about, lists, twice, used } = await found(source);
  assert.equal(about.instructions, "Be kind.");
  assert.equal(lists.tools[0].inputSchema.properties.n.description, "How many.");
  assert.deepEqual(lists.tools[0].annotations, { readOnlyHint: true });
  assert.deepEqual(
    [lists.resources[0].uri, lists.templates[0].uriTemplate, lists.prompts[0].arguments[0].name],
    ["note:///today", "note:///{day}", "day"],
  );
  assert.equal(twice, true);
  assert.deepEqual(used, []);
});

test("a server of SDK 2", async () => {
  const source = `import { McpServer } from "@modelcontextprotocol/server";
    import { serveStdio } from "@modelcontextprotocol/server/stdio";
    import { z } from "zod";
    serveStdio(() => {
      const server = new McpServer({ name: "two", version: "2.0.0" });
      server.registerTool("add", { description: "Adds.", inputSchema: z.object({ a: z.number() }) }, async () => ({ content: [] }));
      return server;
    });`;
  const { about, lists } = await found(source);
  assert.equal(about.serverInfo.name, "two");
  assert.deepEqual(lists.tools[0].inputSchema.required, ["a"]);
});

test("a CommonJS server, and one with zod 3", async () => {
  const source = `const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
    const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
    const { z } = require("zod/v3");
    const server = new McpServer({ name: "old", version: "1.0.0" });
    server.tool("go", { n: z.number() }, async () => ({ content: [] }));
    server.connect(new StdioServerTransport());`;
  const { lists } = await found(source, { "package.json": "{}" }, "server.cjs");
  assert.equal(lists.tools[0].inputSchema.properties.n.type, "number");
});

test("a server that speaks JSON-RPC on stdin and stdout itself", async () => {
  const source = `
    const answers = { initialize: { capabilities: { tools: {} }, protocolVersion: "2025-06-18", serverInfo: { name: "bare", version: "0" } }, "tools/list": { tools: [{ name: "a", inputSchema: { type: "object" } }] } };
    let text = "";
    console.log("not JSON-RPC");
    process.stdin.setEncoding("utf8");
    process.stdin.on("data", (piece) => {
      text += piece;
      for (let end = text.indexOf("\\n"); end >= 0; end = text.indexOf("\\n")) {
        const { id, method } = JSON.parse(text.slice(0, end));
        text = text.slice(end + 1);
        if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method] }) + "\\n");
      }
    });`;
  const { about, lists } = await found(source, {}, "server.mjs");
  assert.equal(about.serverInfo.name, "bare");
  assert.equal(lists.tools[0].name, "a");
});

test("a server that refuses to start without a variable gets an example of it", async () => {
  const source = `${HEAD}if (!process.env.NOTES_TOKEN) { console.error("NOTES_TOKEN is missing"); process.exit(1); }${tool("({ content: [] })")}${TAIL}`;
  const { lists, used } = await found(source);
  assert.equal(lists.tools.length, 1);
  assert.ok(used.includes("env NOTES_TOKEN"));
});

test("of alternatives that a server asks for, one gets an example, and what it complains of gets none", async () => {
  const source = `${HEAD}
    const { A_KEY, A_KEY_FILE, A_FORMAT, A_ON, A_OFF } = process.env;
    const end = (text) => { console.error(text); process.exit(1); };
    if (A_FORMAT && A_FORMAT !== "json") end("Invalid A_FORMAT value");
    if (A_ON && A_OFF) end("on and off cannot be used together");
    if (A_KEY_FILE) end("the file of the key is not there");
    if (!A_KEY) end("a key is required, by A_KEY_FILE or A_KEY");
    ${tool("({ content: [] })")}${TAIL}`;
  const { lists } = await found(source);
  assert.equal(lists.tools.length, 1);
});

test("a server that ends itself for another reason is a problem with its words", async () => {
  const source = `${HEAD}console.error("no licence"); process.exit(3);`;
  await assert.rejects(found(source), {
    message: /^server.ts: the server ended itself with exit code 3; it wrote: no licence/,
  });
});

test("a server that fetches or reads a file before it answers starts when wharf loads it", async () => {
  for (const [start, words] of [
    [
      'server.registerTool("go", { description: await (await fetch("https://a.example/")).text() }, async () => ({ content: [] }));',
      /nothing can be fetched/,
    ],
    ['import { readFileSync } from "node:fs";\nconst account = readFileSync("/data/account.json", "utf8");', /ENOENT/],
    ['import { existsSync } from "node:fs";\nif (!existsSync("/data/account.json")) process.exit(1);', /exit code 1/],
  ]) {
    const { lists, later, used } = await found(`${HEAD}${start}${TAIL}`);
    assert.equal(lists, undefined);
    assert.match(later, words);
    assert.ok(used.includes("fetch") || used.includes("files"), String(used));
  }
});

test("a server that does not start with the parts of packages for browsers, and fetches before, gets those for Node.js", async () => {
  const package_ = { name: "parted", version: "1.0.0", type: "module", main: "node.js", browser: "browser.js" };
  const asks = "await fetch('https://parted.example').catch(() => {});";
  const folder = project({
    "server.ts": `import { go } from "parted";\n${HEAD.replace("#!/usr/bin/env node\n", "")}await go();\n${tool("({ content: [] })")}${TAIL}`,
    "node_modules/parted/package.json": JSON.stringify(package_),
    "node_modules/parted/browser.js": `export const go = async () => { ${asks} throw new Error("not in a browser"); };`,
    "node_modules/parted/node.js": "export const go = async () => {};",
  });
  const { found } = await started({ entry: findEntry("server.ts", folder), project: folder, args: [] });
  assert.deepEqual(
    found.lists?.tools.map(({ name }) => name),
    ["go"],
  );
});

test("a mistake at the start is a problem, whatever the server fetched or read before", async () => {
  const source = `${HEAD}import { existsSync } from "node:fs";\nexistsSync("/data/account.json");\nserver.go();${TAIL}`;
  await assert.rejects(found(source), { message: /server\.go is not a function/ });
});

test("HTTP next to stdio keeps no server from building", async () => {
  const source = `import express from "express";\nimport cors from "cors";\nimport http from "node:http";\n${HEAD.replace(/^#!.*\n/, "")}
    const app = express(); app.use(cors()); app.get("/", (req, res) => res.send("x"));
    if (process.argv.includes("--http")) http.createServer(app).listen(80);${tool("({ content: [] })")}${TAIL}`;
  assert.equal((await found(source)).lists.tools.length, 1);
});

const SENTENCES = [
  ["child_process", "spawn", /child_process.spawn does not work here \(\d+\/server.ts:6\): a plugin cannot start programs/],
  ["net", "connect", /net.connect does not work here \(\d+\/server.ts:6\): a plugin has no sockets/],
  ["http", "createServer", /http.createServer does not work here: a plugin has no sockets: wharf serves HTTP/],
];
for (const [module, name, expected] of SENTENCES) {
  test(`${module}.${name} says why it does not work`, async () => {
    assert.match(
      await told(
        `(() => { try { ${name}("x"); } catch (thrown) { return thrown.message; } })()`,
        `import { ${name} } from "node:${module}";`,
      ),
      expected,
    );
  });
}

const NODE = [
  [
    "crypto",
    'import { createHash, createHmac } from "node:crypto";',
    'createHash("sha256").update("abc").digest("hex").slice(0, 8) + createHmac("sha1", "k").update("x").digest("base64").length',
    "ba7816bf28",
  ],
  [
    "Buffer",
    "",
    'Buffer.from("aGk=", "base64").toString() + Buffer.concat([Buffer.from("a"), Buffer.alloc(1)]).length',
    "hi2",
  ],
  [
    "path and url",
    'import path from "path"; import { fileURLToPath } from "url";',
    "path.join(path.dirname(fileURLToPath(import.meta.url)), '..', 'x.txt')",
    "/x.txt",
  ],
  [
    "the package's own files",
    'import { readFileSync } from "fs"; import { createRequire } from "module";',
    'readFileSync(new URL("./note.txt", import.meta.url), "utf8") + createRequire(import.meta.url)("./package.json").type',
    "hellomodule",
    { "note.txt": "hello" },
  ],
  [
    "files that are not there",
    'import { existsSync } from "node:fs"; import { readFile } from "node:fs/promises";',
    'existsSync("/etc/passwd") + (await readFile("/etc/passwd").catch(({ code }) => code))',
    "falseENOENT",
  ],
  [
    "events and util",
    'import { EventEmitter, once } from "events"; import util from "util";',
    '(() => { const e = new EventEmitter(); let n = 0; e.on("x", (m) => (n += m)); e.emit("x", 2); return n + util.format("%s-%d", "a", 1) + typeof util.promisify(setTimeout); })()',
    "2a-1function",
  ],
  [
    "timers",
    "",
    "typeof setTimeout(() => {}, 1).unref + typeof setImmediate + typeof process.nextTick",
    "functionfunctionfunction",
  ],
  [
    "async_hooks",
    'import { AsyncLocalStorage } from "async_hooks";',
    "(() => { const s = new AsyncLocalStorage(); return s.run(7, () => s.getStore()) + String(s.getStore()); })()",
    "7undefined",
  ],
  [
    "process",
    "import process from 'node:process';",
    "process.argv.length + process.platform + typeof process.hrtime.bigint()",
    "2linuxbigint",
  ],
];
for (const [what, imports, expression, expected, files] of NODE) {
  test(`modules of Node.js: ${what}`, async () => assert.equal(await told(expression, imports, files), expected));
}

test("wants are the hosts, variables, folders and questions that the source names", async () => {
  const source = `import { writeFile } from "node:fs/promises";\n${HEAD.replace(/^#!.*\n/, "")}
    const BASE = "https://api.weather.gov";
    const { WEATHER_KEY } = process.env;
    ${tool(
      `{
      await fetch(\`\${BASE}/points\`, { method: "POST", headers: { "x-key": WEATHER_KEY, debug: process.env.DEBUG ?? "" } });
      await writeFile("a", "See https://docs.example.org for more");
      return server.server.elicitInput({ message: "Sure?", requestedSchema: { type: "object", properties: {} } });
    }`,
      '{ title: "https://www.w3.org/ns" }',
    )}${TAIL}`;
  const all = await parts(source);
  const { found } = await probed(all, { project: all.project, args: [], entry: all.entry });
  const { json } = await wantsOf({ ...all, found });
  assert.deepEqual(json, {
    http: [{ url: "https://api.weather.gov/", methods: ["GET", "HEAD", "POST"] }],
    env: ["WEATHER_KEY"],
    roots: "read-write",
    ask: ["elicitation"],
  });
  const [warning] = await warningsOf(all);
  assert.match(
    warning,
    /^server.ts: `elicitInput` asks after `fetch`\. If the instance is gone when the client has answered, the tool runs again/,
  );
});

test("what a plugin cannot do is told", async () => {
  const source = `${HEAD}import { spawn } from "node:child_process"; ${tool("spawn('ls')")}${TAIL}`;
  const warnings = await warningsOf(await parts(source));
  assert.deepEqual(warnings, [
    "the server imports `child_process`, and a plugin cannot start programs: what uses it fails",
  ]);
});

test("the probe cannot start programs, and sees none of this process's variables", async () => {
  const all = await parts(`${HEAD}${tool("({ content: [] })")}${TAIL}`);
  const code = await assembled(all, {
    given: { env: {}, args: [] },
    project: all.project,
    last: "export { __wharfMain as main };",
    regexps: false,
  });
  const spying = `import { execSync as __spy } from "node:child_process"; let __spied; try { __spy("true"); } catch ({ code }) { __spied = code; }\n`;
  const { ended } = await probe({
    code: `${spying}${code}\nif (__spied) throw new Error(__spied);`,
    project: all.project,
  });
  assert.equal(ended, "ERR_ACCESS_DENIED");
});

const json = (value) => JSON.stringify(value);

test("a package has the JSON files that its modules name", async () => {
  const files = {
    "node_modules/aged/package.json": json({ name: "aged", version: "4.5.6", main: "lib/index.js" }),
    "node_modules/aged/lib/index.js":
      'const { readFileSync } = require("fs"); const { join } = require("path");\n' +
      'exports.version = JSON.parse(readFileSync(join(__dirname, "..", "package.json"), "utf8")).version;',
  };
  assert.equal(await told("version", 'import { version } from "aged";', files), "4.5.6");
});

test("a package whose `exports` name a part for Node.js gives that part, unless there is one for browsers", async () => {
  const files = {
    "node_modules/split/package.json": json({
      type: "module",
      exports: { node: "./node.js", default: "./default.js" },
    }),
    "node_modules/split/node.js": 'export const kind = "node"; export const more = "there";',
    "node_modules/split/default.js": 'export const kind = "default";',
    "node_modules/asks/package.json": json({ type: "module", exports: "./index.js" }),
    "node_modules/asks/index.js": 'export { more } from "split";',
  };
  assert.equal(await told("more", 'import { more } from "asks";', files), "there");
});

test("a package that only brings `fetch` has what goes with it, and says what it has not", async () => {
  const files = {
    "node_modules/asks/package.json": json({ main: "./index.js" }),
    "node_modules/asks/index.js": `
      const fetch = require("node-fetch");
      module.exports = typeof fetch + typeof fetch.default + fetch.isRedirect(302);`,
  };
  const imports = `import asked from "asks"; import fetch, { AbortError, FetchError, fileFrom } from "node-fetch"; import { request } from "undici";
    const says = (go) => { try { go(); } catch (thrown) { return thrown.message; } };`;
  const value = "[asked, typeof fetch, new AbortError() instanceof Error, new FetchError('x').name, says(request), says(fileFrom)].join()";
  const lacks = (name) => `${name} does not work here: of this package, a plugin has \`fetch\` and its classes`;
  assert.equal(
    await told(value, imports, files),
    `functionfunctiontrue,function,true,FetchError,${lacks("undici.request")},${lacks("node-fetch.fileFrom")}`,
  );
});

test("the conditions of `exports`", () => {
  const exports = {
    ".": { import: { node: "./n.js", browser: "./b.js" } },
    "./bundled": { module: "./m.js", node: "./n.js" },
    "./x/*": { node: "./x/*.js", default: "./d.js" },
  };
  const folder = project({
    "node_modules/both/package.json": json({ exports }),
    "node_modules/both/n.js": "",
    "node_modules/both/x/a.js": "",
  });
  const file = (name, given) => nodeFile(name, folder, "import-statement", given)?.slice(folder.length);
  assert.equal(file("both", { failed: false, preferred: false }), undefined);
  assert.equal(file("both", { failed: false, preferred: true }), "/node_modules/both/n.js");
  assert.equal(file("both/x/a", { failed: false, preferred: false }), "/node_modules/both/x/a.js");
  assert.equal(file("both/bundled", { failed: false, preferred: true }), undefined, "a bundler has one of its own");
  assert.equal(file("both/y", { failed: true, preferred: true }), undefined);
});

test("a package whose main module is compiled, and one that asks whether it is the program", async () => {
  const files = {
    "node_modules/fast/package.json": json({ name: "fast", main: "fast.node" }),
    "node_modules/fast/fast.node": "",
  };
  assert.equal(await told("typeof fast.run", 'import fast from "fast";', files), "function");
  const source = `const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
    const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
    if (require.main === module) {
      const server = new McpServer({ name: "mine", version: "1.0.0" });
      server.registerTool("go", { description: "Goes." }, async () => ({ content: [] }));
      server.connect(new StdioServerTransport());
    }`;
  assert.equal((await found(source, {}, "server.cjs")).lists.tools[0].name, "go");
});

test("a request of `node:https` is a `fetch`", async () => {
  const source = `import https from "node:https";
    const asked = [];
    globalThis.fetch = async (url, { method, headers, body }) => {
      asked.push(method, url, headers.get("x-key"), headers.get("host"), String(body));
      return new Response("round", { status: 201, headers: { "x-shape": "wheel" } });
    };
    const told = await new Promise((done, failed) => {
      const request = https.request(
        { hostname: "api.example.com", port: 8443, path: "/things?a=1", method: "POST", headers: { "X-Key": "k", Host: "x" } },
        (response) => {
          let text = response.statusCode + response.headers["x-shape"];
          response.on("data", (piece) => (text += piece)).on("end", () => done(text));
        },
      );
      request.on("error", failed);
      request.write("one ");
      request.end("two");
    });
    ${HEAD.replace(/^#!.*\n/, "")}
    server.registerTool("go", { description: [told, ...asked].join("|") }, async () => ({ content: [] }));${TAIL}`;
  assert.equal(
    (await found(source)).lists.tools[0].description,
    "201wheelround|POST|https://api.example.com:8443/things?a=1|k||one two",
  );
});

test("who called, as V8 tells it", async () => {
  const ask = `(() => { const before = Error.prepareStackTrace; Error.prepareStackTrace = (_, sites) => sites; const it = {};
    Error.captureStackTrace(it); Error.prepareStackTrace = before; return [typeof it.stack[0].getFileName(), it.stack[0].getLineNumber() > 0]; })()`;
  assert.equal(await told(ask), "string,true");
});

test("a start that waits for a timer", async () => {
  const wait = "export const waited = await new Promise((done) => setTimeout(() => done('waited'), 5));";
  const source = `import { waited } from "./wait.js";\n${HEAD.replace("#!/usr/bin/env node\n", "")}
    server.registerTool("go", { description: waited }, async () => ({ content: [] }));${TAIL}`;
  const { lists, used } = await found(source, { "wait.js": wait });
  assert.equal(lists.tools[0].description, "waited");
  assert.deepEqual(used, ["time"]);
});

test("a part of Node.js that the Node.js of the build lacks can be imported, and says why it does not work", async () => {
  const imports = 'import { Robot } from "node:robots"; import * as all from "node:robots";';
  assert.match(await told("(() => { try { new Robot(); } catch (thrown) { return thrown.message; } })()", imports), /^robots.Robot does not work/);
  assert.match(await told("(() => { try { all.go(); } catch (thrown) { return thrown.message; } })()", imports), /^robots.go does not work/);
  assert.match(await told('await import("bun:sqlite").catch((thrown) => thrown.message)'), /Cannot find module 'bun:sqlite'/);
});

test("a request comes after what the server does when it is initialized", async () => {
  const source = `${HEAD}let roots = 0;
    server.server.oninitialized = async () => {
      const answer = await server.server.listRoots();
      for (let turn = 0; turn < 50; turn++) await undefined;
      roots = answer.roots.length + 1;
      server.registerTool(\`roots-\${roots}\`, {}, async () => ({ content: [] }));
    };
    ${tool("({ content: [] })")}${TAIL}`;
  const { lists } = await found(source);
  assert.deepEqual(lists.tools.map(({ name }) => name), ["go", "roots-1"]);
});

test("base64url", async () => {
  assert.equal(await told('Buffer.from("_-8", "base64url").toString("hex") + Buffer.from("h\u00e9?>").toString("base64url")'), "ffefaMOpPz4");
});
