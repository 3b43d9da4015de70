// Builds a plugin for `wharf dev`: a component that holds the engine alone, and a folder with the bundled plugin, which each instance runs when
// it starts. The component is made once, so a changed line is served within a second or two.

import { createHash } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

import { component, fromProject, sized, write } from "./build.js";
import { bundle, bundled } from "./bundle.js";
import { check } from "./check.js";
import { HOST, sources } from "./host.js";
import { versionOf } from "./packages.js";
import { Problem } from "./problem.js";
import { withoutProperties } from "./regexp.js";

const ENGINE = "starlingmonkey";
const BUNDLE = "plugin.js";
/** The bundle takes the functions of wharf from here. */
const GIVEN = "__wharfGiven";

/** Builds the component if it is not there already, and the folder `live`. Returns what was made, for the author. */
export async function live({ entry, output, live: folder, engine = ENGINE, project = process.cwd() }) {
  if (engine !== ENGINE) throw new Problem(`--live is for the engine ${ENGINE}`);
  const from = fromProject(entry, project);
  const { cold, constants, fetches, ...about } = await check({ entry: from, engine, project });
  const stubs = sources((name, module) => `${GIVEN}[${JSON.stringify(module)}].${name}`);
  const { code } = await bundle({ entry: from, engine, project, cold, constants, stubs, live: true });
  await put({ code: await withoutProperties(code, project), folder: resolve(project, folder) });
  const made = await engineAlone({ output: resolve(project, output), fetches, about, project });
  return shown({ folder, output, made });
}

/** What was made, for the author. */
export const shown = ({ folder, output, made }) => (made ? `${folder}, ${sized(output, made)}` : folder);

/** Puts the code into the folder, which it replaces as a whole. */
export async function put({ code, folder }) {
  const fresh = `${folder}.partial`;
  await rm(fresh, { recursive: true, force: true });
  await mkdir(fresh, { recursive: true });
  await writeFile(join(fresh, BUNDLE), code);
  await rm(folder, { recursive: true, force: true });
  await rename(fresh, folder);
}

/** Makes the component, unless it was made from the same. Returns its size in bytes if it was made. */
async function engineAlone({ output, fetches, about, project }) {
  const source = [
    ...Object.keys(HOST).map((path, index) => `import * as given${index} from ${JSON.stringify(path)};`),
    `globalThis.${GIVEN} = { ${Object.keys(HOST).map((path, index) => `${JSON.stringify(path)}: given${index}`)} };`,
    'export { tools, resources, prompts, completions } from "wharf-sdk:lib/live.js";',
  ].join("\n");
  const { code } = await bundled({ contents: source, engine: ENGINE, project });
  return unlessMade({ code, fetches, about }, { output, project }, async () => {
    const imports = Object.keys(HOST).filter((path) => path.startsWith("wasi:"));
    const made = await component({ code, imports, fetches, engine: ENGINE, project });
    return write({ component: made, ...about, project, output });
  });
}

/** Makes a component by `make`, unless it is there and was made from the same inputs. Returns its size in bytes if it was made. */
export async function unlessMade(inputs, { output, project }, make) {
  const all = { ...inputs, engine: versionOf("@bytecodealliance/componentize-js", project) };
  const digest = createHash("sha256").update(JSON.stringify(all)).digest("hex");
  const record = `${output}.inputs`;
  const [before] = await Promise.all([
    readFile(record, "utf8").catch(() => ""),
    mkdir(dirname(output), { recursive: true }),
  ]);
  if (before === digest && (await readFile(output).catch(() => undefined))) return undefined;
  const bytes = await make();
  await writeFile(record, digest);
  return bytes;
}
