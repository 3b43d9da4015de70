// The messages about mistakes in a plugin: one sentence in the author's terms, with file and line if they are known.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { check, trial } from "../build/check.js";
import { load } from "../build/packages.js";

const projects = mkdtempSync(join(fileURLToPath(new URL(".", import.meta.url)), "tmp-"));
after(() => rmSync(projects, { recursive: true }));

let made = 0;

/** Creates a project with these files. The first one is the entry. */
function project(files) {
  const folder = join(projects, `${++made}`);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return { project: folder, entry: `./${Object.keys(files)[0]}`, engine: "starlingmonkey" };
}

const plugin = (body) => ({ "src/plugin.ts": `import { Failure, plugin, tool } from "wharf-sdk";\n${body}` });
const greet = (members) => plugin(`export default plugin([\n  tool("greet", { ${members} }),\n]);\n`);

const AT_BUILD = [
  [
    "throws at the top level",
    plugin("const n: any = null;\nn.a;\nexport default plugin([]);"),
    "src/plugin.ts:3:3: TypeError: Cannot read properties of null (reading 'a')",
  ],
  [
    "throws an error of its own",
    plugin('throw new Error("no key");\nexport default plugin([]);'),
    "src/plugin.ts:2:7: no key",
  ],
  [
    "throws no error",
    plugin('throw "no key";\nexport default plugin([]);'),
    "src/plugin.ts: a value that is not an Error was thrown: no key",
  ],
  [
    "asks for the time",
    plugin("const now = Date.now();\nexport default plugin([now as any]);"),
    "src/plugin.ts:2:18: Date.now() was called while the module loads, which happens once, at build: call it in a function",
  ],
  [
    "makes a date",
    plugin("const now = new Date();\nexport default plugin([now as any]);"),
    /^src\/plugin.ts:2:\d+: new Date\(\) was called while/,
  ],
  [
    "throws dice",
    plugin("const n = Math.random();\nexport default plugin([n as any]);"),
    /^src\/plugin.ts:2:\d+: Math.random\(\) was called while/,
  ],
  [
    "throws dice in a module",
    {
      ...plugin('import { id } from "./id.js";\nexport default plugin([id as any]);'),
      "src/id.ts": "\n\nexport const id = crypto.randomUUID();",
    },
    /^src\/id.ts:3:\d+: crypto.randomUUID\(\) was called while/,
  ],
  [
    "reads a variable, and catches what that throws",
    plugin(
      'import { env } from "wharf-sdk/env";\nlet home;\ntry {\n  home = env("HOME");\n} catch {}\nexport default plugin([]);',
    ),
    /^src\/plugin.ts:\d+:\d+: getEnvironment\(\) was called while/,
  ],
  [
    "asks for its config",
    plugin('import { config } from "wharf-sdk";\nconfig();\nexport default plugin([]);'),
    "src/plugin.ts:3:1: wharf is not available here: this works only while a plugin answers a call",
  ],
  [
    "has no default export",
    plugin("export const tools = plugin([]);"),
    "src/plugin.ts: there is no default export; end it with `export default plugin([…])`",
  ],
  [
    "exports something else",
    plugin("export default { tools: {} };"),
    "src/plugin.ts: TypeError: the plugin's file must say `export default plugin([…])`, with `plugin` of wharf-sdk",
  ],
  [
    "exports a tool alone",
    plugin('export default plugin(tool("x", {}) as any);'),
    /^src\/plugin.ts:2:\d+: TypeError: tool `x` needs a function `run`$/,
  ],
  [
    "has a part that is not one",
    plugin('export default plugin(["x"] as any);'),
    "src/plugin.ts: TypeError: a part of the plugin is not a tool, resource or prompt: x",
  ],
  [
    "imports files of Node.js",
    plugin('import { readFileSync } from "node:fs";\nexport default plugin([readFileSync as any]);'),
    'src/plugin.ts:2:30: "node:fs" is a part of Node.js, and a plugin does not run in Node.js; files are read and written with "wharf-sdk/files"',
  ],
  [
    "imports another part of Node.js",
    plugin('import os from "os";\nexport default plugin([os as any]);'),
    'src/plugin.ts:2:16: "os" is a part of Node.js, and a plugin does not run in Node.js',
  ],
  [
    "imports what is not there",
    plugin('import "./gone.js";\nexport default plugin([]);'),
    'src/plugin.ts:2:8: Could not resolve "./gone.js"',
  ],
  ["is not there", { "src/other.ts": "" }, "src/plugin.ts: there is no such file", "./src/plugin.ts"],
  ["is not TypeScript", plugin("const = 3;"), 'src/plugin.ts:2:7: Expected identifier but found "="'],
  [
    "waits at the top level",
    plugin("await Promise.resolve();\nexport default plugin([]);"),
    "src/plugin.ts:2:1: await works only within functions: nothing can be waited for while the module loads",
  ],
  [
    "catches what it must not do",
    plugin(
      "let now = 0;\ntry {\n  now = Date.now();\n} catch {}\nexport default plugin([], { instructions: String(now) });",
    ),
    /^src\/plugin.ts:4:\d+: Date.now\(\) was called while/,
  ],
  [
    "has no description",
    greet("run: () => 'x'"),
    "src/plugin.ts:3:3: TypeError: tool `greet` needs a description: a model chooses by it",
  ],
  [
    "has two of a name",
    plugin('const x = tool("x", { description: "x", run: () => "x" });\nexport default plugin([x, x]);'),
    "src/plugin.ts: TypeError: there are two tools called `x`",
  ],
  [
    "has a bad name",
    plugin('export default plugin([tool("a b", { description: "x", run: () => "x" })]);'),
    /^src\/plugin.ts:2:\d+: TypeError: tool a b: a name has 1 to 128 of A-Z a-z 0-9 _ - \.$/,
  ],
  [
    "has a schema of no object",
    greet("description: 'x', input: { type: 'string' } as any, run: () => 'x'"),
    /^src\/plugin.ts:3:3: TypeError: `input` of tool `greet` must be a schema of an object: "type": "object"$/,
  ],
  [
    "has a schema without JSON Schema",
    plugin(
      'import * as v from "valibot";\nexport default plugin([tool("x", { description: "x", input: v.object({}) as any, run: () => "x" })]);',
    ),
    /^src\/plugin.ts:3:\d+: TypeError: `input` of tool `x`: this schema of valibot has no JSON Schema; wrap it in toStandardJsonSchema\(\) of "@valibot\/to-json-schema"$/,
  ],
  [
    "has a template of an unknown kind",
    plugin(
      'import { resource } from "wharf-sdk";\nexport default plugin([resource("a://{?x}", { read: () => "x" })]);',
    ),
    /^src\/plugin.ts:3:\d+: TypeError: template `a:\/\/\{\?x\}`: only \{name\} and \{\+name\} are known$/,
  ],
];

