// Polyfills for QuickJS, which has little more than the language itself, and synchronous answers to calls of the contract: the turns of
// promises are run explicitly, and between them only timers expire.

import { now, subscribeDuration } from "wasi:clocks/monotonic-clock@0.2.0";
import { getRandomBytes } from "wasi:random/random@0.2.0";
import { log } from "wharf:plugin/logging@0.1.0";
import { TurnPromise, takeTurns } from "./promise.js";
import { TextDecoder, TextEncoder } from "./utf8.js";

globalThis.Promise = TurnPromise;
globalThis.queueMicrotask = (work) => void TurnPromise.resolve().then(work);
globalThis.TextEncoder = TextEncoder;
globalThis.TextDecoder = TextDecoder;

// The snapshot contains the state of the engine's random number generator, so without this every call would get the same numbers.
let seeded;
Math.random = () => {
  seeded ??= new Uint32Array(bytes(16).buffer);
  // xoshiro128+
  const result = (seeded[0] + seeded[3]) >>> 0;
  const shifted = seeded[1] << 9;
  seeded[2] ^= seeded[0];
  seeded[3] ^= seeded[1];
  seeded[1] ^= seeded[2];
  seeded[0] ^= seeded[3];
  seeded[2] ^= shifted;
  seeded[3] = (seeded[3] << 11) | (seeded[3] >>> 21);
  return result / 2 ** 32;
};

const bytes = (count) => new Uint8Array(getRandomBytes(count));

globalThis.crypto = {
  getRandomValues(array) {
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(bytes(array.byteLength));
    return array;
  },
  randomUUID() {
    const random = bytes(16);
    random[6] = (random[6] & 15) | 64;
    random[8] = (random[8] & 63) | 128;
    const hex = [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  },
};

const shown = (value) =>
  typeof value === "string" ? value : value instanceof Error ? String(value) : (JSON.stringify(value) ?? String(value));
const say =
  (level) =>
  (...values) =>
    log(level, values.map(shown).join(" "), undefined);
globalThis.console = {
  debug: say("debug"),
  log: say("info"),
  info: say("info"),
  warn: say("warning"),
  error: say("error"),
};

const MS = 1_000_000;
let timers = [];
let lastTimer = 0;

function timer(work, pause, again, args) {
  const id = ++lastTimer;
  const every = Math.max(0, Number(pause) || 0) * MS;
  timers.push({ id, work, args, due: Number(now()) + every, every: again ? every : undefined });
  return id;
}

const cancel = (id) => void (timers = timers.filter((one) => one.id !== id));
globalThis.setTimeout = (work, pause, ...args) => timer(work, pause, false, args);
globalThis.setInterval = (work, pause, ...args) => timer(work, pause, true, args);
globalThis.clearTimeout = cancel;
globalThis.clearInterval = cancel;

/** Waits for the next timer and runs it. Returns false if there is no timer. */
function nextTimer() {
  if (!timers.length) return false;
  const next = timers.reduce((soonest, one) => (one.due < soonest.due ? one : soonest));
  const left = next.due - Number(now());
  if (left > 0) subscribeDuration(Math.ceil(left)).block();
  if (next.every === undefined) cancel(next.id);
  else next.due = Number(now()) + next.every;
  next.work(...next.args);
  return true;
}

/** Waits for a promise, and returns its value or throws its reason. */
export function settle(promise) {
  if (typeof promise?.then !== "function") return promise;
  const watched = TurnPromise.resolve(promise);
  try {
    for (;;) {
      takeTurns();
      const [state, value] = watched.peek();
      if (state === "fulfilled") return value;
      if (state === "rejected") throw value;
      if (!nextTimer())
        throw {
          message: "the function waits for a promise that never settles: on QuickJS only timers and questions can be waited for",
        };
    }
  } finally {
    // Timers that the call left behind must not run in the next call.
    timers = [];
  }
}
