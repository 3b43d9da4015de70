// `node:fs/promises`: the functions of `fs-core.js` as promises, and handles of files.

import { Buffer } from "node:buffer";
import * as core from "./fs-core.js";

const later =
  (work) =>
  async (...args) =>
    work(...args);

export const { constants } = core;
export const readFile = later((path, options) =>
  path instanceof FileHandle ? path.contents(options) : core.readFile(path, options),
);
export const writeFile = later((path, data, options) =>
  path instanceof FileHandle ? path.replace(data, options) : core.writeFile(path, data, options),
);
export const appendFile = later(core.appendFile);
export const stat = later(core.stat);
export const lstat = later(core.lstat);
export const access = later(core.access);
export const realpath = later(core.realpath);
export const readdir = later(core.readdir);
export const mkdir = later(core.mkdir);
export const unlink = later(core.unlink);
export const rmdir = later(core.rmdir);
export const rm = later(core.rm);
export const rename = later(core.rename);
export const copyFile = later(core.copyFile);
export const cp = later(core.cp);
export const mkdtemp = later(core.mkdtemp);
export const chmod = later(core.unchanged);
export const utimes = later(core.unchanged);

/** A file that is open. It is read and written as a whole. */
export class FileHandle {
  #path;
  #at = 0;
  fd = 3;

  constructor(path) {
    this.#path = path;
  }
  contents(options) {
    return core.readFile(this.#path, options);
  }
  replace(data, options) {
    core.writeFile(this.#path, data, options);
  }
  async readFile(options) {
    return this.contents(options);
  }
  async writeFile(data, options) {
    this.replace(data, options);
  }
  async appendFile(data, options) {
    core.appendFile(this.#path, data, options);
  }
  async write(data) {
    core.appendFile(this.#path, data);
    return { bytesWritten: Buffer.byteLength(data), buffer: data };
  }
  async read(given = {}, ...rest) {
    const {
      buffer,
      offset = 0,
      length,
      position,
    } = ArrayBuffer.isView(given) ? { buffer: given, offset: rest[0], length: rest[1], position: rest[2] } : given;
    const from = position ?? this.#at;
    const piece = this.contents().subarray(from, from + (length ?? buffer.byteLength - offset));
    new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength).set(piece, offset);
    if (position === undefined || position === null) this.#at += piece.length;
    return { bytesRead: piece.length, buffer };
  }
  async stat() {
    return core.stat(this.#path);
  }
  async truncate(length = 0) {
    this.replace(this.contents().subarray(0, length));
  }
  async sync() {}
  async close() {}
  async [Symbol.asyncDispose]() {}
}

export const open = later((path, flags = "r") => {
  if (/^r/.test(flags)) core.stat(path);
  else core.writeFile(path, "", { flag: /^a/.test(flags) ? "a" : flags.replace("+", "") });
  return new FileHandle(core.absolute(path));
});

export default {
  constants,
  readFile,
  writeFile,
  appendFile,
  stat,
  lstat,
  access,
  realpath,
  readdir,
  mkdir,
  unlink,
  rmdir,
  rm,
  rename,
  copyFile,
  cp,
  mkdtemp,
  chmod,
  utimes,
  open,
};
