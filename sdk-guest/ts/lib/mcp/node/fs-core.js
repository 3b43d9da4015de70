// The functions of `node:fs` that wait for their result: over the directories that are open to the call, and over the text files of the
// server's own package, which the build embeds.

import { Buffer } from "node:buffer";
import { given } from "wharf-sdk:given";
import { packageFiles } from "wharf-sdk:package-files";
import * as files from "../../files-sync.js";
import { building, touch } from "../build-time.js";
import process from "./process.js";

export const constants = {
  F_OK: 0,
  R_OK: 4,
  W_OK: 2,
  X_OK: 1,
  O_RDONLY: 0,
  O_WRONLY: 1,
  O_RDWR: 2,
  O_CREAT: 64,
  COPYFILE_EXCL: 1,
};

function failure(code, words, syscall, path) {
  return Object.assign(new Error(`${code}: ${words}, ${syscall} '${path}'`), { code, errno: -1, syscall, path });
}

/** Returns the absolute path that Node.js would use: relative paths begin at the first open directory. */
export function absolute(path) {
  const given = path instanceof URL ? decodeURIComponent(path.pathname) : String(path);
  const parts = [];
  for (const part of (given.startsWith("/") ? given : `${process.cwd()}/${given}`).split("/")) {
    if (part === "..") parts.pop();
    else if (part && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}

/** Runs `work` on a path of an open directory; errors get the members that they have in Node.js. */
function outside(syscall, path, work) {
  if (building()) {
    touch("files");
    throw failure("ENOENT", "no such file or directory", syscall, path);
  }
  try {
    return work(path);
  } catch (thrown) {
    if (!thrown?.code) throw thrown;
    // A path outside of all open directories does not exist for the plugin: servers that look for an optional file then go on.
    const hidden = thrown.code === "EACCES" && ["open", "stat", "access", "scandir"].includes(syscall);
    const told = String(thrown.message)
      .replace(/^\w+: /, "")
      .replace(/, [^,]*$/, "");
    if (!hidden) throw failure(thrown.code, told, syscall, path);
    throw failure("ENOENT", "no such file or directory in the folders that are open to this plugin", syscall, path);
  }
}

const own = (path) => (Object.hasOwn(packageFiles, path) ? packageFiles[path] : undefined);
/** Folders among the arguments of the build are there while the plugin is built, and empty: servers check them at their start. */
const argument = (path) => building() && given.args.includes(path);
const ownFolder = (path) =>
  argument(path) || Object.keys(packageFiles).some((name) => name.startsWith(path === "/" ? path : `${path}/`));

function decoded(bytes, options) {
  const encoding = typeof options === "string" ? options : options?.encoding;
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return encoding && encoding !== "buffer" ? buffer.toString(encoding) : buffer;
}

const bytesOf = (data, options) => {
  if (typeof data !== "string") return new Uint8Array(data.buffer ?? data, data.byteOffset, data.byteLength);
  return Buffer.from(data, typeof options === "string" ? options : (options?.encoding ?? "utf8"));
};

export function readFile(path, options) {
  const at = absolute(path);
  const text = own(at);
  return decoded(text === undefined ? outside("open", at, (at) => files.readFile(at)) : Buffer.from(text), options);
}

export function writeFile(path, data, options) {
  const flag = options?.flag ?? "w";
  outside("open", absolute(path), (at) => files.writeFile(at, bytesOf(data, options), { flag }));
}

export const appendFile = (path, data, options) =>
  writeFile(path, data, { ...(typeof options === "object" && options), flag: "a" });

class Stats {
  constructor({ size, mtimeMs, type }) {
    const mtime = new Date(mtimeMs);
    Object.assign(this, { size, mtimeMs, atimeMs: mtimeMs, ctimeMs: mtimeMs, birthtimeMs: mtimeMs });
    Object.assign(this, { mtime, atime: mtime, ctime: mtime, birthtime: mtime });
    Object.assign(this, {
      mode: type === "directory" ? 0o40755 : 0o100644,
      uid: 1000,
      gid: 1000,
      dev: 1,
      ino: 0,
      nlink: 1,
    });
    this.#type = type;
  }
  #type;
  isFile() {
    return this.#type === "file";
  }
  isDirectory() {
    return this.#type === "directory";
  }
  isSymbolicLink() {
    return this.#type === "link";
  }
  isFIFO() {
    return false;
  }
  isSocket() {
    return false;
  }
  isBlockDevice() {
    return false;
  }
  isCharacterDevice() {
    return false;
  }
}

const typeOf = (entry) => (entry.isDirectory() ? "directory" : entry.isSymbolicLink() ? "link" : "file");

function status(path, options, syscall) {
  const at = absolute(path);
  const text = at === given.file ? "" : own(at);
  if (text !== undefined) return new Stats({ size: Buffer.byteLength(text), mtimeMs: 0, type: "file" });
  if (ownFolder(at)) return new Stats({ size: 0, mtimeMs: 0, type: "directory" });
  try {
    const found = outside(syscall, at, (at) => files[syscall](at));
    return new Stats({ ...found, type: typeOf(found) });
  } catch (thrown) {
    if (thrown.code === "ENOENT" && options?.throwIfNoEntry === false) return undefined;
    throw thrown;
  }
}

export const stat = (path, options) => status(path, options, "stat");
export const lstat = (path, options) => status(path, options, "lstat");

export function access(path) {
  stat(path);
}

export function exists(path) {
  try {
    stat(path);
    return true;
  } catch {
    return false;
  }
}

export function realpath(path) {
  const at = absolute(path);
  stat(at);
  return at;
}

class Dirent {
  #type;
  constructor(name, parentPath, type) {
    Object.assign(this, { name, parentPath, path: parentPath });
    this.#type = type;
  }
  isFile() {
    return this.#type === "file";
  }
  isDirectory() {
    return this.#type === "directory";
  }
  isSymbolicLink() {
    return this.#type === "link";
  }
}

export function readdir(path, options) {
  const at = absolute(path);
  const inside = ownFolder(at);
  const found = inside
    ? [
        ...new Set(
          Object.keys(packageFiles).flatMap((name) =>
            name.startsWith(`${at}/`) ? [name.slice(at.length + 1).split("/")[0]] : [],
          ),
        ),
      ].map((name) => new Dirent(name, at, own(`${at}/${name}`) === undefined ? "directory" : "file"))
    : outside("scandir", at, (at) => files.readdir(at, { withFileTypes: true })).map(
        (entry) => new Dirent(entry.name, at, typeOf(entry)),
      );
  const all = options?.recursive
    ? found.flatMap((one) =>
        one.isDirectory() ? [one, ...readdir(`${at}/${one.name}`, { recursive: true, withFileTypes: true })] : [one],
      )
    : found;
  if (options?.withFileTypes) return all;
  return all.map(({ name, parentPath }) => (parentPath === at ? name : `${parentPath.slice(at.length + 1)}/${name}`));
}

export const mkdir = (path, options) =>
  outside("mkdir", absolute(path), (at) => files.mkdir(at, { recursive: options?.recursive === true }));

export const unlink = (path) => outside("unlink", absolute(path), (at) => files.unlink(at));
export const rmdir = (path) => outside("rmdir", absolute(path), (at) => files.rmdir(at));

export function rm(path, { recursive = false, force = false } = {}) {
  const at = absolute(path);
  try {
    if (!lstat(at).isDirectory()) return unlink(at);
    if (!recursive) throw failure("ERR_FS_EISDIR", "Path is a directory", "rm", at);
    for (const name of readdir(at)) rm(`${at}/${name}`, { recursive, force });
    rmdir(at);
  } catch (thrown) {
    if (!(force && thrown.code === "ENOENT")) throw thrown;
  }
}

export const rename = (from, to) => outside("rename", absolute(from), (at) => files.rename(at, absolute(to)));

export function copyFile(from, to, mode = 0) {
  writeFile(to, readFile(from), { flag: mode & constants.COPYFILE_EXCL ? "wx" : "w" });
}

export function cp(from, to, options = {}) {
  if (!stat(from).isDirectory()) return copyFile(from, to);
  if (!options.recursive)
    throw failure("ERR_FS_EISDIR", "Recursive option not enabled, cannot copy a directory", "cp", from);
  mkdir(to, { recursive: true });
  for (const name of readdir(from)) cp(`${absolute(from)}/${name}`, `${absolute(to)}/${name}`, options);
}

export function mkdtemp(prefix) {
  const path = `${prefix}${crypto.randomUUID().slice(0, 6)}`;
  mkdir(path);
  return path;
}

/** Times and permissions of files stay as they are: WASI has no permissions, and no plugin needs to change times. */
export const unchanged = () => {};
