// Installs what the build of a server needs into the plugin's folder: the server's packages, and the build's own in fixed versions.

import { spawn } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join, relative, resolve } from "node:path";

import { isNextToSdk } from "../packages.js";
import { Problem } from "../problem.js";
import { npmName, packageFolder } from "./entry.js";

const sdk = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));

/** The packages of the build, but for those that are installed next to the SDK. QuickJS is not used for servers. */
const TOOLS = Object.entries(sdk.peerDependencies).filter(([name]) => name !== "componentize-qjs" && !isNextToSdk(name));

/** Newer versions of this package break the pinned componentize-js. */
const OVERRIDES = { "@bytecodealliance/preview2-shim": "0.25.0" };

// No package's install script is run: it would be a program of a stranger on this machine, and nothing of what it makes can be in a plugin.
// What npm takes from git it prepares by programs of the repository, whatever it is told about scripts, so it gets no git. A link to the
// program of a package would make the file executable that the program is a link to.
const NPM = ["--no-audit", "--no-fund", "--ignore-scripts", "--git=/bin/false", "--loglevel=error"];

/** Installs the packages with npm, and keeps package.json and package-lock.json. */
export async function setup({ entry, project = process.cwd(), say = (text) => console.error(text) }) {
  const file = join(project, "package.json");
  const before = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { private: true, type: "module" };
  const dependencies = { ...wanted(entry, project, before), ...before.dependencies };
  const devDependencies = { ...Object.fromEntries(TOOLS), ...before.devDependencies };
  const overrides = { ...(TOOLS.length ? OVERRIDES : {}), ...before.overrides };
  const after = { ...before, dependencies, devDependencies, overrides };
  const npm = npmName(entry);
  if (npm && (npm.version || !dependencies[npm.name]))
    after.dependencies[npm.name] = npm.version ?? before.dependencies?.[npm.name] ?? "latest";
  const lock = join(project, "package-lock.json");
  fromRegistries(after, existsSync(lock) ? JSON.parse(readFileSync(lock, "utf8")) : {});
  const same = JSON.stringify(after) === JSON.stringify(before) && existsSync(lock);
  if (!same) writeFileSync(file, `${JSON.stringify(after, null, 2)}\n`);
  say(
    same
      ? "installing the packages of package-lock.json"
      : `installing ${Object.keys(after.dependencies).join(", ") || "the packages of the build"}`,
  );
  await run(same ? "ci" : "install", project);
  say("the packages are installed");
}

/** Refuses packages that are not from a registry or this machine, as far as package.json and package-lock.json name them. */
export function fromRegistries({ dependencies, devDependencies, optionalDependencies, overrides }, lock = {}) {
  const isKnown = (version) => !/[:/]/.test(version) || /^(npm:|file:|workspace:|\.{0,2}\/|~\/)/.test(version);
  const look = (packages) => {
    for (const [name, version] of Object.entries(packages ?? {})) {
      if (version && typeof version === "object") look(version);
      else if (typeof version === "string" && !isKnown(version))
        throw new Problem(
          `the package ${name} is to come from ${version}, but packages come from a registry or from this machine: what is in git is ` +
            "prepared by programs of its own; name a version, or a folder as file:PATH",
        );
    }
  };
  for (const [name, { resolved = "" }] of Object.entries(lock.packages ?? {}))
    if (/^git[+:]/.test(resolved)) look({ [name]: resolved });
  for (const packages of [dependencies, devDependencies, optionalDependencies, overrides]) look(packages);
}

/** Returns the server's packages and their versions, as its package.json or its own imports name them. */
function wanted(entry, project, before) {
  if (npmName(entry)) return {};
  const path = resolve(project, entry);
  if (!existsSync(path)) throw new Problem(`${entry}: there is no such file or folder`);
  const root = packageFolder(statSync(path).isDirectory() ? path : dirname(path));
  if (root && resolve(root) === resolve(project) && before.dependencies) return {};
  if (root && resolve(root) !== resolve(project)) {
    const { dependencies = {} } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const moved = ([name, version]) => [
      name,
      version.startsWith("file:") ? `file:${relative(project, resolve(root, version.slice(5)))}` : version,
    ];
    return Object.fromEntries(Object.entries(dependencies).map(moved));
  }
  if (statSync(path).isDirectory()) return {};
  return Object.fromEntries([...packagesOf(path)].map((name) => [name, "latest"]));
}

const IMPORT = /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)["']([^"']+)["']/g;

/** Returns the packages that a file and the files next to it import. */
function packagesOf(path, seen = new Set()) {
  const found = new Set();
  if (seen.has(path) || !existsSync(path)) return found;
  seen.add(path);
  for (const [, name] of readFileSync(path, "utf8").matchAll(IMPORT)) {
    if (name.startsWith(".")) {
      const base = resolve(dirname(path), name);
      const next = [base, base.replace(/\.js$/, ".ts"), `${base}.ts`, `${base}.js`].find(
        (one) => existsSync(one) && statSync(one).isFile(),
      );
      if (next) for (const one of packagesOf(next, seen)) found.add(one);
    } else if (!name.startsWith("node:") && !name.startsWith("/") && !builtinModules.includes(name)) {
      found.add(
        name
          .split("/")
          .slice(0, name.startsWith("@") ? 2 : 1)
          .join("/"),
      );
    }
  }
  return found;
}

function run(command, cwd) {
  return new Promise((done, failed) => {
    const npm = spawn("npm", [command, ...NPM], { cwd, stdio: ["ignore", 2, 2], shell: process.platform === "win32" });
    npm.on("error", () => failed(new Problem("npm cannot be started; install Node.js with npm: https://nodejs.org")));
    npm.on("close", (code) =>
      code === 0 ? done() : failed(new Problem(`npm ${command} failed with exit code ${code}; its messages are above`)),
    );
  });
}
