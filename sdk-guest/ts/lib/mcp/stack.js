// `Error.captureStackTrace` with `Error.prepareStackTrace`, as V8 has them: packages for Node.js ask them who called.

const PLACE = /^(?:\s*at\s+)?(?:(.*?)(?:@|\s+\())?((?:file:\/\/)?[^\s()@]*):(\d+):(\d+)\)?$/;

class CallSite {
  #name;
  #place;
  constructor(line) {
    const [, name = "", file = "", row = "0", column = "0"] = PLACE.exec(line.trim()) ?? [];
    this.#name = name || null;
    this.#place = [file, Number(row), Number(column)];
  }
  getFileName = () => this.#place[0];
  getScriptNameOrSourceURL = () => this.#place[0];
  getLineNumber = () => this.#place[1];
  getColumnNumber = () => this.#place[2];
  getFunctionName = () => this.#name;
  getMethodName = () => null;
  getTypeName = () => "Object";
  getThis = () => undefined;
  getFunction = () => undefined;
  getEvalOrigin = () => undefined;
  isNative = () => false;
  isEval = () => false;
  isConstructor = () => false;
  isToplevel = () => true;
  isAsync = () => false;
  isPromiseAll = () => false;
  getPromiseIndex = () => null;
  toString = () => `${this.#name ?? "<anonymous>"} (${this.#place.join(":")})`;
}

// Without `prepareStackTrace` each engine does it in its own way.
const own = Error.captureStackTrace;

Error.captureStackTrace = (target, above) => {
  if (typeof Error.prepareStackTrace !== "function") {
    if (own) own(target, above);
    else Object.defineProperty(target, "stack", { value: new Error().stack, writable: true, configurable: true });
    return;
  }
  const prepare = Error.prepareStackTrace;
  Error.prepareStackTrace = undefined;
  let lines;
  try {
    lines = String(new Error().stack)
      .split("\n")
      .filter((line) => /:\d+:\d+\)?$/.test(line));
  } finally {
    Error.prepareStackTrace = prepare;
  }
  // The first line is this function.
  const sites = lines.slice(1).map((line) => new CallSite(line));
  Object.defineProperty(target, "stack", { value: prepare(target, sites), writable: true, configurable: true });
};
