// What a server's modules get of time, random numbers and timers while the snapshot is made: constants, and timers that start in the first
// call. The engine has none of these at build time, and a snapshot would repeat real ones in each call.

const state = { building: true, touched: new Set(), waiting: [], passed: 0 };

/** Whether the snapshot is being made. */
export const building = () => state.building;

/** Notes that the server used something whose value in a call is not known at build time. The probe asks for these notes. */
export function touch(what) {
  if (state.building) state.touched.add(what);
}

export const touched = state.touched;

/** Runs `work` without leaving notes of what it uses. */
export function unnoticed(work) {
  const before = new Set(state.touched);
  const end = () => {
    state.touched.clear();
    for (const one of before) state.touched.add(one);
  };
  return Promise.resolve(work()).finally(end);
}

const AT_BUILD_MS = 1_700_000_000_000;
const RealDate = Date;
const { random } = Math;
const real = { setTimeout, setInterval, clearTimeout, clearInterval };
const realPerformance = globalThis.performance;

function now() {
  if (!state.building) return RealDate.now();
  touch("time");
  return AT_BUILD_MS;
}

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, like) => Reflect.construct(target, args.length ? args : [now()], like),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});
RealDate.prototype.constructor = globalThis.Date;

Math.random = function random_() {
  if (!state.building) return random();
  touch("random");
  return 0.5;
};

globalThis.performance = {
  now: () => (state.building ? now() - AT_BUILD_MS : realPerformance.now()),
  get timeOrigin() {
    return now();
  },
  mark: () => {},
  measure: () => {},
};

/** Replaces functions of `crypto` that need random numbers, which do not exist at build time. */
for (const name of ["getRandomValues", "randomUUID"]) {
  const own = globalThis.crypto?.[name];
  if (!own) continue;
  Object.defineProperty(globalThis.crypto, name, {
    configurable: true,
    value(given) {
      if (!state.building) return own.call(globalThis.crypto, given);
      touch("random");
      return name === "randomUUID" ? "00000000-0000-4000-8000-000000000000" : given;
    },
  });
}

/** What Node.js returns for a timer: an object, where browsers return a number. */
class Timeout {
  #kind;
  #args;
  #id;
  #due;

  constructor(kind, args) {
    this.#kind = kind;
    this.#args = args;
    this.#due = state.passed + (Number(args[1]) || 0);
    if (state.building) state.waiting.push(this);
    else this.refresh();
  }
  refresh() {
    this.close();
    this.#id = real[`set${this.#kind}`](...this.#args);
    return this;
  }
  close() {
    if (this.#id !== undefined) real[`clear${this.#kind}`](this.#id);
    else state.waiting = state.waiting.filter((one) => one !== this);
    return this;
  }
  /** When it is due, if it runs once, in the time that passes at build. */
  get due() {
    return this.#kind === "Timeout" ? this.#due : Infinity;
  }
  run() {
    const [work, , ...args] = this.#args;
    this.close();
    work(...args);
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
  hasRef() {
    return true;
  }
  [Symbol.toPrimitive]() {
    return this.#id ?? 0;
  }
}

const clear = (timer) => {
  if (timer instanceof Timeout) timer.close();
  else if (timer !== undefined && timer !== null && !state.building) real.clearTimeout(timer);
};
globalThis.setTimeout = (work, pause, ...args) => new Timeout("Timeout", [work, pause, ...args]);
globalThis.setInterval = (work, pause, ...args) => new Timeout("Interval", [work, pause, ...args]);
globalThis.setImmediate = (work, ...args) => new Timeout("Timeout", [work, 0, ...args]);
globalThis.clearTimeout = clear;
globalThis.clearInterval = clear;
globalThis.clearImmediate = clear;

// The engine's own begins to count at once, for which there is no clock at build time.
if (globalThis.AbortSignal) {
  AbortSignal.timeout = (ms) => {
    const controller = new AbortController();
    globalThis.setTimeout(() => {
      controller.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
    }, ms);
    return controller.signal;
  };
}

const { fetch } = globalThis;
if (fetch) {
  globalThis.fetch = (...args) => {
    if (!state.building) return fetch(...args);
    touch("fetch");
    return Promise.reject(new TypeError("fetch failed: nothing can be fetched while the plugin is built"));
  };
}

/** Forgets the timers that the modules set so far. */
export function forgetTimers() {
  state.waiting = [];
  state.passed = 0;
}

/** Runs the timer that is due next, if it is before `most`: at build, no time passes but for timers that a start waits for. */
export function advance(most) {
  const next = state.waiting.reduce((soonest, one) => (one.due < (soonest?.due ?? Infinity) ? one : soonest), undefined);
  if (!next || next.due > most) return false;
  touch("time");
  state.passed = next.due;
  next.run();
  return true;
}

/** Waits until the work that waits for nothing else has been done. The probe, in which some of it takes time, has its own way. */
export const pace = { idle: () => turns(1000) };

/** Lets other work take its turn so many times. */
export async function turns(count) {
  for (let left = count; left > 0; left--) await undefined;
}

/** Ends the time of the build. Called at the start of each call. */
export function live() {
  if (!state.building) return;
  state.building = false;
  for (const timer of state.waiting.splice(0)) timer.refresh();
}
