// The exports of a component that was built for `wharf dev`: those of the plugin's code as it is now, which is run once in each instance.

import { Failure } from "./errors.js";
import { readFile } from "./files-sync.js";
import { LIVE } from "./host.js";
import { answered } from "./runtime.js";

const FILE = "plugin.js";
let plugin;

function read() {
  try {
    return readFile(`${LIVE}/${FILE}`, "utf8");
  } catch {
    throw new Failure(
      "this component was built for `wharf dev`, and contains no code of the plugin; make one with `wharf build`",
    );
  }
}

function now() {
  if (!plugin) {
    const code = read();
    // In the global scope, so that the lines of stack traces are those of the file.
    (0, eval)(`${code}\n//# sourceURL=${FILE}`);
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
