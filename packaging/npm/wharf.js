#!/usr/bin/env node
// Runs the binary for this platform, which npm installed as an optional dependency of this package.
"use strict";

const { spawn } = require("node:child_process");

const { platform, arch } = process;
const musl = platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
const name = `{SCOPE}/cli-${platform}-${arch}${musl ? "-musl" : ""}`;

let binary;
try {
  binary = require.resolve(`${name}/wharf`);
} catch {
  console.error(`error: ${name} is not installed. Either wharf does not support this platform, or npm was told to omit optional dependencies.`);
  process.exit(1);
}

const args = process.argv.slice(2);
if (process.execve) {
  process.execve(binary, [binary, ...args], process.env);
}

// Older versions of Node.js lack execve: this process runs until the binary exits, forwards signals to it, and exits with its status.
const child = spawn(binary, args, { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`error: ${binary}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
