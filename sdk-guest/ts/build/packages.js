// Finds the build tools, in the versions that the author's project pins.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

import { Problem } from "./problem.js";

const { peerDependencies } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

/** Loads the module of a package. It is looked up from the project's folder and not from the SDK's, which may be elsewhere. */
export async function load(name, project) {
  for (let folder = project; ; folder = dirname(folder)) {
    const place = join(folder, "node_modules", name);
    if (existsSync(join(place, "package.json"))) {
      const { exports, main } = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
      return import(pathToFileURL(join(place, exports?.import ?? main ?? "index.js")));
    }
    if (folder === dirname(folder)) break;
  }
  throw new Problem(
    `${name} is not installed; run: npm install --save-dev --save-exact ${name}@${peerDependencies[name]}`,
  );
}
