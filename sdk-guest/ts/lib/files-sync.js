// Access to the files in the directories that are open to a call, with functions like those of `node:fs` that wait for the result.

import { getDirectories } from "wasi:filesystem/preopens@0.2.0";
import { size } from "wharf-sdk:engine";

const READ = { read: true };
const WRITE = { write: true, mutateDirectory: true };
const CHUNK = 1 << 20;

/** Returns the open directory that contains a path, and the path within it. */
function placed(path) {
  const asked = String(path).replace(/\/+$/, "") || "/";
  let best;
  for (const [descriptor, name] of getDirectories()) {
    const root = name.replace(/\/+$/, "");
    const within = asked === root || asked.startsWith(`${root}/`);
    if (within && (!best || root.length > best.root.length)) best = { descriptor, root };
  }
  if (!best) throw problem("access", path);
  return { descriptor: best.descriptor, name: asked.slice(best.root.length + 1) || "." };
}

const TOLD = {
  "no-entry": ["ENOENT", "no such file or directory"],
  access: ["EACCES", "permission denied"],
  "not-permitted": ["EPERM", "operation not permitted"],
  exist: ["EEXIST", "file already exists"],
  "is-directory": ["EISDIR", "is a directory"],
  "not-directory": ["ENOTDIR", "not a directory"],
  "not-empty": ["ENOTEMPTY", "directory not empty"],
  "bad-descriptor": ["EBADF", "bad file descriptor"],
  "read-only": ["EROFS", "read-only file system"],
};

function problem(kind, path) {
  const [code, words] = TOLD[kind] ?? [`E${kind.toUpperCase().replaceAll("-", "")}`, kind.replaceAll("-", " ")];
  return Object.assign(new Error(`${code}: ${words}, ${path}`), { code, path });
}

function tried(path, work) {
  try {
    return work(placed(path));
  } catch (thrown) {
    // One engine throws the error value of an import itself, the other an object with the value as `payload`.
    const kind = typeof thrown === "string" ? thrown : thrown?.payload;
    throw typeof kind === "string" ? problem(kind, path) : thrown;
  }
}

const opened = ({ descriptor, name }, how, rights) => descriptor.openAt({ symlinkFollow: true }, name, how, rights);

/** Runs `work` with a file and then closes it at once; the garbage collector would close it much later. */
function using(file, work) {
  try {
    return work(file);
  } finally {
    file[Symbol.dispose]?.();
  }
}

/** Reads the bytes of a file, or with an encoding its text. */
export function readFile(path, options) {
  const encoding = typeof options === "string" ? options : options?.encoding;
  const bytes = tried(path, (place) =>
    using(opened(place, {}, READ), (file) => {
      const pieces = [];
      let length = 0;
      for (let end = false; !end;) {
        const [piece, last] = file.read(size(CHUNK), size(length));
        pieces.push(piece);
        length += piece.length;
        end = last || piece.length === 0;
      }
      const all = new Uint8Array(length);
      let at = 0;
      for (const piece of pieces) {
        all.set(piece, at);
        at += piece.length;
      }
      return all;
    }),
  );
  return encoding ? new TextDecoder(encoding).decode(bytes) : bytes;
}

/** Writes text or bytes; `{ flag: "a" }` appends, `{ flag: "wx" }` fails if the file exists. */
export function writeFile(path, data, { flag = "w" } = {}) {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  const how = { create: true, truncate: flag !== "a", exclusive: flag === "wx" };
  tried(path, (place) =>
    using(opened(place, how, WRITE), (file) => {
      let at = flag === "a" ? Number(file.stat().size) : 0;
      for (let done = 0; done < bytes.length;) {
        const wrote = Number(file.write(bytes.subarray(done, done + CHUNK), size(at)));
        done += wrote;
        at += wrote;
      }
    }),
  );
}

export const appendFile = (path, data) => writeFile(path, data, { flag: "a" });

/** Returns the names in a directory, sorted; with `{ withFileTypes: true }` objects with name and type. */
export function readdir(path, { withFileTypes = false } = {}) {
  const entries = tried(path, (place) =>
    using(opened(place, { directory: true }, READ), (directory) => {
      const stream = directory.readDirectory();
      const found = [];
      for (let entry = stream.readDirectoryEntry(); entry; entry = stream.readDirectoryEntry()) found.push(entry);
      return found;
    }),
  ).sort((one, other) => (one.name < other.name ? -1 : 1));
  return withFileTypes ? entries.map(({ name, type }) => ({ name, ...kinds(type) })) : entries.map(({ name }) => name);
}

const kinds = (type) => ({
  isFile: () => type === "regular-file",
  isDirectory: () => type === "directory",
  isSymbolicLink: () => type === "symbolic-link",
});

function status(path, symlinkFollow) {
  const {
    type,
    size,
    dataModificationTimestamp: changed,
  } = tried(path, ({ descriptor, name }) => descriptor.statAt({ symlinkFollow }, name));
  const mtimeMs = changed ? Number(changed.seconds) * 1000 + changed.nanoseconds / 1e6 : 0;
  return { size: Number(size), mtimeMs, mtime: new Date(mtimeMs), ...kinds(type) };
}

export const stat = (path) => status(path, true);

/** Like `stat`, but describes a symbolic link itself. */
export const lstat = (path) => status(path, false);

export function mkdir(path, { recursive = false } = {}) {
  try {
    tried(path, ({ descriptor, name }) => descriptor.createDirectoryAt(name));
  } catch (thrown) {
    if (!recursive) throw thrown;
    if (thrown.code === "EEXIST") return;
    if (thrown.code !== "ENOENT") throw thrown;
    mkdir(String(path).replace(/\/[^/]+\/*$/, ""), { recursive });
    mkdir(path);
  }
}

export function unlink(path) {
  tried(path, ({ descriptor, name }) => descriptor.unlinkFileAt(name));
}

export function rmdir(path) {
  tried(path, ({ descriptor, name }) => descriptor.removeDirectoryAt(name));
}

export function rename(from, to) {
  const target = tried(to, (place) => place);
  tried(from, ({ descriptor, name }) => descriptor.renameAt(name, target.descriptor, target.name));
}
