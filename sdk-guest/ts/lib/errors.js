// The errors that end a call without a result.

const INVALID_PARAMS = -32602;
const RESOURCE_NOT_FOUND = -32002;

/** A failure with exactly this message, to which nothing is added. A tool call is answered with it and `isError: true`. */
export class Failure extends Error {
  constructor(message, { code, data, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "Failure";
    this.code = code;
    this.data = data;
  }
}

export const invalidParams = (message, data) => new Failure(message, { code: INVALID_PARAMS, data });

export const resourceNotFound = (uri) => new Failure("Resource not found", { code: RESOURCE_NOT_FOUND, data: { uri } });

/** Returns the kind of failure in the contract for a code. Without a code, the operation itself failed. */
function kindOf(code) {
  if (code === undefined) return { tag: "failed" };
  if (code === INVALID_PARAMS) return { tag: "invalid-params" };
  return code === RESOURCE_NOT_FOUND ? { tag: "not-found" } : { tag: "other", val: code };
}

/** Converts a thrown value to the contract's `failure`. */
export function asFailure(thrown) {
  if (thrown instanceof Failure) {
    const data = thrown.data === undefined ? undefined : JSON.stringify(thrown.data);
    return { kind: kindOf(thrown.code), message: thrown.message, data };
  }
  const place = placeOf(thrown) ?? placeOf(thrown?.defined);
  const message = place ? `${told(thrown)} (${place})` : told(thrown);
  return { kind: kindOf(undefined), message, data: undefined };
}

/** Describes an error and its causes in one line. */
function told(thrown, depth = 0) {
  if (!(thrown instanceof Error)) return `a value that is not an Error was thrown: ${shown(thrown)}`;
  const name = thrown.name && thrown.name !== "Error" ? `${thrown.name}: ` : "";
  const cause = thrown.cause instanceof Error && depth < 4 ? `: ${told(thrown.cause, depth + 1)}` : "";
  return `${name}${thrown.message || "no message"}${cause}`;
}

export function shown(value) {
  try {
    return (typeof value === "string" ? value : JSON.stringify(value)) ?? String(value);
  } catch {
    return String(value);
  }
}

let places;

/** Sets the build's table of the author's lines: `[first line in the bundle, file, its line, number of lines]`. */
export function setPlaces(table) {
  places = table;
}

/** Returns the innermost line of the author's own code in the error's stack, as `src/plugin.ts:12`. */
export function placeOf(thrown) {
  if (!places || typeof thrown?.stack !== "string") return undefined;
  for (const [, line] of thrown.stack.matchAll(/plugin\.js:(\d+)/g)) {
    const found = places.find(([first, , , count]) => line >= first && line < first + count);
    if (found) return `${found[1]}:${Number(line) - found[0] + found[2]}`;
  }
  return undefined;
}
