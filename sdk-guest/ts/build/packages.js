// Finds the build tools, in the versions that the author's project pins.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

import { Problem } from "./problem.js";

const { peerDependencies } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

/** Returns the folder of a package. It is looked up from the project's folder and not from the SDK's, which may be elsewhere. */
export function packageFolderOf(name, project) {
  for (let folder = project; ; folder = dirname(folder)) {
    const place = join(folder, "node_modules", name);
    if (existsSync(join(place, "package.json"))) return place;
    if (folder === dirname(folder)) break;
  }
  throw new Problem(
    `${name} is not installed; run: npm install --save-dev --save-exact ${name}@${peerDependencies[name]}`,
  );
}

export const versionOf = (name, project) =>
  JSON.parse(readFileSync(join(packageFolderOf(name, project), "package.json"), "utf8")).version;

/** Loads the module of a package. */
export async function load(name, project) {
  const place = packageFolderOf(name, project);
  const { exports, main } = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
  const root = exports?.["."] ?? exports;
  const found = [root].flat().find((one) => one?.import)?.import ?? main ?? "index.js";
  return import(pathToFileURL(join(place, typeof found === "string" ? found : found.default)));
}
