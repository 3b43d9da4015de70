// `node:fs`: with callbacks, waiting for the result, as promises, and as streams.

import EventEmitter from "node:events";
import * as core from "./fs-core.js";
import promises from "./fs-promises.js";

export { promises };
export const { constants } = core;
export const readFileSync = core.readFile;
export const writeFileSync = core.writeFile;
export const appendFileSync = core.appendFile;
export const statSync = core.stat;
export const lstatSync = core.lstat;
export const accessSync = core.access;
export const existsSync = core.exists;
export const realpathSync = Object.assign((path) => core.realpath(path), { native: core.realpath });
export const readdirSync = core.readdir;
export const mkdirSync = core.mkdir;
export const unlinkSync = core.unlink;
export const rmdirSync = core.rmdir;
export const rmSync = core.rm;
export const renameSync = core.rename;
export const copyFileSync = core.copyFile;
export const cpSync = core.cp;
export const mkdtempSync = core.mkdtemp;
export const chmodSync = core.unchanged;
export const utimesSync = core.unchanged;

const called =
  (work) =>
  (...args) => {
    const done = args.pop();
    work(...args).then(
      (value) => done(null, value),
      (thrown) => done(thrown),
    );
  };
export const readFile = called(promises.readFile);
export const writeFile = called(promises.writeFile);
export const appendFile = called(promises.appendFile);
export const stat = called(promises.stat);
export const lstat = called(promises.lstat);
export const access = called(promises.access);
export const realpath = Object.assign(called(promises.realpath), { native: called(promises.realpath) });
export const readdir = called(promises.readdir);
export const mkdir = called(promises.mkdir);
export const unlink = called(promises.unlink);
export const rmdir = called(promises.rmdir);
export const rm = called(promises.rm);
export const rename = called(promises.rename);
export const copyFile = called(promises.copyFile);
export const cp = called(promises.cp);
export const mkdtemp = called(promises.mkdtemp);
export const chmod = called(promises.chmod);
export const utimes = called(promises.utimes);
export const exists = (path, done) => done(core.exists(path));

/** Reads a file as a whole, and emits it as one chunk. */
export class ReadStream extends EventEmitter {
  #read;
  #encoding;

  constructor(path, options) {
    super();
    this.path = path;
    this.#encoding = typeof options === "string" ? options : options?.encoding;
    const { start = 0, end = Infinity } = typeof options === "object" && options ? options : {};
    this.#read = () => {
      const piece = core.readFile(path).subarray(start, end + 1);
      return this.#encoding ? piece.toString(this.#encoding) : piece;
    };
    queueMicrotask(() => this.#flow());
  }
  #flow() {
    let piece;
    try {
      piece = this.#read();
    } catch (thrown) {
      if (this.listenerCount("error")) this.emit("error", thrown);
      return;
    }
    if (piece.length) this.emit("data", piece);
    this.emit("end");
    this.emit("close");
  }
  async *[Symbol.asyncIterator]() {
    const piece = this.#read();
    if (piece.length) yield piece;
  }
  setEncoding(encoding) {
    this.#encoding = encoding;
    return this;
  }
  pipe(target) {
    this.on("data", (piece) => target.write(piece));
    this.on("end", () => target.end());
    return target;
  }
  resume() {
    return this;
  }
  pause() {
    return this;
  }
  close() {}
  destroy() {}
}

/** Appends each chunk to a file. */
export class WriteStream extends EventEmitter {
  #path;
  constructor(path, options) {
    super();
    this.#path = path;
    const flag = (typeof options === "object" && options?.flags) || "w";
    if (flag !== "a") core.writeFile(path, "", { flag });
  }
  write(data, encoding, done = encoding) {
    core.appendFile(this.#path, data);
    if (typeof done === "function") queueMicrotask(done);
    return true;
  }
  end(data) {
    if (data !== undefined && typeof data !== "function") this.write(data);
    queueMicrotask(() => {
      this.emit("finish");
      this.emit("close");
    });
    return this;
  }
  destroy() {}
}

export const createReadStream = (path, options) => new ReadStream(path, options);
export const createWriteStream = (path, options) => new WriteStream(path, options);

/** Nothing is watched: a call is over before a file changes. */
export const watch = () => Object.assign(new EventEmitter(), { close() {}, ref() {}, unref() {} });
export const watchFile = () => {};
export const unwatchFile = () => {};

export default {
  promises,
  constants,
  readFileSync,
  writeFileSync,
  appendFileSync,
  statSync,
  lstatSync,
  accessSync,
  existsSync,
  realpathSync,
  readdirSync,
  mkdirSync,
  unlinkSync,
  rmdirSync,
  rmSync,
  renameSync,
  copyFileSync,
  cpSync,
  mkdtempSync,
  chmodSync,
  utimesSync,
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
  exists,
  ReadStream,
  WriteStream,
  createReadStream,
  createWriteStream,
  watch,
  watchFile,
  unwatchFile,
};
