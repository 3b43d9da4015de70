// `node:module`. `createRequire` finds the parts of Node.js that the server's modules name, and the JSON files of its package; its code is
// part of the bundle already.

import { builtins } from "wharf-sdk:builtins";
import { lacking } from "../lacking.js";
import { absolute, readFile } from "./fs-core.js";

export function createRequire(from) {
  const folder = absolute(String(from).replace(/^file:\/\//, "")).replace(/\/[^/]*$/, "");
  const require = (name) => {
    const part = builtins[name.replace(/^node:/, "")];
    if (part) return part.default ?? part;
    if (/^\.{0,2}\//.test(name) && name.endsWith(".json")) {
      return JSON.parse(readFile(name.startsWith("/") ? name : `${folder}/${name}`, "utf8"));
    }
    throw Object.assign(
      new Error(`Cannot find module '${name}': a plugin can require only JSON files of its own package`),
      {
        code: "MODULE_NOT_FOUND",
      },
    );
  };
  return Object.assign(require, { resolve: (name) => name, cache: {} });
}

export const builtinModules = [];
export const isBuiltin = () => false;
export const register = lacking("module", "register");
export default Object.assign(lacking("module", "Module"), { createRequire, builtinModules, isBuiltin, register });
