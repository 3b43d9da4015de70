// The exports of a component that was built for `wharf dev`: those of the plugin's code as it is now, which is run once in each instance.

import { liveCode } from "./live-code.js";
import { answered } from "./runtime.js";

let plugin;

function now() {
  if (!plugin) {
    // In the global scope, so that the lines of stack traces are those of the file.
    (0, eval)(liveCode());
    plugin = globalThis.__plugin;
  }
  return plugin;
}

/** Returns functions that call those of the same names. */
const passed = (kind, names) =>
  Object.fromEntries(names.map((name) => [name, (...given) => answered(now)[kind][name](...given)]));

export const tools = passed("tools", ["listTools", "callTool"]);
export const resources = passed("resources", ["listResources", "listTemplates", "readResource"]);
export const prompts = passed("prompts", ["listPrompts", "getPrompt"]);
export const completions = passed("completions", ["complete"]);
