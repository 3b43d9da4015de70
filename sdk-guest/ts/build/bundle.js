// The author's modules and the SDK's as one module.

import { builtinModules, SourceMap } from "node:module";
import { isAbsolute, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { load } from "./packages.js";
import { Problem } from "./problem.js";

const SDK = fileURLToPath(new URL("..", import.meta.url));
const LIB = join(SDK, "lib");
const OURS = { "wharf-sdk": "index.js", "wharf-sdk/files": "files.js", "wharf-sdk/env": "env.js" };
const PLACES = '"the build puts places here"';
const NODE = new RegExp(`^(node:.*|(${builtinModules.filter((name) => !name.startsWith("_")).join("|")})(/.*)?)$`);

/** What each engine lacks of JavaScript, for esbuild to write in other words. QuickJS cannot wait in an `async` function of its own. */
const LACKS = { starlingmonkey: {}, quickjs: { "async-await": false, "async-generator": false, "for-await": false } };

/**
 * Bundles an entry. `stubs`, for a trial run in Node.js, has sources of the modules that only wharf gives; without, they stay imports.
 */
export async function bundle({ entry, engine, project, stubs, cold = [] }) {
  const esbuild = await load("esbuild", project);
  let made;
  try {
    made = await esbuild.build({
      stdin: { contents: glue(entry, engine, cold), resolveDir: project, sourcefile: "wharf-sdk-entry.js" },
      absWorkingDir: project,
      outfile: "plugin.js",
      write: false,
      bundle: true,
      metafile: true,
      sourcemap: "external",
      sourcesContent: false,
      platform: "browser",
      target: "es2024",
      supported: LACKS[engine],
      format: stubs ? "iife" : "esm",
      globalName: stubs && "__plugin",
      inject: [join(LIB, "engines/fetch.js")],
      define: { "globalThis.fetch": "fetch" },
      legalComments: "none",
      logLevel: "silent",
      plugins: [modules(engine, stubs)],
    });
  } catch (failed) {
    throw failed.errors ? new Problem(failed.errors.map((error) => said(error, entry)).join("\n")) : failed;
  }
  const [{ inputs, imports }] = Object.values(made.metafile.outputs).filter(({ entryPoint }) => entryPoint);
  const code = made.outputFiles.find(({ path }) => path.endsWith(".js")).text;
  const map = new SourceMap(JSON.parse(made.outputFiles.find(({ path }) => path.endsWith(".map")).text));
  const places = new Places(map, project);
  return {
    code: code.replace(PLACES, () => JSON.stringify(places.table(code))),
    places,
    fetches: Object.keys(inputs).some((name) => resolve(project, name) === join(LIB, "engines/fetch.js")),
    imports: imports.map(({ path }) => path).filter((path) => path.startsWith("wasi:")),
  };
}

/** The module that is bundled: the exports of the component. */
function glue(entry, engine, cold) {
  const quick = engine === "quickjs";
  return [
    quick ? 'import { settle } from "wharf-sdk:lib/engines/quickjs.js";' : "",
    'import * as host from "wharf:plugin/host@0.1.0";',
    'import { setPlaces } from "wharf-sdk:lib/errors.js";',
    'import { serve } from "wharf-sdk:lib/runtime.js";',
    `import plugin from ${JSON.stringify(entry)};`,
    `setPlaces(${PLACES});`,
    `const made = serve(host, plugin, { cold: ${JSON.stringify(cold)}${quick ? ", settle" : ""} });`,
    "export const { about, tools, resources, prompts, completions } = made;",
  ].join("\n");
}

function modules(engine, stubs) {
  return {
    name: "wharf-sdk",
    setup(build) {
      build.onResolve({ filter: /^wharf-sdk(\/(files|env))?$/ }, ({ path }) => ({
        path: join(LIB, OURS[path]),
        sideEffects: false,
      }));
      build.onResolve({ filter: /^wharf-sdk:lib\// }, ({ path }) => ({
        path: join(LIB, path.slice("wharf-sdk:lib/".length)),
      }));
      build.onResolve({ filter: /^wharf-sdk:engine$/ }, ({ path }) => ({ path, namespace: "engine" }));
      build.onLoad({ filter: /.*/, namespace: "engine" }, () => ({
        // A 64-bit number is a BigInt in one engine's bindings, a number in the other's.
        contents: `export const size = ${engine === "quickjs" ? "Number" : "BigInt"};`,
      }));
      build.onResolve({ filter: /^(wharf|wasi):/ }, ({ path }) =>
        stubs ? { path, namespace: "stub" } : { path, external: true },
      );
      build.onLoad({ filter: /.*/, namespace: "stub" }, ({ path }) => ({ contents: stubs[path], loader: "js" }));
      build.onResolve({ filter: NODE }, ({ path, importer }) => {
        const files = /^(node:)?fs(\/promises)?$/.test(path)
          ? '; files are read and written with "wharf-sdk/files"'
          : "";
        const by = importer.includes("node_modules")
          ? `, which ${importer.slice(importer.lastIndexOf("node_modules/") + 13)} wants,`
          : "";
        return {
          errors: [{ text: `"${path}"${by} is a part of Node.js, and a plugin does not run in Node.js${files}` }],
        };
      });
    },
  };
}

