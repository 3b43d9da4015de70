// The code that a component built for `wharf dev` runs: it lies in a folder, which wharf gives to each instance.

import { Failure } from "./errors.js";
import { readFile } from "./files-sync.js";
import { LIVE } from "./host.js";

const FILE = "plugin.js";

/** Returns the code as it is now. Its lines in stack traces are those of the file. */
export function liveCode() {
  try {
    return `${readFile(`${LIVE}/${FILE}`, "utf8")}\n//# sourceURL=${FILE}`;
  } catch {
    throw new Failure(
      "this component was built for `wharf dev`, and contains no code of the plugin; make one with `wharf build`",
    );
  }
}
