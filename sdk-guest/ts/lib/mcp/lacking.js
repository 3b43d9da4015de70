// What takes the place of the parts of Node.js that a plugin cannot have.

export const WHY = {
  child_process: "a plugin cannot start programs",
  cluster: "a plugin cannot start programs",
  worker_threads: "a plugin has one thread",
  net: "a plugin has no sockets; `fetch` works, with the operator's grant",
  tls: "a plugin has no sockets; `fetch` works, with the operator's grant",
  dgram: "a plugin has no sockets; `fetch` works, with the operator's grant",
  dns: "a plugin has no sockets; `fetch` works, with the operator's grant",
  http: "a plugin has no sockets: wharf serves HTTP, and `fetch` works, with the operator's grant",
  https: "a plugin has no sockets: wharf serves HTTP, and `fetch` works, with the operator's grant",
  http2: "a plugin has no sockets: wharf serves HTTP, and `fetch` works, with the operator's grant",
};

/** Returns a function that says in one sentence why it does not exist, and where it is used. It can be extended as a class. */
export function lacking(
  module,
  name,
  why = WHY[module] ?? "it is a part of Node.js that a plugin does not have",
  place,
) {
  return function () {
    throw Object.assign(
      new Error(`${module}.${name} does not work here${place ? ` (${place})` : ""}: ${why}`),
      {
        code: "ERR_NOT_IN_A_PLUGIN",
      },
    );
  };
}

/** Returns an object for a part of Node.js that the Node.js of the build does not have either, so that its names are not known. */
export function unknown(module) {
  const itself = new Proxy(function () {}, {
    get: (_, name) =>
      typeof name === "string" && name !== "__esModule" && name !== "then" && name !== "prototype"
        ? lacking(module, name)
        : undefined,
    getPrototypeOf: () => itself,
  });
  return itself;
}

/** Returns what a package is that only brings `fetch` to Node.js: the function, with what goes with it. */
export function fetching(module) {
  const fetch = (...args) => globalThis.fetch(...args);
  class Agent {
    dispatch() {}
    close() {}
    destroy() {}
  }
  const failure = (name, type) =>
    class extends Error {
      name = name;
      type = type;
    };
  const known = {
    __esModule: true,
    default: fetch,
    fetch,
    Agent,
    Dispatcher: Agent,
    Pool: Agent,
    ProxyAgent: Agent,
    EnvHttpProxyAgent: Agent,
    setGlobalDispatcher: () => {},
    getGlobalDispatcher: () => new Agent(),
    AbortError: failure("AbortError", "aborted"),
    FetchError: failure("FetchError", "system"),
    isRedirect: (status) => [301, 302, 303, 307, 308].includes(status),
  };
  const itself = new Proxy(fetch, {
    get(_, name) {
      if (Object.hasOwn(known, name)) return known[name];
      if (GLOBALS.includes(name)) return globalThis[name];
      if (typeof name !== "string" || name === "then" || name in Function.prototype) return Reflect.get(fetch, name);
      return lacking(module, name, "of this package, a plugin has `fetch` and its classes");
    },
    getPrototypeOf: () => itself,
  });
  return itself;
}

const GLOBALS = ["Headers", "Request", "Response", "FormData", "Blob", "File", "AbortController"];

/** Returns an object for a part of a package that is compiled for one kind of machine. */
export function native(path) {
  return new Proxy(
    {},
    {
      get: (_, name) =>
        typeof name === "string" && name !== "__esModule" && name !== "then"
          ? () => {
              throw new Error(`${path} is compiled for one kind of machine, and a plugin cannot load it`);
            }
          : undefined,
    },
  );
}

/**
 * Returns an object for a package that serves HTTP, such as express. A server may set up its routes as well; everything does nothing,
 * until the server listens.
 */
export function inert(name) {
  const itself = new Proxy(function () {}, {
    get(_, member) {
      if (member === "then" || member === Symbol.iterator || member === Symbol.asyncIterator) return undefined;
      if (member === Symbol.toPrimitive) return () => name;
      if (member === "prototype") return Object.prototype;
      if (member === "listen" || member === "serve") return lacking(name, member);
      return itself;
    },
    getPrototypeOf: () => itself,
    apply: () => itself,
    construct: () => itself,
    set: () => true,
  });
  return itself;
}