function said({ text, location }, from) {
  const entry = from.replace(/^\.\//, "");
  if (/^No matching export .* for import "default"$/.test(text) && location?.file === "wharf-sdk-entry.js") {
    return `${entry}: there is no default export; end it with \`export default plugin([…])\``;
  }
  if (/^Could not resolve/.test(text) && location?.file === "wharf-sdk-entry.js")
    return `${entry}: there is no such file`;
  const problem = /^Top-level await/.test(text)
    ? "await works only within functions: nothing can be waited for while the module loads"
    : text;
  return location ? `${location.file}:${location.line}:${location.column + 1}: ${problem}` : problem;
}

/** Where the lines of a bundle come from. */
class Places {
  #map;
  #project;

  constructor(map, project) {
    this.#map = map;
    this.#project = project;
  }

  /** The place of a line and column, both from 1, if it is in the author's own files. */
  find(line, column) {
    const found = this.#map.findEntry(line - 1, column - 1);
    if (!found?.originalSource || found.generatedLine !== line - 1) return undefined;
    const path = resolve(this.#project, found.originalSource);
    const file = relative(this.#project, path);
    const foreign =
      /(^|\/)node_modules\//.test(file) ||
      path.startsWith(LIB) ||
      isAbsolute(file) ||
      file.startsWith("..") ||
      file === "wharf-sdk-entry.js";
    return foreign ? undefined : { file, line: found.originalLine + 1, column: found.originalColumn + 1 };
  }

  /** The innermost place of the author's in a stack of V8's. */
  inStack(stack) {
    for (const [, line, column] of String(stack).matchAll(/plugin\.js:(\d+):(\d+)/g)) {
      const place = this.find(Number(line), Number(column));
      if (place) return `${place.file}:${place.line}:${place.column}`;
    }
    return undefined;
  }

  /** The first place of the author's where a word stands. */
  ofWord(code, word) {
    for (const [index, text] of code.split("\n").entries()) {
      const at = text.search(new RegExp(`\\b${word}\\b`));
      const place = at >= 0 && this.find(index + 1, at + 1);
      if (place) return `${place.file}:${place.line}:${place.column}`;
    }
    return undefined;
  }

  /** Which lines are the author's: `[line, file, its line, how many follow alike]`. Short enough to travel in the plugin. */
  table(code) {
    const table = [];
    code.split("\n").forEach((text, index) => {
      const place = this.find(index + 1, text.length - text.trimStart().length + 1);
      const last = table.at(-1);
      if (!place) return;
      const next =
        last && last[1] === place.file && index + 1 === last[0] + last[3] && place.line === last[2] + last[3];
      if (next) last[3]++;
      else table.push([index + 1, place.file, place.line, 1]);
    });
    return table;
  }
}

export const witFolder = join(SDK, "wit");
