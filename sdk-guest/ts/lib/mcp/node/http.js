// `node:http` and `node:https` for clients: each request is a `fetch`. Servers need sockets, which a plugin does not have.

import { Buffer } from "node:buffer";
import EventEmitter from "node:events";
import { Readable, Writable } from "node:stream";

/** Headers of the connection, which wharf makes. */
const OF_CONNECTION = /^(host|connection|content-length|transfer-encoding|keep-alive|expect|upgrade|proxy-.*)$/;

/** Headers that Node.js does not join by a comma. */
const SEVERAL = "set-cookie";

/** What a client sees of the connection. */
class Socket extends EventEmitter {
  encrypted = true;
  destroyed = false;
  connecting = false;
  remoteAddress = undefined;
  setKeepAlive = () => this;
  setNoDelay = () => this;
  setTimeout = () => this;
  ref = () => this;
  unref = () => this;
  destroy = () => this;
}

export class IncomingMessage extends Readable {
  httpVersion = "1.1";
  httpVersionMajor = 1;
  httpVersionMinor = 1;
  complete = false;
  aborted = false;
  trailers = {};
  headers = {};
  rawHeaders = [];

  #body;
  constructor(response, request) {
    super();
    this.req = request;
    this.url = "";
    this.socket = this.connection = request?.socket;
    if (!response) return;
    this.statusCode = response.status;
    this.statusMessage = response.statusText || STATUS_CODES[response.status] || "";
    for (const [name, value] of response.headers) {
      this.rawHeaders.push(name, value);
      if (name === SEVERAL) (this.headers[name] ??= []).push(value);
      else this.headers[name] = value;
    }
    this.#body = response.body?.getReader();
  }
  _read() {
    const end = () => {
      this.complete = true;
      this.push(null);
    };
    if (!this.#body) return end();
    this.#body.read().then(
      ({ done, value }) => (done ? end() : this.push(Buffer.from(value))),
      (thrown) => this.destroy(failure(thrown)),
    );
  }
  setTimeout() {
    return this;
  }
}

/** Errors of `fetch` have their reason in `cause`; clients for Node.js read `code`. */
function failure(thrown) {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  error.code ??= error.cause?.code ?? "ECONNREFUSED";
  return error;
}

/** Returns the address and the options of `request(url, options)` or `request(options)`. */
function target(protocol, input, more) {
  const isAddress = typeof input === "string" || input instanceof URL;
  const options = isAddress ? { ...more } : { ...input };
  if (isAddress && !options.path && !options.host && !options.hostname) return { options, url: new URL(input) };
  const base = isAddress ? new URL(input) : undefined;
  const [host, ownPort] = String(options.hostname ?? options.host ?? base?.host ?? "localhost").split(/:(?=\d+$)/);
  const port = options.port ?? ownPort;
  const scheme = options.protocol ?? base?.protocol ?? protocol;
  const bare = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  const path = options.path ?? (base ? base.pathname + base.search : "/");
  return { options, url: new URL(path, `${scheme}//${bare}${port ? `:${port}` : ""}`) };
}

export class ClientRequest extends Writable {
  reusedSocket = false;
  aborted = false;
  finished = false;
  maxHeadersCount = null;

  #url;
  #headers = new Map();
  #pieces = [];
  #ending = new AbortController();
  #timer;

