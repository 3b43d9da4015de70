// QuickJS has the language and little else. This gives it what plugins lean on, and answers calls of the contract at once: turns of
// promises are taken by hand, and between them nothing happens but the end of a pause.

import { now, subscribeDuration } from "wasi:clocks/monotonic-clock@0.2.0";
import { getRandomBytes } from "wasi:random/random@0.2.0";
import { log } from "wharf:plugin/host@0.1.0";
import { TurnPromise, takeTurns } from "./promise.js";
import { TextDecoder, TextEncoder } from "./utf8.js";

globalThis.Promise = TurnPromise;
globalThis.queueMicrotask = (work) => void TurnPromise.resolve().then(work);
globalThis.TextEncoder = TextEncoder;
globalThis.TextDecoder = TextDecoder;

// A snapshot keeps the engine's own random numbers, so every fresh call would see the same ones.
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

/** Waits for the next timer and runs it. False if there is none. */
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

/** The end of a promise, waited for. */
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
          message: "it waits for something that never comes: on QuickJS only timers and questions can be waited for",
        };
    }
  } finally {
    // What the call left behind is not the next one's.
    timers = [];
  }
}
