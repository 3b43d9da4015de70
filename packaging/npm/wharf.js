#!/usr/bin/env node
// Becomes the binary for this machine, which npm installed beside this package.
"use strict";

const { spawn } = require("node:child_process");

const { platform, arch } = process;
const musl = platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
const name = `{SCOPE}/cli-${platform}-${arch}${musl ? "-musl" : ""}`;

let binary;
try {
  binary = require.resolve(`${name}/wharf`);
} catch {
  console.error(`error: ${name} is not installed. Either there is no wharf for this machine, or npm was told to leave out optional packages.`);
  process.exit(1);
}

const args = process.argv.slice(2);
if (process.execve) {
  process.execve(binary, [binary, ...args], process.env);
}

// Older Node.js cannot become another program: it stays until the binary ends, and passes on what ends it.
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
