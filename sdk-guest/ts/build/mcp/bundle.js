// Bundles a server and everything that it imports into one module, and cuts it in two: what the packages do when they load runs at build,
// the server's own modules become a function.

import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

import { load, packageFolderOf } from "../packages.js";
import { Problem } from "../problem.js";
import { packageFolder } from "./entry.js";
import { nodeModules } from "./node.js";
import { nodeFile } from "./resolve.js";

const LIB = fileURLToPath(new URL("../../lib/", import.meta.url));
const CUT = "__wharfCut__();";
export const GIVEN = '"the build puts variables and arguments here"';
const WHERE = /\bimport\.meta\b|\b__dirname\b|\b__filename\b/;
/** How a CommonJS module asks whether it is the program, which the server's first module is. */
const IS_MAIN = /\brequire\.main\s*===?\s*module\b|\bmodule\s*===?\s*require\.main\b/g;
/** JSON files that modules name: many packages read their version, or their data, when they load. */
const JSON_FILE = /["'`/]((?:[\w.-]+\/)*[\w.-]+\.json)["'`]/g;
const JSON_BYTES = 1 << 17;
/** How bundles that were made for Node.js, and modules with `createRequire`, name its parts: the function may have any name. */
const REQUIRES = /\bcreateRequire\b|\b__require\b|\btypeof require\b/;
const REQUIRED = /[\w$]\(\s*["'](?:node:)?([a-z_0-9]+(?:\/[a-z]+)?)["']\s*\)/g;
const TEXT = /\.(json|md|txt|ya?ml|html?|css|csv|sql|hbs|mustache|graphql|prompt|xml)$/i;
const TEXT_BYTES = 1 << 20;

/** Bundles the server. `forNode` prefers the parts of packages for Node.js to those for browsers. Returns the text before and after the cut, and about which modules it has. */
export async function bundle({ entry, project, forNode = false }) {
  const esbuild = await load("esbuild", project);
  const missing = new Set();
  const isOwn = (path) => isAbsolute(path) && ownModule(path, entry.root) && !path.startsWith(LIB);
  const options = { forNode, esbuild, entry, project, missing, required: new Set(), abouts: new Set() };
  const first = await run(options, [entry.file], new Set());
  const packages = imported(first.metafile, project, isOwn);
  const made = await run(options, [...packages, "wharf-sdk:cut", entry.file], packages);
  const text = made.outputFiles[0].text;
  const at = text.indexOf(CUT);
  if (at < 0) throw new Problem(`${entry.file}: the bundle has no place where the server's modules begin`);
  // The last statement of the bundle may be an export, which a function cannot have.
  const tail = text
    .slice(at + CUT.length)
    .replace(/\nexport \{[^}]*\};\s*$|\nexport default require_\w+\(\);\s*$/g, "\n");
  const modules = Object.keys(made.metafile.inputs);
  const own = ownText(text.slice(0, at), new Map(modules.map((name) => [name, isOwn(placeOf(name, project))])));
  const ours = new Set(modules.filter((name) => placeOf(name, project).startsWith(LIB)));
  const others = linesOf(text, (name) => !ours.has(name));
  return { head: own.rest, tail: `${own.moved}${tail}`, others, missing, inputs: modules, packages };
}

/** Whether a path is a file in a folder, and no link to one elsewhere, or to nothing. */
function isFileBelow(root, path) {
  try {
    return statSync(path).isFile() && realpathSync(path).startsWith(realpathSync(root) + sep);
  } catch {
    return false;
  }
}

/** Whether a module is the server's own: it lies in the server's folder, and not in a package that was installed there. */
export function ownModule(path, root) {
  const inner = relative(root, path);
  return !inner.startsWith("..") && !inner.split(sep).includes("node_modules");
}

/** The path of a module that esbuild names, or its name with the namespace. */
const placeOf = (name, project) => (/^[a-z-]+:/.test(name) && !existsSync(name) ? name : join(project, name));

/**
 * esbuild puts modules that run when they are first required before all others. Those of the server belong after the cut. `modules` says
 * which ones these are: a line of a text may begin as a comment does.
 */
function ownText(text, modules) {
  const [rest, moved] = [[], []];
  let into = rest;
  for (const line of text.split("\n")) {
    const isOwn = line.startsWith("// ") ? modules.get(line.slice(3)) : undefined;
    if (isOwn !== undefined) into = isOwn ? moved : rest;
    into.push(line);
  }
  return { rest: rest.join("\n"), moved: moved.length ? `\n${moved.join("\n")}\n` : "" };
}

/** The lines of the modules that `keep` says. */
function linesOf(text, keep) {
  let kept = true;
  const found = [];
  for (const line of text.split("\n")) {
    if (/^\/\/ \S+$/.test(line)) kept = keep(line.slice(3));
    if (kept) found.push(line);
  }
  return found.join("\n");
}

const VIRTUAL = /^(lacking|short|inert|fetch|node|unknown):/;

/** Returns what the server's own modules import that is not their own. */
function imported(metafile, project, isOwn) {
  const found = new Set();
  for (const [name, { imports }] of Object.entries(metafile.inputs)) {
    if (!isOwn(placeOf(name, project))) continue;
    for (const { path, original, external, kind } of imports) {
      const required = /^required:(.*)$/.exec(path);
      if (external || kind === "dynamic-import" || isOwn(placeOf(path, project)) || /^(native|absent):/.test(path))
        continue;
      if (required) found.add(`node:${required[1]}`);
      else found.add(VIRTUAL.test(path) ? original : placeOf(path, project));
    }
  }
  return found;
}

async function run({ esbuild, entry, project, missing, required, abouts, forNode }, imports, sideEffects) {
  const jspm = packageFolderOf("@jspm/core", project);
  try {
    return await esbuild.build({
      stdin: {
        contents: ["wharf-sdk:lib/mcp/main.js", ...imports].map((name) => `import ${JSON.stringify(name)};`).join("\n"),
        resolveDir: project,
        sourcefile: "wharf-sdk-entry.js",
      },
      absWorkingDir: project,
      outfile: "plugin.js",
      write: false,
      bundle: true,
      metafile: true,
      platform: forNode ? "neutral" : "browser",
      mainFields: forNode ? ["module", "main"] : ["browser", "module", "main"],
      // A server that lies elsewhere finds the packages that `setup` installed here.
      nodePaths: [join(project, "node_modules")],
      target: "es2024",
      format: "esm",
      keepNames: false,
      define: {
        fetch: "globalThis.fetch",
        global: "globalThis",
        "import.meta.url": "__wharfUrl",
        "import.meta.dirname": "__wharfDirname",
        "import.meta.filename": "__wharfFilename",
        __dirname: "__wharfDirname",
        __filename: "__wharfFilename",
      },
      legalComments: "none",
      logLevel: "silent",
      plugins: [
        nodeModules({ jspm, packagesFrom: dirname(jspm), missing, acorn: await load("acorn", project) }),
        modules({ entry, required, abouts, forNode }, sideEffects),
      ],
    });
  } catch (failed) {
    if (!failed.errors) throw failed;
    throw new Problem(failed.errors.slice(0, 10).map(said).join("\n"));
  }
}

const said = ({ text, location }) =>
  location ? `${location.file}:${location.line}:${location.column + 1}: ${text}` : text;

function modules({ entry, required, abouts, forNode }, sideEffects) {
  return {
    name: "wharf-mcp",
    setup(build) {
      build.onResolve({ filter: /^wharf-sdk:lib\// }, ({ path }) => ({
        path: join(LIB, path.slice("wharf-sdk:lib/".length)),
      }));
      build.onResolve({ filter: /^wharf-sdk:(cut|given|package-files|engine|builtins)$/ }, ({ path }) => ({
        path: path.slice("wharf-sdk:".length),
        namespace: "wharf-mcp",
      }));
      build.onLoad({ filter: /.*/, namespace: "wharf-mcp" }, ({ path }) => ({
        contents: SOURCES[path](entry, required, abouts),
        resolveDir: LIB,
      }));
      build.onResolve({ filter: /^(wharf|wasi):/ }, ({ path }) => ({ path, external: true }));
      build.onResolve({ filter: /.*/ }, ({ path }) =>
        // Without this, a module that only the server's own modules use would be evaluated after the cut, and a server whose package.json
        // says that its modules have no side effects would not run.
        path === entry.file || (sideEffects.has(path) && isAbsolute(path)) ? { path, sideEffects: true } : undefined,
      );
      build.onResolve({ filter: /\.node$/ }, ({ path }) => ({ path, namespace: "native" }));
      build.onLoad({ filter: /\.node$/, namespace: "file" }, ({ path }) => ({
        contents: `const { native } = require("wharf-sdk:lib/mcp/lacking.js"); module.exports = native(${JSON.stringify(virtual(path, entry))});`,
        resolveDir: LIB,
      }));
      build.onLoad({ filter: /.*/, namespace: "native" }, ({ path }) => ({
        contents: `const { native } = require("wharf-sdk:lib/mcp/lacking.js"); module.exports = native(${JSON.stringify(path)});`,
        resolveDir: LIB,
      }));
      // What is not installed throws when it is required, as in Node.js: packages catch that, or never require it.
      build.onResolve({ filter: /.*/ }, async ({ path, importer, resolveDir, kind, pluginData }) => {
        const installed = importer.includes("node_modules");
        const own = isAbsolute(importer) && !importer.startsWith(LIB);
        if (pluginData === "asked" || !(installed || own)) return undefined;
        const found = await build.resolve(path, { importer, resolveDir, kind, pluginData: "asked" });
        const file = nodeFile(path, resolveDir, kind, { failed: found.errors.length > 0, preferred: forNode });
        if (file) return { path: file };
        return installed && found.errors.length ? { path, namespace: "absent" } : undefined;
      });
      build.onResolve({ filter: /^bun:/ }, ({ path }) => ({ path, namespace: "absent" }));
      build.onLoad({ filter: /.*/, namespace: "absent" }, ({ path }) => ({
        contents: `throw Object.assign(new Error(${JSON.stringify(`Cannot find module '${path}'`)}), { code: "MODULE_NOT_FOUND" });`,
      }));
      build.onLoad({ filter: /\.[cm]?[jt]sx?$/, namespace: "file" }, ({ path }) => {
        const text = readFileSync(path, "utf8");
        if (path.startsWith(LIB)) return undefined;
        if (REQUIRES.test(text)) for (const [, name] of text.matchAll(REQUIRED)) required.add(name);
        for (const file of jsonFiles(text, path)) abouts.add(file);
        const changed = path === entry.file ? text.replace(IS_MAIN, "true") : text;
        if (!WHERE.test(text) && changed === text) return undefined;
        return { contents: located(changed, virtual(path, entry)), loader: /\.[cm]?tsx?$/.test(path) ? "ts" : "js" };
      });
    },
  };
}

/** Returns the path that a module has for the server: its package is at /server, and packages are at /server/node_modules. */
export function virtual(path, { root }) {
  const inner = relative(root, path);
  if (!inner.startsWith("..")) return `/server/${inner}`;
  const at = path.lastIndexOf(`${sep}node_modules${sep}`);
  return at < 0 ? `/server/${path.split(sep).at(-1)}` : `/server${path.slice(at)}`;
}

/** Declares a module's own place in its first line. */
function located(text, path) {
  const names =
    `const __wharfUrl = ${JSON.stringify(`file://${path}`)}, __wharfFilename = ${JSON.stringify(path)}, ` +
    `__wharfDirname = ${JSON.stringify(path.replace(/\/[^/]*$/, ""))};`;
  return text.startsWith("#!") ? text.replace(/^#!.*/, names) : `${names} ${text}`;
}

const SOURCES = {
  cut: () => CUT,
  // Complete in the second run, when all modules have been read.
  builtins: (_, required) => {
    const names = [...required].filter((name) => builtinModules.includes(name));
    return [
      ...names.map((name, index) => `import * as m${index} from "node:${name}";`),
      `export const builtins = { ${names.map((name, index) => `"${name}": m${index}`).join(", ")} };`,
    ].join("\n");
  },
  given: () => `export const given = ${GIVEN};`,
  engine: () => "export const size = BigInt;",
  "package-files": ({ root, file }, _, abouts) =>
    `export const packageFiles = ${JSON.stringify({ ...described([...abouts], { root, file }), ...texts(root, file) })};`,
};

/** Returns the JSON files that a module names, which lie next to it or in its package's folder. */
function jsonFiles(text, path) {
  const root = packageFolder(dirname(path));
  const folders = [dirname(path), root].filter(Boolean);
  return [...text.matchAll(JSON_FILE)].flatMap(([, name]) =>
    [...new Set(folders.map((folder) => join(folder, name)))].filter(
      (file) =>
        root &&
        file.startsWith(root + sep) &&
        !isPrivate(root, file.slice(root.length)) &&
        isFileBelow(root, file) &&
        statSync(file).size <= JSON_BYTES,
    ),
  );
}

/** Returns the text of the JSON files that packages read when they load. */
function described(files, entry) {
  return Object.fromEntries(files.map((file) => [virtual(file, entry), readFileSync(file, "utf8")]));
}

/** Names of files that often hold secrets. Those of an author do not become part of a component, which others may get; published packages contain no secrets of the author. */
const PRIVATE = /secret|credential|token|password|passwd|private|api[-_]?key/i;
const isPrivate = (root, name) => PRIVATE.test(name) && !root.includes(`${sep}node_modules${sep}`);

/** Returns the text files of the server's package, which servers read next to their code: at most 1 MiB, the nearest ones first. */
export function texts(root, file) {
  const found = {};
  let left = TEXT_BYTES;
  const folders = [root];
  for (let folder = folders.shift(); folder; folder = folders.shift()) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (
        entry.name === "node_modules" ||
        entry.name.startsWith(".") ||
        isPrivate(root, entry.name) ||
        (/^(package-lock|tsconfig|.*\.d)\.?/.test(entry.name) && !entry.isDirectory())
      )
        continue;
      if (entry.isDirectory()) folders.push(path);
      else if (TEXT.test(entry.name) && isFileBelow(root, path) && statSync(path).size <= left) {
        left -= statSync(path).size;
        found[virtual(path, { root, file })] = readFileSync(path, "utf8");
      }
    }
  }
  return found;
}
