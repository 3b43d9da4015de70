// Finds the module to run of what an author names: a file, a folder with package.json, or a package of npm.

import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

import { Problem } from "../problem.js";

const CODE = /\.([cm]?[jt]s|[jt]sx)$/;
const NPM = /^npm:((?:@[a-z0-9~._-]+\/)?[a-z0-9~._-]+)(?:@([^#]+))?(?:#(.+))?$/i;

/** Returns the name, version and program of `npm:NAME[@VERSION][#PROGRAM]`, or `undefined`. */
export function npmName(entry) {
  const found = NPM.exec(entry);
  return found ? { name: found[1], version: found[2], program: found[3] } : undefined;
}

const json = (file) => JSON.parse(readFileSync(file, "utf8"));

/** Returns the file to run, the folder of the server's own package, and that package's `package.json`. */
export function findEntry(entry, project) {
  const npm = npmName(entry);
  if (npm) {
    const folder = join(project, "node_modules", npm.name);
    if (!existsSync(join(folder, "package.json"))) {
      throw new Problem(`${npm.name} is not installed in ${project}; run: npx wharf-sdk setup --mcp ${entry}`);
    }
    return ofPackage(folder, entry, npm.program);
  }
  const path = resolve(project, entry);
  if (!existsSync(path)) throw new Problem(`${entry}: there is no such file or folder`);
  if (statSync(path).isDirectory()) {
    if (!existsSync(join(path, "package.json"))) throw new Problem(`${entry}: there is no package.json in this folder`);
    return ofPackage(path, entry);
  }
  if (!CODE.test(path)) throw new Problem(`${entry}: a server is a .ts, .js, .mjs or .cjs file, a folder, or npm:NAME`);
  const root = packageFolder(dirname(path));
  return { file: path, root: root ?? dirname(path), about: root ? json(join(root, "package.json")) : {} };
}

/** Returns the nearest folder with a package.json. */
export function packageFolder(folder) {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, "package.json"))) return at;
    if (at === dirname(at)) return undefined;
  }
}

/** The file is that of the package's command, or else its main module. Sources are preferred to files that were not built yet. */
function ofPackage(root, entry, program) {
  const about = json(join(root, "package.json"));
  const { bin, main, exports, name = "" } = about;
  const commands = typeof bin === "string" ? { [name.replace(/^.*\//, "")]: bin } : (bin ?? {});
  if (program && !Object.hasOwn(commands, program))
    throw new Problem(`${name} has no program ${program}; it has: ${Object.keys(commands).join(", ") || "none"}`);
  const chosen = commands[program] ?? commands[name.replace(/^.*\//, "")] ?? commands[name] ?? Object.values(commands)[0];
  const root_ =
    typeof exports === "string" ? exports : (exports?.["."]?.import ?? exports?.["."]?.default ?? exports?.["."]);
  for (const one of [chosen, typeof root_ === "string" ? root_ : root_?.default, main, "index.js"]) {
    if (typeof one !== "string") continue;
    const found = existing(resolve(root, one)) ?? source(root, one);
    if (found) return { file: found, root, about };
  }
  throw new Problem(
    `${entry}: its package.json names no command (\`bin\`) and no main module that exists; name the file itself`,
  );
}

function existing(path) {
  for (const one of [path, `${path}.js`, `${path}.mjs`, `${path}.cjs`, join(path, "index.js")]) {
    if (existsSync(one) && statSync(one).isFile()) return one;
  }
  return undefined;
}

/** `dist/index.js` that was not built yet comes from `src/index.ts` or `index.ts`. */
function source(root, path) {
  const inner = relative(root, resolve(root, path))
    .replace(/^(dist|build|lib|out)\//, "")
    .replace(/\.[cm]?js$/, ".ts");
  return [join(root, "src", inner), join(root, inner)].find((one) => existsSync(one));
}
