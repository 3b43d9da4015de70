// Finds the part of a package that was made for Node.js, where `exports` has nothing for browsers in its place.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const PACKAGE = /^((?:@[^/]+\/)?[^./@][^/]*)(\/.+)?$/;

/**
 * Returns the file that Node.js would load for `import "name"`, or `undefined`: if the bundler `failed` to find one, or if the package has one
 * for Node.js, none for bundlers, and none for browsers unless Node.js is `preferred`.
 */
export function nodeFile(name, from, kind, { failed, preferred }) {
  const [, owner, inner = ""] = PACKAGE.exec(name) ?? [];
  const folder = owner && folderOf(owner, from);
  if (!folder) return undefined;
  const { exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (typeof exports !== "object" || exports === null) return undefined;
  const wanted = kind === "require-call" || kind === "require-resolve" ? "require" : "import";
  const entry = entryOf(exports, `.${inner}`);
  if (!entry) return undefined;
  const named = conditions(entry.target);
  // What is for bundlers loads in a bundle; what is for Node.js may rely on how Node.js takes CommonJS for a module.
  const isForNode = named.has("node") && !named.has("module");
  if (!failed && !(isForNode && (preferred || ![...named].some((one) => OTHERS.test(one))))) return undefined;
  const target = chosen(entry.target, new Set(["node", wanted, "default"]));
  if (typeof target !== "string") return undefined;
  const file = join(folder, target.replaceAll("*", entry.star));
  return existsSync(file) ? file : undefined;
}

function folderOf(name, from) {
  for (let at = from; ; at = dirname(at)) {
    const folder = join(at, "node_modules", name);
    if (existsSync(join(folder, "package.json"))) return folder;
    if (at === dirname(at)) return undefined;
  }
}

/** Returns what `exports` has for a path of the package, and what stands for its `*`. */
function entryOf(exports, path) {
  const paths = Object.keys(exports).some((key) => key.startsWith(".")) ? exports : { ".": exports };
  if (Object.hasOwn(paths, path)) return { target: paths[path], star: "" };
  for (const [key, target] of Object.entries(paths)) {
    const [start, end] = key.split("*");
    if (
      end !== undefined &&
      path.startsWith(start) &&
      path.endsWith(end) &&
      path.length > start.length + end.length - 1
    )
      return { target, star: path.slice(start.length, path.length - end.length) };
  }
  return undefined;
}

/** Conditions of parts that use nothing of Node.js. */
const OTHERS = /^(browser|worker|workerd|edge-light)$/;

/** Returns all conditions that a target names. */
function conditions(target) {
  if (typeof target !== "object" || target === null) return new Set();
  const names = Array.isArray(target) ? [] : Object.keys(target);
  return new Set([...names, ...Object.values(target).flatMap((inner) => [...conditions(inner)])]);
}

/** Returns the first target whose conditions all hold. */
function chosen(target, conditions) {
  if (typeof target === "string") return target;
  if (Array.isArray(target)) return target.map((one) => chosen(one, conditions)).find((one) => one !== undefined);
  if (typeof target !== "object" || target === null) return undefined;
  for (const [condition, inner] of Object.entries(target)) {
    if (!conditions.has(condition)) continue;
    const found = chosen(inner, conditions);
    if (found !== undefined) return found;
  }
  return undefined;
}
