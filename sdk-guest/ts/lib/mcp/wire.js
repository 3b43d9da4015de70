// JSON-RPC with the server in the same memory. The transport of the official SDK is replaced by one that passes objects (`transport.js`). Any
// other one, and the SDK's if it is part of a minified bundle, works unchanged: it reads lines from `process.stdin` and writes lines to
// `process.stdout`.

import { Buffer } from "node:buffer";
import EventEmitter from "node:events";

/** The server's own requests and notifications go to these functions. `starting`: the server has not been greeted yet. */
export const client = { request: async () => ({}), notification() {}, text() {}, starting: false };

let pending = new Map();
let last = 0;
let direct;
let listening;

/** Connects a transport that takes objects. */
export function attach(transport) {
  direct = transport;
  listening?.();
}

class Input extends EventEmitter {
  isTTY = false;
  fd = 0;
  readable = true;
  #encoding;

  on(name, listener) {
    super.on(name, listener);
    if (name === "data" || name === "readable") listening?.();
    return this;
  }
  addListener(name, listener) {
    return this.on(name, listener);
  }
  setEncoding(encoding) {
    this.#encoding = encoding;
    return this;
  }
  line(text) {
    this.emit("data", this.#encoding ? text : Buffer.from(text));
  }
  resume() {
    return this;
  }
  pause() {
    return this;
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
  destroy() {
    return this;
  }
}

class Output extends EventEmitter {
  isTTY = false;
  writable = true;
  _writableState = { objectMode: false };
  #take;
  #begun = "";

  constructor(fd, take) {
    super();
    this.fd = fd;
    this.#take = take;
  }
  write(chunk, encoding, done = encoding) {
    const lines = (this.#begun + (typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8"))).split("\n");
    this.#begun = lines.pop();
    for (const line of lines) if (line) this.#take(line);
    if (typeof done === "function") queueMicrotask(done);
    return true;
  }
  end(chunk) {
    if (chunk !== undefined) this.write(chunk);
    if (this.#begun) this.write("\n");
    return this;
  }
  pipe(target) {
    return target;
  }
  cork() {}
  uncork() {}
}

export const stdin = new Input();
export const stdout = new Output(1, received);
export const stderr = new Output(2, (line) => client.text(line));

/** Forgets the server that listens, so that another one can be started. */
export function hangUp() {
  stdin.removeAllListeners();
  direct = undefined;
  pending = new Map();
  last = 0;
  open.clear();
}

/** Waits until a server reads its stdin. */
export function connected() {
  if (direct || stdin.listenerCount("data") > 0) return Promise.resolve();
  return new Promise((resolve) => {
    listening = () => {
      listening = undefined;
      resolve();
    };
  });
}

function send(message) {
  const whole = { jsonrpc: "2.0", ...message };
  if (direct) direct.onmessage?.(whole);
  else stdin.line(`${JSON.stringify(whole)}\n`);
}

/** Sends a request and returns its result. An error of JSON-RPC is thrown as it is. */
export function request(method, params = {}) {
  return new Promise((resolve, reject) => {
    const id = ++last;
    pending.set(id, { resolve, reject });
    send({ id, method, params });
  });
}

export const notify = (method, params) => send({ method, params });

/** Ends all requests that wait for an answer. */
export function fail(reason) {
  for (const { reject } of pending.values()) reject(reason);
  pending.clear();
}

function received(line) {
  let message;
  try {
    message = JSON.parse(line);
  } catch {
    return client.text(line);
  }
  const all = Array.isArray(message) ? message : [message];
  if (!all.every((one) => one?.jsonrpc === "2.0")) return client.text(line);
  for (const one of all) take(one);
}

/** The server's requests that have no answer yet, and how many there were. */
const open = new Set();
let opened = 0;
export const asking = () => opened;
asking.open = () => open.size > 0;
/** Waits for those no more that were asked so far: they wait for a person. */
asking.forget = () => open.clear();
asking.ended = () => Promise.all(open);

/** Takes a message of the server. */
export function take({ id, method, params, result, error }) {
  if (method !== undefined && id !== undefined) {
    opened++;
    const answered = client
      .request(method, params ?? {})
      .then(
        (value) => send({ id, result: value }),
        (thrown) => send({ id, error: { code: thrown?.code ?? -32603, message: String(thrown?.message ?? thrown) } }),
      )
      .finally(() => open.delete(answered));
    open.add(answered);
  } else if (method !== undefined) {
    client.notification(method, params ?? {});
  } else {
    const waiting = pending.get(id);
    pending.delete(id);
    if (error) waiting?.reject(error);
    else waiting?.resolve(result);
  }
}
