// Access to the files in the directories that are open to a call, with functions like those of `node:fs/promises`. Errors have the same
// codes, such as `ENOENT`.

export interface Kind {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

export interface Stats extends Kind {
  size: number;
  mtimeMs: number;
  mtime: Date;
}

export function readFile(path: string): Promise<Uint8Array>;
export function readFile(path: string, encoding: "utf8" | "utf-8" | { encoding: "utf8" | "utf-8" }): Promise<string>;
/** `flag: "a"` appends, `"wx"` fails if the file exists. */
export function writeFile(
  path: string,
  data: string | Uint8Array,
  options?: { flag?: "w" | "wx" | "a" },
): Promise<void>;
export function appendFile(path: string, data: string | Uint8Array): Promise<void>;
export function readdir(path: string): Promise<string[]>;
export function readdir(path: string, options: { withFileTypes: true }): Promise<Array<Kind & { name: string }>>;
export function stat(path: string): Promise<Stats>;
export function mkdir(path: string, options?: { recursive?: boolean }): Promise<void>;
export function unlink(path: string): Promise<void>;
export function rmdir(path: string): Promise<void>;
export function rename(from: string, to: string): Promise<void>;
