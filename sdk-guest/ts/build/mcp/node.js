// Finds the modules that take the place of Node.js's, and of packages that serve HTTP.

import { existsSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";

const LIB = fileURLToPath(new URL("../../lib/mcp/", import.meta.url));

const OWN = ["async_hooks", "crypto", "fs", "http", "https", "module", "os", "process"];
const JSPM = [
  "assert",
  "assert/strict",
  "buffer",
  "constants",
  "diagnostics_channel",
  "events",
  "path",
  "path/posix",
  "punycode",
  "querystring",
  "stream",
  "stream/promises",
  "string_decoder",
  "sys",
  "url",
  "util",
  "util/types",
  "zlib",
];

/** Parts of Node.js that are globals of the engine, or a few lines. */
const SHORT = {
  perf_hooks:
    "export const performance = globalThis.performance; export class PerformanceObserver { observe() {} disconnect() {} }" +
    "export const constants = {}; export const monitorEventLoopDelay = () => ({ enable() {}, disable() {} });" +
    "export default { performance, PerformanceObserver, constants, monitorEventLoopDelay };",
  timers:
    "export const { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate } = globalThis;" +
    "export default { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate };",
  "timers/promises":
    "export const setTimeout = (pause, value) => new Promise((done) => globalThis.setTimeout(done, pause, value));" +
    "export const setImmediate = (value) => setTimeout(0, value); export const scheduler = { wait: setTimeout, yield: setImmediate };" +
    "export default { setTimeout, setImmediate, scheduler };",
  tty: "export const isatty = () => false; export class ReadStream {} export class WriteStream {} export default { isatty, ReadStream, WriteStream };",
  "stream/web":
    "export const { ReadableStream, WritableStream, TransformStream, CompressionStream, DecompressionStream, TextEncoderStream," +
    " TextDecoderStream, ByteLengthQueuingStrategy, CountQueuingStrategy } = globalThis;",
};

/** Packages that serve HTTP or draw on a terminal's input: a server for stdio imports them as well. */
const INERT =
  /^(express|cors|helmet|morgan|body-parser|express-rate-limit|fastify|@fastify\/[^/]+|koa|@hono\/node-server|raw-body|ws|node-pty)(\/.*)?$/;
const INERT_SDK =
  /^@modelcontextprotocol\/(sdk\/(dist\/esm\/)?server\/(sse|streamableHttp|express|auth\/.*)(\.js)?|node|express|fastify|hono)$/;

/** Packages that only bring `fetch` to Node.js. */
const FETCH =
  /^(node-fetch|node-fetch-native|cross-fetch|isomorphic-fetch|isomorphic-unfetch|undici|whatwg-fetch)(\/polyfill)?$/;

/** Everything that is called `node:` is a part of some version of Node.js. */
const NODE = new RegExp(
  `^node:.+$|^(${builtinModules
    .filter((name) => !/^(node:)?_/.test(name))
    .map((name) => name.replace("node:", ""))
    .join("|")})$`,
);
const ALWAYS = /^node:/;
const isKnown = (name) => builtinModules.some((one) => one === name || one === `node:${name}`);

/** Returns the file that takes the place of a part of Node.js, if there is one. */
export function replacement(name, jspm) {
  if (OWN.includes(name)) return join(LIB, "node", `${name}.js`);
  if (name === "fs/promises") return join(LIB, "node/fs-promises.js");
  return JSPM.includes(name) ? join(jspm, "nodelibs/browser", `${name}.js`) : undefined;
}

/** Returns the plugin of esbuild. `jspm` is the folder of `@jspm/core`, `sdk` the folder in which the SDK's own packages are found. */
export function nodeModules({ jspm, packagesFrom, missing, acorn }) {
  return {
    name: "node",
    setup(build) {
      build.onResolve({ filter: /^@noble\/hashes\// }, async ({ path, importer, pluginData }) => {
        if (pluginData === "node" || !importer.startsWith(LIB)) return undefined;
        return build.resolve(path, { resolveDir: packagesFrom, kind: "import-statement", pluginData: "node" });
      });
      build.onResolve({ filter: INERT }, ({ path }) => ({ path, namespace: "inert" }));
      build.onResolve({ filter: INERT_SDK }, ({ path }) => ({ path, namespace: "inert" }));
      build.onResolve({ filter: /^\.\.?\/.*(sse|streamableHttp)\.js$/ }, ({ path, importer }) =>
        /@modelcontextprotocol\/sdk\/dist\/(esm|cjs)\/server\//.test(importer)
          ? { path, namespace: "inert" }
          : undefined,
      );
      build.onLoad({ filter: /.*/, namespace: "inert" }, ({ path }) => ({
        contents: `const { inert } = require("wharf-sdk:lib/mcp/lacking.js"); module.exports = inert(${JSON.stringify(path)});`,
        loader: "js",
        resolveDir: LIB,
      }));
      build.onResolve({ filter: FETCH }, ({ path }) => ({ path, namespace: "fetch" }));
      build.onLoad({ filter: /.*/, namespace: "fetch" }, ({ path }) => ({
        contents: `const { fetching } = require("wharf-sdk:lib/mcp/lacking.js"); module.exports = fetching(${JSON.stringify(path)});`,
        loader: "js",
        resolveDir: LIB,
      }));
      build.onResolve({ filter: NODE }, ({ path: said, kind, importer }) => {
        const name = said.replace(ALWAYS, "");
        // `require("events")` returns the class itself, where `import` returns a module with a default.
        if (!isKnown(name)) return { path: name, namespace: "unknown" };
        if (kind === "require-call") return { path: name, namespace: "required" };
        const instead = replacement(name, jspm);
        if (instead) return { path: name, namespace: "node", pluginData: instead };
        missing.add(name);
        if (Object.hasOwn(SHORT, name)) return { path: name, namespace: "short", sideEffects: false };
        // One for each module that imports it, so that the sentence names that.
        const file = isAbsolute(importer) && existsSync(importer) ? importer : undefined;
        const path = file ? `${name}?${file.split("/").slice(-3).join("/")}` : name;
        return { path, namespace: "lacking", sideEffects: false, pluginData: { name, file } };
      });
      build.onLoad({ filter: /.*/, namespace: "node" }, async ({ path, pluginData }) => ({
        contents: await completed(path, pluginData, acorn),
        loader: "js",
        resolveDir: LIB,
      }));
      build.onResolve({ filter: /^@pkgjs\/parseargs$/ }, ({ path, importer, kind, pluginData }) =>
        importer === "util" && pluginData !== "node"
          ? build.resolve(path, { resolveDir: packagesFrom, kind, pluginData: "node" })
          : undefined,
      );
      build.onLoad({ filter: /.*/, namespace: "required" }, ({ path }) => ({
        contents: `import * as all from "node:${path}"; module.exports = all.default ?? all;`,
        loader: "js",
        resolveDir: LIB,
      }));
      // The polyfills have a `process` of their own, which knows nothing of the plugin.
      build.onLoad({ filter: /@jspm\/core\/nodelibs\/browser\/chunk-.*\.js$/ }, ({ path }) =>
        /export \{ process as p \};\s*$/.test(readFileSync(path, "utf8"))
          ? {
              contents: 'import process from "wharf-sdk:lib/mcp/node/process.js"; export { process as p };',
              resolveDir: LIB,
            }
          : undefined,
      );
      build.onLoad(
        { filter: /@modelcontextprotocol\/.*\/(stdio|ajv-provider)\.m?js$/, namespace: "file" },
        ({ path }) => {
          const changed = official(path, readFileSync(path, "utf8"));
          return changed && { contents: changed, resolveDir: dirname(path), loader: "js" };
        },
      );
      build.onResolve({ filter: /^@modelcontextprotocol\/(server|core)\/_shims$/ }, ({ path, importer }) => ({
        path: `${path} ${importer}`,
        namespace: "shims",
      }));
      build.onLoad({ filter: /.*/, namespace: "shims" }, ({ path }) => {
        const [name, importer] = path.split(" ");
        const ajv = name.replace("_shims", "validators/ajv");
        return {
          contents: `import process from "node:process"; import { AjvJsonSchemaValidator } from ${JSON.stringify(ajv)}; ${lazy("DefaultJsonSchemaValidator", "AjvJsonSchemaValidator")} export { DefaultJsonSchemaValidator, process };`,
          resolveDir: dirname(importer),
          loader: "js",
        };
      });
      build.onLoad({ filter: /.*/, namespace: "unknown" }, ({ path }) => ({
        contents: `const { unknown } = require("wharf-sdk:lib/mcp/lacking.js"); module.exports = unknown(${JSON.stringify(path)});`,
        loader: "js",
        resolveDir: LIB,
      }));
      build.onLoad({ filter: /.*/, namespace: "short" }, ({ path }) => ({ contents: SHORT[path], loader: "js" }));
      build.onLoad({ filter: /.*/, namespace: "lacking" }, async ({ pluginData: { name, file } }) => ({
        contents: await lackingSource(name, file),
        loader: "js",
        resolveDir: LIB,
      }));
    },
  };
}

/** A class that makes the validator when it is used first: a server makes one at its start, and most use none. */
const lazy = (name, real) =>
  `class ${name} { #real; #given; constructor(...given) { this.#given = given; } getValidator(schema) { return (this.#real ??= new ${real}(...this.#given)).getValidator(schema); } }`;

/** Returns a module of the official SDK with its transport for stdio replaced, or with a validator that is made late. */
function official(path, text) {
  const declared =
    /^(export class|var) (StdioServerTransport)( = class)? \{|^export class (AjvJsonSchemaValidator) \{/m.exec(text);
  if (!declared || (!/server/.test(path) && !declared[4])) return undefined;
  const [all, keyword, , isVar] = declared;
  if (declared[4])
    return `${text.replace(all, "class RealValidator {")}\n${lazy("AjvJsonSchemaValidator", "RealValidator")}\nexport { AjvJsonSchemaValidator };`;
  const renamed = text.replace(all, `${isVar ? "var NodeTransport = class" : "class NodeTransport"} {`);
  const imported = 'import { StdioServerTransport } from "wharf-sdk:lib/mcp/transport.js";';
  return `${imported}\n${renamed}${keyword === "var" ? "" : "\nexport { StdioServerTransport };"}`;
}

/** What the polyfills lack and another package has. */
const MORE = {
  util: {
    parseArgs: 'import { parseArgs } from "@pkgjs/parseargs";',
    // No stream of a plugin is a terminal.
    styleText: "const styleText = (_format, text) => String(text);",
  },
  stream: {
    getDefaultHighWaterMark: "const getDefaultHighWaterMark = (objects) => (objects ? 16 : 65536);",
    setDefaultHighWaterMark: "const setDefaultHighWaterMark = () => {};",
  },
};

/** Returns a module with all names of a part of Node.js: those of the file, and for the others functions that say that they are not there. */
async function completed(name, file, acorn) {
  const real = await import(`node:${name}`).catch(() => ({}));
  const have = new Set(exportsOf(readFileSync(file, "utf8"), acorn));
  const more = MORE[name] ?? {};
  const absent = Object.keys(real).filter(
    (one) => one !== "default" && !have.has(one) && !(one in more) && /^[A-Za-z_$][\w$]*$/.test(one),
  );
  const path = JSON.stringify(file);
  return [
    `import * as real from ${path}; import { lacking } from "wharf-sdk:lib/mcp/lacking.js"; ${Object.values(more).join(" ")}`,
    `export * from ${path};`,
    ...absent.map(
      (one) =>
        `const ${one}_ = ${typeof real[one] === "function" ? `lacking(${JSON.stringify(name)}, ${JSON.stringify(one)})` : (dataOf(real[one]) ?? "undefined")};`,
    ),
    `export { ${[...absent.map((one) => `${one}_ as ${one}`), ...Object.keys(more)].join(", ")} };`,
    `const absent = { ${[...absent.map((one) => `${one}: ${one}_`), ...Object.keys(more)].join(", ")} };`,
    name === "process"
      ? "export default real.default;"
      : 'export default typeof real.default === "object" ? { ...absent, ...real.default } : (real.default ?? real);',
  ].join("\n");
}

/** Returns constants as source, and `undefined` for what is not plain data. */
function dataOf(value) {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** Returns the names that a module exports. */
function exportsOf(text, acorn) {
  const patterns = (id) => (id.type === "ObjectPattern" ? id.properties.map(({ value }) => value.name) : [id.name]);
  return acorn
    .parse(text, { ecmaVersion: "latest", sourceType: "module" })
    .body.flatMap(({ type, declaration, specifiers }) => {
      if (type !== "ExportNamedDeclaration") return [];
      if (!declaration) return specifiers.map(({ exported }) => exported.name);
      return declaration.declarations
        ? declaration.declarations.flatMap(({ id }) => patterns(id))
        : [declaration.id.name];
    });
}

/** Lines that name a member and do not use it. */
const NO_USE = /^\s*(import\b|\/\/|\*|\/\*|[\w$]+,?\s*$)|\brequire\(/;

/** Returns where a file uses a member of a part of Node.js: the file, and the lines if they are few. */
function placeOf(file, module, name) {
  const own = file.split("/").slice(-2).join("/");
  const use = new RegExp(`(?<![.\\w$])(?:(?:${module}|childProcess|cp)\\.)?${name}(?![\\w$])`);
  const isUse = (line) => use.test(line) && !NO_USE.test(line);
  const lines = readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line, at) => (isUse(line) ? [at + 1] : []));
  return lines.length && lines.length < 4 ? `${own}:${lines.join(", ")}` : own;
}

/** Returns a module with the names of a part of Node.js: functions that say why they do not work, and the constants. */
async function lackingSource(path, file) {
  const real = await import(`node:${path}`).catch(() => ({ default: {} }));
  const names = Object.keys(real).filter((name) => name !== "default" && /^[A-Za-z_$][\w$]*$/.test(name));
  const lines = ['import { lacking } from "wharf-sdk:lib/mcp/lacking.js";'];
  for (const name of names) {
    const value = real[name];
    const plain = typeof value === "function" ? undefined : dataOf(value);
    const special = SPECIAL[`${path}.${name}`];
    const place = file && placeOf(file, path, name);
    const given = [path, name, undefined, place].map((one) => JSON.stringify(one) ?? "undefined");
    lines.push(`const ${name}_ = ${special ?? plain ?? `lacking(${given.join(", ")})`};`);
  }
  const all = names.map((name) => `${name}: ${name}_`).join(", ");
  lines.push(`export { ${names.map((name) => `${name}_ as ${name}`).join(", ")} };`, `export default { ${all} };`);
  return lines.join("\n");
}

/** Members that servers use while they load. */
const SPECIAL = {
  "worker_threads.isMainThread": "true",
  "worker_threads.parentPort": "null",
  "worker_threads.workerData": "null",
  "net.isIP": "(text) => (/^\\d+(\\.\\d+){3}$/.test(text) ? 4 : String(text).includes(':') ? 6 : 0)",
  "net.isIPv4": "(text) => /^\\d+(\\.\\d+){3}$/.test(text)",
  "net.isIPv6": "(text) => String(text).includes(':')",
  "net.getDefaultAutoSelectFamilyAttemptTimeout": "() => 250",
  "net.getDefaultAutoSelectFamily": "() => true",
  "readline.createInterface": "() => ({ on() { return this; }, close() {}, question() {} })",
};

export const libFolder = LIB;
