// Runs a bundled server in a Node.js process of its own, with the modules that it will have as a plugin, and asks it for its lists.

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { Problem } from "../problem.js";

const CHILD = fileURLToPath(new URL("probe-child.js", import.meta.url));
const TIMEOUT_MS = 60_000;

/** What the host's interfaces are in the probe: no variables, no folders, and a log that is not kept. */
const HOST = {
  "wharf:plugin/logging@0.1.0": "export const log = () => {};",
  "wharf:plugin/progress@0.1.0": "export const report = () => {};",
  "wharf:plugin/announcements@0.1.0": "export const listChanged = () => {}; export const resourceUpdated = () => {};",
  "wharf:plugin/environment@0.1.0": 'export const config = () => "{}"; export const directories = () => [];',
  "wasi:cli/environment@0.2.0": "export const getEnvironment = () => [];",
  "wasi:filesystem/preopens@0.2.0": "export const getDirectories = () => [];",
};

/**
 * Returns what the server says of itself and its lists, what it used before it was connected, and whether it can be started twice. Without
 * lists, `ended` says why. `given` has the variables and arguments for the build.
 */
export async function probe({ code, project }) {
  const folder = await mkdtemp(join(tmpdir(), "wharf-probe-"));
  try {
    const file = join(folder, "server.mjs");
    const out = join(folder, "out.json");
    await writeFile(file, hosted(code));
    const { ended, text } = await child([CHILD, pathToFileURL(file).href, out], project, folder);
    const found = await readFile(out, "utf8").then(JSON.parse, () => undefined);
    if (!found) throw new Problem(`the server did not answer while it was built (${ended})${text ? `:\n${text}` : ""}`);
    return found;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Replaces the imports of the host's interfaces by modules that do nothing. */
function hosted(code) {
  return code.replace(
    /from "((?:wharf|wasi):[^"]+)"/g,
    (_, name) => `from ${JSON.stringify(`data:text/javascript,${encodeURIComponent(HOST[name] ?? "")}`)}`,
  );
}

/** The server is a stranger's code: it may read its bundle and write its answer, and start nothing. */
function permissions(folder) {
  const flag = process.allowedNodeEnvironmentFlags.has("--permission") ? "--permission" : "--experimental-permission";
  return [flag, `--allow-fs-read=${folder}`, `--allow-fs-read=${CHILD}`, `--allow-fs-write=${folder}`];
}

/** Runs Node.js on the child's script, without the variables of this process, and waits for its end. */
function child(args, cwd, folder) {
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH, NODE_NO_WARNINGS: "1" };
    const running = spawn(process.execPath, [...permissions(folder), ...args], {
      cwd,
      env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    let text = "";
    running.stderr.on("data", (piece) => (text = (text + piece).slice(-4000)));
    const timer = setTimeout(() => running.kill("SIGKILL"), TIMEOUT_MS);
    running.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({
        ended: signal ? `it took more than ${TIMEOUT_MS / 1000} seconds` : `exit code ${code}`,
        text: text.trim(),
      });
    });
  });
}
