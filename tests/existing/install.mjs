// Installs packages of npm without running their scripts.

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const ABOUT = new URL("../../sdk-guest/ts/package.json", import.meta.url);

/** Installs these packages in a folder. */
export async function install(folder, dependencies) {
  const overrides = { "@bytecodealliance/preview2-shim": "0.25.0" };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, dependencies, overrides }));
  const options = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  await promisify(execFile)("npm", options, { cwd: folder });
}

/** Installs what the SDK builds components with, unless it is there. */
export async function installBuild(folder) {
  mkdirSync(folder, { recursive: true });
  const { peerDependencies } = JSON.parse(readFileSync(ABOUT, "utf8"));
  if (!existsSync(join(folder, "node_modules/esbuild"))) await install(folder, peerDependencies);
}
