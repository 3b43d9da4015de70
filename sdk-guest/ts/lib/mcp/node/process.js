// `node:process` for a server that runs as a plugin.

import { getEnvironment } from "wasi:cli/environment@0.2.0";
import EventEmitter from "node:events";
import { given } from "wharf-sdk:given";
import { building, touch } from "../build-time.js";
import { config, directories } from "../../host.js";
import { stderr, stdin, stdout } from "../wire.js";

/** What the server itself has set, as `dotenv` does. `undefined` stands for a deleted variable. */
let written = new Map();

function read(name) {
  if (typeof name !== "string") return undefined;
  if (written.has(name)) return written.get(name);
  if (building()) {
    touch(`env ${name}`);
    return given.env[name];
  }
  return getEnvironment().find(([key]) => key === name)?.[1];
}

function names() {
  touch("env *");
  const own = building() ? Object.keys(given.env) : getEnvironment().map(([name]) => name);
  return [...new Set([...own, ...written.keys()])].filter((name) => read(name) !== undefined);
}

const env = new Proxy(
  {},
  {
    get: (_, name) => read(name),
    has: (_, name) => read(name) !== undefined,
    set: (_, name, value) => Boolean(written.set(name, String(value))),
    deleteProperty: (_, name) => Boolean(written.set(name, undefined)),
    ownKeys: names,
    getOwnPropertyDescriptor(_, name) {
      const value = read(name);
      return value === undefined ? undefined : { value, writable: true, enumerable: true, configurable: true };
    },
    defineProperty: (_, name, { value }) => Boolean(written.set(name, String(value))),
  },
);

/** The arguments from the operator's config, `args = ["…"]`, or those that the build was given. */
function args() {
  touch("args");
  const asked = building() ? undefined : config().args;
  return Array.isArray(asked) ? asked.map(String) : given.args;
}

/** Thrown by `process.exit`, because a server must not run on after it. */
export class Exit extends Error {
  name = "Exit";
  constructor(code) {
    super(`the server ended itself with exit code ${code}`);
    this.exitCode = code;
  }
}

/** Called when the server ends itself. */
export const ending = { exit() {} };

const started = { at: 0 };

class Process extends EventEmitter {
  env = env;
  execArgv = [];
  execPath = "/usr/bin/node";
  title = "node";
  pid = 1;
  ppid = 0;
  platform = "linux";
  arch = "x64";
  version = "v22.22.0";
  versions = { node: "22.22.0", v8: "0.0", modules: "127" };
  release = { name: "node", lts: "Jod" };
  config = { variables: {} };
  features = {};
  exitCode = undefined;
  stdin = stdin;
  stdout = stdout;
  stderr = stderr;

  #argv;
  get argv() {
    // The list is kept, because some servers change it.
    const key = building();
    if (this.#argv?.key !== key)
      this.#argv = { key, list: ["/usr/bin/node", given.file ?? "/server/index.js", ...args()] };
    return this.#argv.list;
  }
  set argv(list) {
    this.#argv = { key: building(), list };
  }
  cwd() {
    touch("cwd");
    return (building() ? undefined : directories()[0]?.path) ?? "/";
  }
  chdir() {}
  exit(code = this.exitCode ?? 0) {
    const exit = new Exit(code);
    ending.exit(exit);
    throw exit;
  }
  abort() {
    this.exit(134);
  }
  kill() {
    return true;
  }
  nextTick(work, ...args) {
    queueMicrotask(() => work(...args));
  }
  hrtime = Object.assign(
    (before) => {
      const ms = performance.now();
      const [seconds, rest] = [Math.floor(ms / 1000), Math.round((ms % 1000) * 1e6)];
      if (!before) return [seconds, rest];
      const less = rest < before[1];
      return [seconds - before[0] - (less ? 1 : 0), rest - before[1] + (less ? 1e9 : 0)];
    },
    { bigint: () => BigInt(Math.round(performance.now() * 1e6)) },
  );
  uptime() {
    started.at ||= Date.now();
    return (Date.now() - started.at) / 1000;
  }
  memoryUsage = Object.assign(() => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }), {
    rss: () => 0,
  });
  cpuUsage() {
    return { user: 0, system: 0 };
  }
  getuid() {
    return 1000;
  }
  getgid() {
    return 1000;
  }
  umask() {
    return 0o022;
  }
  emitWarning(warning) {
    console.warn(warning);
  }
  binding(name) {
    throw new Error(`process.binding("${name}") does not exist in a plugin`);
  }
}

const process = new Process();
process.setMaxListeners(0);

/** Forgets what the server has done to the process, so that it can be started again. */
export function renew() {
  written = new Map();
  process.removeAllListeners();
  process.exitCode = undefined;
}

export default process;
export { env, stderr, stdin, stdout };
const bound = (name) => process[name].bind(process);
export const { pid, ppid, platform, arch, version, versions, release, hrtime, memoryUsage, execPath, execArgv } =
  process;
export const cwd = bound("cwd");
export const chdir = bound("chdir");
export const exit = bound("exit");
export const nextTick = bound("nextTick");
export const uptime = bound("uptime");
export const on = bound("on");
export const once = bound("once");
export const off = bound("off");
export const emitWarning = bound("emitWarning");
export const kill = bound("kill");
export const getuid = bound("getuid");
export const getgid = bound("getgid");
/** The list at the time of each access: a module that imports it at build sees the call's arguments in the call. */
export const argv = new Proxy([], {
  get: (_, name) => Reflect.get(process.argv, name),
  has: (_, name) => Reflect.has(process.argv, name),
  ownKeys: () => Reflect.ownKeys(process.argv),
  getOwnPropertyDescriptor: (_, name) => Reflect.getOwnPropertyDescriptor(process.argv, name),
});