for (const [what, files, expected, entry] of AT_BUILD) {
  test(`a plugin that ${what}`, async () => {
    const built = check({ ...project(files), ...(entry && { entry }) });
    await assert.rejects(built, (problem) => {
      assert.equal(problem.constructor.name, "Problem", problem.stack);
      if (expected instanceof RegExp) assert.match(problem.message, expected);
      else assert.equal(problem.message, expected);
      return true;
    });
  });
}

test("a plugin with a package that asks for the time while it loads", async () => {
  const { constants } = await check(
    project({
      ...plugin('import { at } from "timely";\nexport default plugin([], { instructions: String(at) });'),
      "node_modules/timely/package.json": '{ "name": "timely", "main": "index.js" }',
      "node_modules/timely/index.js": "exports.at = Date.now() + Math.random();",
    }),
  );
  assert.equal(constants, true);
});

test("a plugin whose validator asks for the time runs it only in calls", async () => {
  const validate =
    "{ '~standard': { vendor: 'own', validate: async (value) => (Date.now(), { value }), jsonSchema: { input: () => ({ type: 'object' }) } } }";
  const { cold } = await check(project(greet(`description: 'x', input: ${validate} as any, run: () => 'x'`)));
  assert.deepEqual(cold, ["greet"]);
});

test("fetch under a local name is not the global one", async () => {
  const made = project(
    greet("description: 'x', run: () => { const fetch = (globalThis as any).fetch; return typeof fetch; }"),
  );
  const { exports, fetches } = await trial(made);
  assert.equal(fetches, true);
  const { val } = await exports.tools.callTool("greet", "{}", CONTEXT);
  assert.equal(val, "function");
});

