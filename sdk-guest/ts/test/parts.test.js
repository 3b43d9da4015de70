// Which part of a package a server gets, and what packages find of their own files. The bundle is run in Node.js.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { engineVariables } from "../build/build.js";
import { started } from "../build/mcp/build.js";
import { findEntry } from "../build/mcp/entry.js";

const projects = mkdtempSync(join(fileURLToPath(new URL(".", import.meta.url)), "tmp-parts-"));
after(() => rmSync(projects, { recursive: true }));
let made = 0;

/** Builds a server that imports `said` of the package `one`, as far as the probe, and returns that text. `files` are those of the package. */
async function said(about, files) {
  const project = join(projects, `${++made}`);
  const all = {
    "package.json": '{ "type": "module" }',
    "server.js": `import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
      import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
      import { said } from "one";
      const server = new McpServer({ name: "mine", version: "1.0.0" });
      server.registerTool("go", { description: String(said) }, async () => ({ content: [] }));
      await server.connect(new StdioServerTransport());`,
    "node_modules/one/package.json": JSON.stringify({ name: "one", version: "4.5.6", ...about }),
  };
  for (const [name, text] of Object.entries(files)) all[`node_modules/one/${name}`] = text;
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(project, name)), { recursive: true });
    writeFileSync(join(project, name), text);
  }
  const { found } = await started({ entry: findEntry("server.js", project), project, args: [] });
  return found.lists.tools[0].description;
}

const PARTS = {
  "browser.js": 'export const said = "for browsers";',
  "node.js": 'export const said = "for Node.js";',
  "other.js": 'throw new Error("for neither of them");',
};

test("a package with parts for browsers and for Node.js gives the one for browsers", async () => {
  const exports = { node: "./node.js", browser: "./browser.js", default: "./other.js" };
  assert.equal(await said({ exports: { browser: exports.browser, ...exports } }, PARTS), "for browsers");
});

test("a package with a part for Node.js and none for browsers gives that one", async () => {
  assert.equal(await said({ exports: { node: "./node.js", default: "./other.js" } }, PARTS), "for Node.js");
  assert.equal(await said({ exports: { ".": { node: { import: "./node.js" } } } }, PARTS), "for Node.js");
});

test("a server that does not start with the part for browsers gets the one for Node.js", async () => {
  const browser = 'throw new Error("this part needs a window");';
  const exports = { browser: "./browser.js", node: "./node.js" };
  assert.equal(await said({ exports }, { ...PARTS, "browser.js": browser }), "for Node.js");
});

test("the same holds for a package that names its part for browsers outside of exports", async () => {
  const files = { "browser.js": 'exports.said = "for browsers";', "main.js": 'exports.said = "for Node.js";' };
  const about = { main: "./main.js", browser: "./browser.js" };
  assert.equal(await said(about, files), "for browsers");
  const failing = { ...files, "browser.js": 'throw new Error("this part needs a window");' };
  assert.equal(await said(about, failing), "for Node.js");
  assert.equal(await said({ main: "./main.js", browser: { "./main.js": "./browser.js" } }, failing), "for Node.js");
});

test("if neither part starts, the failure of the first one is told", async () => {
  const failing = {
    "browser.js": 'throw new Error("needs a window");',
    "node.js": 'throw new Error("needs a disk");',
  };
  const exports = { browser: "./browser.js", node: "./node.js" };
  await assert.rejects(said({ exports }, failing), /needs a window/);
});

test("a package reads its package.json, and JSON files that it names", async () => {
  const source = `import { readFileSync } from "node:fs";
    import { createRequire } from "node:module";
    const about = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
    const data = createRequire(import.meta.url)("../data/words.json");
    export const said = about.version + " " + data.word;`;
  const files = { "lib/one.js": source, "data/words.json": '{ "word": "crate" }' };
  assert.equal(await said({ type: "module", exports: "./lib/one.js" }, files), "4.5.6 crate");
});

test("a package finds no files of other packages, and none that it does not name", async () => {
  const source = `import { readFileSync } from "node:fs";
    const read = (path) => { try { return readFileSync(path, "utf8"); } catch (thrown) { return thrown.code; } };
    const here = new URL("./", import.meta.url);
    export const said = read(new URL("un" + "named" + ".json", here)) + " " + read("/etc/passwd");`;
  const files = { "one.js": source, "unnamed.json": "{}" };
  assert.equal(await said({ type: "module", exports: "./one.js" }, files), "ENOENT ENOENT");
});

test("a component has the text files of the server's folder, but not those whose names speak of secrets", async () => {
  const project = join(projects, `${++made}`);
  mkdirSync(join(project, "data"), { recursive: true });
  const files = {
    "data/words.json": '["word-of-the-server"]',
    "google-credentials.json": '{ "key": "key-of-the-author" }',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text);
  writeFileSync(join(project, "package.json"), '{ "type": "module" }');
  writeFileSync(
    join(project, "server.js"),
    `import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
    import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
    import { existsSync } from "node:fs";
    const server = new McpServer({ name: "mine", version: "1.0.0" });
    server.registerTool("go", { description: String(existsSync("google-credentials.json")) }, async () => ({ content: [] }));
    await server.connect(new StdioServerTransport());`,
  );
  const { parts } = await started({ entry: findEntry("server.js", project), project, args: [] });
  const all = parts.head + parts.tail;
  assert.ok(all.includes("word-of-the-server"));
  assert.ok(!all.includes("key-of-the-author"));
});

test("the engine keeps its cache where a build with a home directory of its own may write", () => {
  assert.deepEqual(engineVariables("/w/making", "/w"), { HOME: "/proc/self/cwd/making" });
  for (const home of ["/home/me", "/w", "/"]) assert.equal(engineVariables(home, "/w"), undefined);
});
