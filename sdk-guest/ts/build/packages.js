// Finds the build tools, in the versions that the author's project pins.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { Problem } from "./problem.js";

const { peerDependencies } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

const OWN = fileURLToPath(new URL("..", import.meta.url));

/** Whether a package is installed next to the SDK, in the version that it is made for. So wharf installs what builds all servers. */
export const isNextToSdk = (name) => versionAt(found(name, OWN)) === peerDependencies[name];

/** Returns the folder of a package: next to the SDK, else from the project's folder on, since the SDK may be elsewhere. */
export function packageFolderOf(name, project) {
  const place = isNextToSdk(name) ? found(name, OWN) : found(name, project);
  if (place) return place;
  throw new Problem(
    `${name} is not installed; run: npm install --save-dev --save-exact ${name}@${peerDependencies[name]}`,
  );
}

/** Looks for the folder of a package as Node.js does. */
function found(name, from) {
  for (let folder = from; ; folder = dirname(folder)) {
    const place = join(folder, "node_modules", name);
    if (existsSync(join(place, "package.json"))) return place;
    if (folder === dirname(folder)) return undefined;
  }
}

const versionAt = (place) => place && JSON.parse(readFileSync(join(place, "package.json"), "utf8")).version;

export const versionOf = (name, project) => versionAt(packageFolderOf(name, project));

/** Loads the module of a package. */
export async function load(name, project) {
  const place = packageFolderOf(name, project);
  const { exports, main } = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
  const root = exports?.["."] ?? exports;
  const file = [root].flat().find((one) => one?.import)?.import ?? main ?? "index.js";
  return import(pathToFileURL(join(place, typeof file === "string" ? file : file.default)));
}
