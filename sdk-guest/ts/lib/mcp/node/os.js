// `node:os`: what a plugin may know of the machine, which is nothing. Folders are those of a user without a name.

import process from "./process.js";

export const EOL = "\n";
export const devNull = "/dev/null";
export const homedir = () => process.env.HOME ?? "/";
export const tmpdir = () => process.env.TMPDIR ?? "/tmp";
export const hostname = () => "plugin";
export const platform = () => "linux";
export const type = () => "Linux";
export const release = () => "0.0.0";
export const version = () => "0";
export const machine = () => "x86_64";
export const arch = () => "x64";
export const endianness = () => "LE";
export const cpus = () => [];
export const availableParallelism = () => 1;
export const totalmem = () => 0;
export const freemem = () => 0;
export const uptime = () => 0;
export const loadavg = () => [0, 0, 0];
export const networkInterfaces = () => ({});
export const userInfo = () => ({ username: "plugin", uid: 1000, gid: 1000, shell: null, homedir: homedir() });
export const constants = { signals: { SIGINT: 2, SIGTERM: 15 }, errno: {} };

export default {
  EOL,
  devNull,
  homedir,
  tmpdir,
  hostname,
  platform,
  type,
  release,
  version,
  machine,
  arch,
  endianness,
  cpus,
  availableParallelism,
  totalmem,
  freemem,
  uptime,
  loadavg,
  networkInterfaces,
  userInfo,
  constants,
};
