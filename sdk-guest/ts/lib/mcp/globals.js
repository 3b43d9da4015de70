// The globals that Node.js has and the engines lack. This module is evaluated before all modules of the server.

import "./build-time.js";
import "./intl.js";
import "./stack.js";
import "./base64url.js";
import { Buffer } from "node:buffer";
import { log } from "../host.js";
import { building } from "./build-time.js";
import { createRequire } from "./node/module.js";
import process from "./node/process.js";
import { client } from "./wire.js";

globalThis.global = globalThis;
globalThis.__zod_globalConfig = { jitless: true };
globalThis.process = process;
globalThis.Buffer = Buffer;
globalThis.self ??= globalThis;
// Node.js has none: packages that find one take themselves for a page's.
delete globalThis.location;
// As in Node.js 22.
globalThis.navigator ??= {
  userAgent: "Node.js/22",
  language: "en-US",
  languages: ["en-US"],
  platform: "linux",
  hardwareConcurrency: 1,
};
// Modules that another tool bundled for Node.js look for it.
globalThis.require = createRequire("/server/index.js");

const shown = (value) => {
  if (typeof value === "string") return value;
  if (value instanceof Error) return value.stack ? `${value}` : String(value.message);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
};

/**
 * Logs to the operator and the client. While the plugin is built, the probe shows the text. What a server says at its start it says in each
 * call, so this is of use only when its start fails.
 */
export function say(level, text) {
  client.said?.(text);
  if (!building()) log(client.starting ? "debug" : level, text);
}

const saying =
  (level) =>
  (...values) =>
    say(level, values.map(shown).join(" "));
const silent = () => {};
globalThis.console = {
  debug: saying("debug"),
  trace: saying("debug"),
  log: saying("info"),
  info: saying("info"),
  table: saying("info"),
  dir: saying("info"),
  warn: saying("warning"),
  // On stdio, `console.error` is where servers say everything, since stdout belongs to the protocol.
  error: saying("info"),
  assert: (right, ...values) => {
    if (!right) say("error", `Assertion failed: ${values.map(shown).join(" ")}`);
  },
  group: silent,
  groupEnd: silent,
  time: silent,
  timeEnd: silent,
  timeLog: silent,
  count: silent,
};
client.text = (line) => say("info", line);
