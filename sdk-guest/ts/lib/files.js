// Access to the files in the directories that are open to a call, with functions like those of `node:fs/promises`.

import * as files from "./files-sync.js";

const later =
  (work) =>
  async (...args) =>
    work(...args);

/** Reads the bytes of a file, or with an encoding its text. */
export const readFile = later(files.readFile);

/** Writes text or bytes; `{ flag: "a" }` appends, `{ flag: "wx" }` fails if the file exists. */
export const writeFile = later(files.writeFile);

export const appendFile = later(files.appendFile);

/** Returns the names in a directory, sorted; with `{ withFileTypes: true }` objects with name and type. */
export const readdir = later(files.readdir);

export const stat = later(files.stat);
export const mkdir = later(files.mkdir);
export const unlink = later(files.unlink);
export const rmdir = later(files.rmdir);
export const rename = later(files.rename);
