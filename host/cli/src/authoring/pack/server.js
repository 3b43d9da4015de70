#!/usr/bin/env node
// Serves the plugin in this package over stdin and stdout. Arguments are the folders that are open to it; the README has the variables.
"use strict";

const { spawn } = require("node:child_process");
const { join } = require("node:path");

const [program, first] = PROGRAM;
const args = [...first, "packaged", join(__dirname, COMPONENT), ...process.argv.slice(2)];
if (process.execve) {
  process.execve(program, [program, ...args], process.env);
}

// Older versions of Node.js lack execve: this process runs until the server exits, forwards signals to it, and exits with its status.
const child = spawn(program, args, { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`error: ${program}: ${error.message}`);
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