test("a CommonJS module does not count as use of fetch", async () => {
  const files = {
    ...plugin('import add from "./add.cjs";\nexport default plugin([], { instructions: String(add(1)) });'),
    "src/add.cjs": "module.exports = (x) => x + 1;",
  };
  assert.equal((await check({ ...project(files), engine: "quickjs" })).fetches, false);
});

const ON_QUICKJS = [
  [
    "uses fetch",
    greet("description: 'x', async run() { return (await fetch('https://a.example')).text(); }"),
    /^src\/plugin.ts:3:\d+: fetch is used, which QuickJS does not have; build with --engine starlingmonkey$/,
  ],
  [
    "uses fetch by its long name",
    greet("description: 'x', run: () => globalThis.fetch('x') as any"),
    /^src\/plugin.ts:3:\d+: fetch is used/,
  ],
  [
    "needs URL at the top level",
    plugin('const u = new URL("https://a.example");\nexport default plugin([u as any]);'),
    /^src\/plugin.ts:2:\d+: ReferenceError: URL is not defined$/,
  ],
];

for (const [what, files, expected] of ON_QUICKJS) {
  test(`a plugin for QuickJS that ${what}`, () =>
    assert.rejects(check({ ...project(files), engine: "quickjs" }), { message: expected }));
}

const IN_A_CALL = [
  [
    "throws an error",
    "description: 'x', run() {\n throw new Error('no such note'); }",
    "no such note (src/plugin.ts:4)",
  ],
  ["throws a failure", "description: 'x', run() {\n throw new Failure('no such note'); }", "no such note"],
  [
    "has a bug",
    "description: 'x', run() {\n const n: any = null; return n.title; }",
    "TypeError: Cannot read properties of null (reading 'title') (src/plugin.ts:4)",
  ],
  [
    "throws later",
    "description: 'x', async run() {\n await 0; throw new RangeError('too far'); }",
    "RangeError: too far (src/plugin.ts:4)",
  ],
  [
    "throws for a reason",
    "description: 'x', run() {\n throw new Error('no notes', { cause: new Error('disk') }); }",
    "no notes: disk (src/plugin.ts:4)",
  ],
  [
    "throws no error",
    "description: 'x', run() { throw { a: 1 }; }",
    'a value that is not an Error was thrown: {"a":1}',
  ],
  [
    "returns a number",
    "description: 'x', run: (): any => 3",
    "TypeError: the tool `greet` returned a number: return a string or content, or declare `output` (src/plugin.ts:3)",
  ],
  [
    "returns an object",
    "description: 'x', run: (): any => ({ a: 1 })",
    /^TypeError: the tool `greet` returned an object: return a string or content, or declare `output`/,
  ],
  [
    "returns text in place of data",
    "description: 'x', output: { type: 'object' }, run: (): any => 'x'",
    /^TypeError: the tool `greet` returned a string: its `output` says an object/,
  ],
];

const CONTEXT = { answers: [], revision: "2026-07-28", capabilities: {}, reports: {}, more: "{}" };

for (const engine of ["starlingmonkey", "quickjs"]) {
  for (const [what, members, expected] of IN_A_CALL) {
    test(`a tool on ${engine} that ${what}`, async () => {
      const { exports } = await trial({ ...project(greet(members)), engine });
      const call = async () => exports.tools.callTool("greet", "{}", CONTEXT);
      await assert.rejects(call, (failure) => {
        if (expected instanceof RegExp) assert.match(failure.message, expected);
        else assert.equal(failure.message, expected);
        return true;
      });
    });
  }
}

test("a tool on QuickJS that waits for nothing", async () => {
  const { exports } = await trial({
    ...project(greet("description: 'x', run: () => new Promise<string>(() => {})")),
    engine: "quickjs",
  });
  const call = () => exports.tools.callTool("greet", "{}", CONTEXT);
  assert.throws(call, {
    message:
      "the function waits for a promise that never settles: on QuickJS only timers and questions can be waited for",
  });
});

test("a project without the tools that build", async () => {
  await assert.rejects(load("esbuild", "/"), {
    message: /^esbuild is not installed; run: npm install --save-dev --save-exact esbuild@\d/,
  });
});
