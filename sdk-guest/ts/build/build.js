// Builds a component from the entry file of a plugin.

import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";

import { bundle, witFolder } from "./bundle.js";
import { check } from "./check.js";
import { load } from "./packages.js";
import { Problem } from "./problem.js";
import { withoutProperties } from "./regexp.js";

export const ENGINES = { starlingmonkey, quickjs };

/** Builds the component, and returns its size in bytes. */
export async function build({ entry, output, engine = "starlingmonkey", project = process.cwd() }) {
  if (!(engine in ENGINES))
    throw new Problem(`there is no engine ${engine}; the engines are: ${Object.keys(ENGINES).join(", ")}`);
  const from = fromProject(entry, project);
  const { cold, constants, fetches, ...about } = await check({ entry: from, engine, project });
  const { code, imports } = await bundle({ entry: from, engine, project, cold, constants });
  const known = engine === "starlingmonkey" ? await withoutProperties(code, project) : code;
  const made = await component({ code: known, imports, fetches, engine, project });
  return write({ component: made, ...about, project, output });
}

/** Returns the path of an entry as an import in the project's folder. */
export function fromProject(entry, project) {
  const path = relative(project, resolve(project, entry));
  return path.startsWith(".") ? path : `./${path}`;
}

/** Makes a component of a module. */
export async function component({ code, imports, fetches, engine = "starlingmonkey", project }) {
  const folder = await mkdtemp(join(tmpdir(), "wharf-sdk-"));
  try {
    const source = join(folder, "plugin.js");
    await writeFile(source, code);
    const wit = join(folder, "wit");
    await cp(witFolder, wit, { recursive: true });
    await writeFile(join(wit, "world.wit"), world(imports));
    return await ENGINES[engine]({ source, code, wit, fetches, project });
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The component that was made, for the author. */
export const sized = (output, bytes) => `${output}: ${(bytes / 1e6).toFixed(1)} MB`;

/** Writes a component with its custom sections, and returns its size in bytes. */
export async function write({ component, project, output, ...about }) {
  const bytes = Buffer.concat([component, ...sections(about)]);
  const target = resolve(project, output);
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, bytes);
  return bytes.length;
}

/** The world of the component: all exports of the contract, and only the WASI imports that the plugin's modules use. */
function world(imports) {
  const lines = ["include wharf:plugin/full-plugin@0.1.0;", ...imports.map((name) => `import ${name};`)];
  return `package wharf-sdk:javascript@0.1.0;\n\nworld plugin {\n  ${lines.join("\n  ")}\n}\n`;
}

/**
 * The variables of the program that runs the engine, which gets no others. It keeps a cache in the home directory, and would take that of the
 * user's account, where a build by wharf may not write. Variables come into the component, so the path says nothing of this machine.
 */
export function engineVariables(home = homedir(), here = process.cwd()) {
  const inside = relative(here, home);
  const isOwn = inside && !inside.startsWith("..") && !isAbsolute(inside);
  return isOwn ? { HOME: `/proc/self/cwd/${inside}` } : undefined;
}

async function starlingmonkey({ source, wit, fetches, project }) {
  const { componentize } = await load("@bytecodealliance/componentize-js", project);
  const { component } = await componentize({
    sourcePath: source,
    witPath: wit,
    worldName: "plugin",
    env: engineVariables(),
    disableFeatures: fetches ? ["fetch-event"] : ["http", "fetch-event"],
  });
  return component;
}

async function quickjs({ source, code, wit, project }) {
  const { componentize } = await load("componentize-qjs", project);
  const { component } = await componentize({
    jsSource: code,
    jsPath: source,
    moduleRoot: dirname(source),
    witPath: wit,
    world: "plugin",
    // Without this option, the component needs the async support of the component model, which WASI 0.2 lacks.
    sync: true,
  });
  return component;
}

/** Custom sections that wharf reads without running the plugin. */
function sections({ instructions, wants, keepsState }) {
  const made = [];
  if (instructions !== undefined) made.push(section("wharf:instructions", instructions, 2 << 10));
  if (wants !== undefined) made.push(section("wharf:wants", JSON.stringify(wants), 16 << 10));
  if (keepsState) made.push(section("wharf:instances", "kept", 4));
  return made;
}

function section(name, text, most) {
  const bytes = Buffer.from(text);
  if (bytes.length > most)
    throw new Problem(`${name.slice("wharf:".length)}: ${bytes.length} bytes are more than ${most}`);
  const content = Buffer.concat([leb(name.length), Buffer.from(name), bytes]);
  return Buffer.concat([Buffer.from([0]), leb(content.length), content]);
}

/** Encodes an unsigned number as LEB128. */
function leb(number) {
  const bytes = [];
  for (let left = number; ;) {
    const low = left & 0x7f;
    left >>>= 7;
    bytes.push(left ? low | 0x80 : low);
    if (!left) return Buffer.from(bytes);
  }
}
