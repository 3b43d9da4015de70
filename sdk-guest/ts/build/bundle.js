// Bundles the author's modules and the SDK's into one module.

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

/**
 * The syntax that each engine lacks and that esbuild transpiles. On QuickJS these are `async` functions: the SDK replaces its promises, and
 * native `async` functions would not use the replacement.
 */
const LACKS = { starlingmonkey: {}, quickjs: { "async-await": false, "async-generator": false, "for-await": false } };

/**
 * Bundles an entry. `stubs`, for a trial run in Node.js, has sources for the modules that only wharf provides; without `stubs`, they
 * remain imports.
 */
export async function bundle({ entry, engine, project, stubs, cold = [], constants = false, live = false }) {
  const contents = glue(entry, engine, { cold, constants, live });
  const made = await bundled({ contents, engine, project, stubs }).catch((failed) => {
    throw failed.errors ? new Problem(failed.errors.map((error) => said(error, entry)).join("\n")) : failed;
  });
  const { code } = made;
  const places = new Places(new SourceMap(JSON.parse(made.map)), project);
  return {
    code: code.replace(PLACES, () => JSON.stringify(places.table(code))),
    places,
    fetches: /\bglobalThis\.fetch\b/.test(code),
    imports: made.imports.filter((path) => path.startsWith("wasi:")),
  };
}

/** Bundles a source. Returns its code, the map to the sources as JSON, and the modules that remain imports. */
export async function bundled({ contents, engine, project, stubs }) {
  const esbuild = await load("esbuild", project);
  const made = await esbuild.build({
    stdin: { contents, resolveDir: project, sourcefile: "wharf-sdk-entry.js" },
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
    // Only the global `fetch` gets this name, so its presence in the bundle says that the plugin uses it.
    define: { fetch: "globalThis.fetch" },
    legalComments: "none",
    logLevel: "silent",
    plugins: [modules(engine, stubs)],
  });
  const [{ imports }] = Object.values(made.metafile.outputs).filter(({ entryPoint }) => entryPoint);
  const text = (end) => made.outputFiles.find(({ path }) => path.endsWith(end)).text;
  return { code: text(".js"), map: text(".map"), imports: imports.map(({ path }) => path) };
}

/** Returns the source of the module that is bundled. It has the component's exports. */
function glue(entry, engine, { cold, constants, live }) {
  const quick = engine === "quickjs";
  return [
    constants ? 'import { loaded } from "wharf-sdk:lib/loading.js";' : "",
    quick ? 'import { settle } from "wharf-sdk:lib/engines/quickjs.js";' : "",
    'import { log } from "wharf:plugin/logging@0.1.0";',
    'import { report as progress } from "wharf:plugin/progress@0.1.0";',
    'import { listChanged, resourceUpdated } from "wharf:plugin/announcements@0.1.0";',
    'import { config, directories } from "wharf:plugin/environment@0.1.0";',
    'import { setPlaces } from "wharf-sdk:lib/errors.js";',
    'import { serve } from "wharf-sdk:lib/runtime.js";',
    `import plugin from ${JSON.stringify(entry)};`,
    `setPlaces(${PLACES});`,
    "const host = { log, progress, listChanged, resourceUpdated, config, directories };",
    `const made = serve(host, plugin, { cold: ${JSON.stringify(cold)}${live ? ", live: true" : ""}${quick ? ", settle" : ""} });`,
    constants ? "loaded();" : "",
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
        // The bindings of StarlingMonkey represent 64-bit integers as BigInt, those of QuickJS as number.
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
          ? `, which ${importer.slice(importer.lastIndexOf("node_modules/") + 13)} imports,`
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

/** Maps the lines of a bundle to the author's source files. */
class Places {
  #map;
  #project;

  constructor(map, project) {
    this.#map = map;
    this.#project = project;
  }

  /** Returns the source position of a line and column, which count from 1, if it is in the author's own files. */
  find(line, column) {
    const found = this.#map.findEntry(line - 1, column - 1);
    if (!found?.originalSource || found.generatedLine !== line - 1) return undefined;
    const path = resolve(this.#project, found.originalSource);
    const file = relative(this.#project, path);
    const foreign =
      // A module that the build puts in the place of one of wharf.
      found.originalSource.startsWith("stub:") ||
      /(^|\/)node_modules\//.test(file) ||
      path.startsWith(LIB) ||
      isAbsolute(file) ||
      file.startsWith("..") ||
      file === "wharf-sdk-entry.js";
    return foreign ? undefined : { file, line: found.originalLine + 1, column: found.originalColumn + 1 };
  }

  /** Returns the innermost position in the author's files in a stack trace of V8. */
  inStack(stack) {
    for (const [, line, column] of String(stack).matchAll(/plugin\.js:(\d+):(\d+)/g)) {
      const place = this.find(Number(line), Number(column));
      if (place) return `${place.file}:${place.line}:${place.column}`;
    }
    return undefined;
  }

  /** Whether the innermost position of a stack trace of V8 that has a source is in a package. */
  inPackage(stack) {
    for (const [, line, column] of String(stack).matchAll(/plugin\.js:(\d+):(\d+)/g)) {
      const found = this.#map.findEntry(Number(line) - 1, Number(column) - 1);
      if (found?.originalSource) return /(^|\/)node_modules\//.test(found.originalSource);
    }
    return false;
  }

  /** Returns the first position in the author's files at which a word occurs. */
  ofWord(code, word) {
    for (const [index, text] of code.split("\n").entries()) {
      const at = text.search(new RegExp(`\\b${word}\\b`));
      const place = at >= 0 && this.find(index + 1, at + 1);
      if (place) return `${place.file}:${place.line}:${place.column}`;
    }
    return undefined;
  }

  /** Returns the line ranges of the author's files: `[line, file, its line, number of lines]`. The table is embedded in the plugin. */
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