  constructor(protocol, input, more, done) {
    // It is open until the answer is there, not until the body is sent.
    super({ autoDestroy: false });
    const { options, url } = target(protocol, input, typeof more === "function" ? undefined : more);
    const then = typeof more === "function" ? more : done;
    this.#url = url;
    this.method = String(options.method ?? "GET").toUpperCase();
    this.path = url.pathname + url.search;
    this.host = url.hostname;
    this.protocol = url.protocol;
    this.agent = options.agent;
    this.socket = this.connection = new Socket();
    const given = options.headers ?? {};
    const pairs = Array.isArray(given) ? given : Object.entries(given);
    for (const [name, value] of pairs) if (value !== undefined) this.setHeader(name, value);
    if (options.auth && !this.hasHeader("authorization"))
      this.setHeader("authorization", `Basic ${Buffer.from(options.auth).toString("base64")}`);
    if (then) this.once("response", then);
    if (options.timeout) this.setTimeout(options.timeout);
    if (options.signal?.aborted) queueMicrotask(() => this.destroy(options.signal.reason));
    else options.signal?.addEventListener("abort", () => this.destroy(options.signal.reason));
    queueMicrotask(() => this.emit("socket", this.socket));
  }
  setHeader(name, value) {
    this.#headers.set(String(name).toLowerCase(), { name, value });
    return this;
  }
  appendHeader(name, value) {
    const before = this.getHeader(name);
    return this.setHeader(name, before === undefined ? value : [before, value].flat());
  }
  getHeader(name) {
    return this.#headers.get(String(name).toLowerCase())?.value;
  }
  hasHeader(name) {
    return this.#headers.has(String(name).toLowerCase());
  }
  removeHeader(name) {
    this.#headers.delete(String(name).toLowerCase());
  }
  getHeaders() {
    return Object.fromEntries([...this.#headers].map(([name, { value }]) => [name, value]));
  }
  getHeaderNames() {
    return [...this.#headers.keys()];
  }
  getRawHeaderNames() {
    return [...this.#headers.values()].map(({ name }) => name);
  }
  flushHeaders() {}
  setNoDelay() {
    return this;
  }
  setSocketKeepAlive() {
    return this;
  }
  setTimeout(ms, done) {
    if (done) this.once("timeout", done);
    clearTimeout(this.#timer);
    if (ms) this.#timer = setTimeout(() => this.emit("timeout"), ms);
    return this;
  }
  abort() {
    this.aborted = true;
    this.emit("abort");
    this.destroy(Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }));
  }
  _write(piece, encoding, done) {
    this.#pieces.push(typeof piece === "string" ? Buffer.from(piece, encoding) : piece);
    done();
  }
  _final(done) {
    this.finished = true;
    done();
    const headers = new Headers();
    for (const [name, { value }] of this.#headers)
      if (!OF_CONNECTION.test(name)) for (const one of [value].flat()) headers.append(name, String(one));
    const body = this.#pieces.length && !/^(GET|HEAD)$/.test(this.method) ? Buffer.concat(this.#pieces) : undefined;
    const { signal } = this.#ending;
    fetch(this.#url.href, { method: this.method, headers, body, redirect: "manual", signal }).then(
      (response) => {
        clearTimeout(this.#timer);
        if (this.destroyed && this.#ending.signal.aborted) return;
        this.res = new IncomingMessage(response, this);
        if (!this.emit("response", this.res)) this.res.resume();
      },
      (thrown) => {
        clearTimeout(this.#timer);
        if (!this.#ending.signal.aborted) this.emit("error", failure(thrown));
      },
    );
  }
  _destroy(thrown, done) {
    clearTimeout(this.#timer);
    if (!this.res) this.#ending.abort();
    else if (thrown) this.res.destroy(thrown);
    done(thrown);
  }
}

export class Agent extends EventEmitter {
  constructor(options = {}) {
    super();
    this.options = options;
    Object.assign(this, { maxSockets: Infinity, maxFreeSockets: 256, sockets: {}, freeSockets: {}, requests: {} });
  }
  destroy() {}
}

/** Returns `request` and `get` for a scheme. */
export function client(protocol) {
  const request = (input, more, done) => new ClientRequest(protocol, input, more, done);
  const get = (...given) => {
    const made = request(...given);
    made.end();
    return made;
  };
  return { request, get };
}

export const { request, get } = client("http:");
export const globalAgent = new Agent();
export const STATUS_CODES = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "No Content",
  206: "Partial Content",
  301: "Moved Permanently",
  302: "Found",
  303: "See Other",
  304: "Not Modified",
  307: "Temporary Redirect",
  308: "Permanent Redirect",
  400: "Bad Request",
  401: "Unauthorized",
  402: "Payment Required",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  406: "Not Acceptable",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  412: "Precondition Failed",
  413: "Payload Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Entity",
  429: "Too Many Requests",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};
export const METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];
export const maxHeaderSize = 16384;
export const validateHeaderName = () => {};
export const validateHeaderValue = () => {};

export default {
  Agent,
  ClientRequest,
  IncomingMessage,
  METHODS,
  STATUS_CODES,
  get,
  globalAgent,
  maxHeaderSize,
  request,
  validateHeaderName,
  validateHeaderValue,
};
