// Runs a plugin's top level in Node.js before the engine takes its snapshot. This finds mistakes in a second, with file and line.

import vm from "node:vm";

import { bundle } from "./bundle.js";
import { sources } from "./host.js";
import { Problem } from "./problem.js";

const STUBS = sources((name) => `() => stop("${name}()")`);

/** The globals that each engine has in addition to the language itself. */
const GLOBALS = {
  starlingmonkey: [
    "URL",
    "URLSearchParams",
    "TextEncoder",
    "TextDecoder",
    "structuredClone",
    "atob",
    "btoa",
    "queueMicrotask",
    "Headers",
    "Request",
    "Response",
    "ReadableStream",
    "WritableStream",
    "TransformStream",
    "CompressionStream",
    "DecompressionStream",
    "AbortController",
    "AbortSignal",
    "Event",
    "EventTarget",
    "Blob",
    "FormData",
    "DOMException",
  ],
  quickjs: ["atob", "btoa", "queueMicrotask", "DOMException"],
};

// The snapshot would store the results of these functions for all calls. The engines themselves crash if they are called at build time;
// these replacements throw an error that names the call.
const GUARDS = `
  globalThis.stop = (what, constant) => {
    if (constant !== undefined && constantHere(new Error().stack)) return constant;
    const error = new Error(what + " was called while the module loads, which happens once, at build: call it in a function");
    error.atBuild = true;
    error.forgive = noted(error);
    throw error;
  };
  {
    const Real = Date;
    globalThis.Date = new Proxy(Real, {
      construct: (target, args, like) => (args.length ? Reflect.construct(target, args, like) : stop("new Date()")),
      apply: () => stop("Date()"),
      get: (target, name) => (name === "now" ? () => stop("Date.now()", 1_700_000_000_000) : Reflect.get(target, name)),
    });
    Real.prototype.constructor = Date;
    Math.random = () => stop("Math.random()", 0.5);
    globalThis.performance = { now: () => stop("performance.now()", 0) };
    globalThis.fetch = () => stop("fetch()");
    for (const name of ["setTimeout", "setInterval"]) globalThis[name] = () => stop(name + "()");
    for (const name of ["clearTimeout", "clearInterval"]) globalThis[name] = () => {};
    const secure = ["getRandomValues", "randomUUID"].map((name) => [name, () => stop("crypto." + name + "()")]);
    globalThis.crypto = { ...Object.fromEntries(secure), subtle: {} };
    globalThis.self = globalThis;
  }
`;

const LOAD_TIMEOUT_MS = 20_000;

/** Runs a plugin's top level. Returns its instructions and wants, and the tools whose validators must not run at build time. */
export async function check({ entry, engine, project }) {
  const { exports, fetches, constants } = await trial({ entry, engine, project });
  const { fixed, instructions, wants } = exports.about;
  const cold = fixed ? [...fixed.tools].filter(([, { schema }]) => schema.cold).map(([name]) => name) : [];
  return { cold, constants, fetches, instructions, wants };
}

/** Loads a plugin in Node.js and returns its exports. */
export async function trial({ entry, engine, project }) {
  const shown = entry.replace(/^\.\//, "");
  const { code, places, fetches } = await bundle({ entry, engine, project, stubs: STUBS });
  if (fetches && engine === "quickjs") {
    const place = places.ofWord(code, "fetch") ?? shown;
    throw new Problem(`${place}: fetch is used, which QuickJS does not have; build with --engine starlingmonkey`);
  }
  const context = vm.createContext(Object.fromEntries(GLOBALS[engine].map((name) => [name, globalThis[name]])));
  context.console = console;
  let constants = false;
  // What a package asks for while it loads is answered, because its author cannot change it.
  context.constantHere = (stack) => {
    const answered = places.inPackage(stack);
    constants ||= answered;
    return answered;
  };
  // An error that the author's code catches would still be a crash of the engine.
  const stops = new Set();
  context.noted = (error) => {
    stops.add(error);
    return () => stops.delete(error);
  };
  vm.runInContext(GUARDS, context);
  try {
    vm.runInContext(`${code}\nglobalThis.__plugin = __plugin;`, context, {
      filename: "plugin.js",
      timeout: LOAD_TIMEOUT_MS,
    });
  } catch (thrown) {
    if (thrown?.code === "ERR_SCRIPT_EXECUTION_TIMEOUT") {
      throw new Problem(`${shown}: the module is still loading after ${LOAD_TIMEOUT_MS / 1000} seconds`);
    }
    const what = thrown?.stack ? told(thrown) : `a value that is not an Error was thrown: ${thrown}`;
    throw new Problem(`${places.inStack(thrown?.stack) ?? shown}: ${what}`);
  }
  // Validators that are promises settle in this time.
  await new Promise((resolve) => setImmediate(resolve));
  const [stop] = stops;
  if (stop) throw new Problem(`${places.inStack(stop.stack) ?? shown}: ${stop.message}`);
  return { exports: context.__plugin, fetches, constants };
}

function told({ name, message, atBuild }) {
  return atBuild || name === "Error" ? message : `${name}: ${message}`;
}
