// Promises whose microtasks ("turns") are run by an explicit call. An engine without async exports must answer a call synchronously, and
// does not run its own microtasks meanwhile.

const turns = [];

/** Runs all pending turns. */
export function takeTurns() {
  for (let turn = turns.shift(); turn; turn = turns.shift()) turn();
}

export class TurnPromise {
  #state = "pending";
  #value;
  #waiting = [];

  constructor(start) {
    const { resolve, reject } = this.#settlers();
    try {
      start(resolve, reject);
    } catch (thrown) {
      reject(thrown);
    }
  }

  #settlers() {
    let done = false;
    const once = (settle) => (value) => {
      if (done) return;
      done = true;
      settle(value);
    };
    return { resolve: once((value) => this.#follow(value)), reject: once((reason) => this.#end("rejected", reason)) };
  }

  #follow(value) {
    if (value === this) return this.#end("rejected", new TypeError("a promise waits for itself"));
    let then;
    try {
      then = (typeof value === "object" && value !== null) || typeof value === "function" ? value.then : undefined;
    } catch (thrown) {
      return this.#end("rejected", thrown);
    }
    if (typeof then !== "function") return this.#end("fulfilled", value);
    const { resolve, reject } = this.#settlers();
    turns.push(() => {
      try {
        then.call(value, resolve, reject);
      } catch (thrown) {
        reject(thrown);
      }
    });
  }

  #end(state, value) {
    this.#state = state;
    this.#value = value;
    turns.push(...this.#waiting);
    this.#waiting = [];
  }

  /** `["pending"]`, `["fulfilled", value]` or `["rejected", reason]`. */
  peek() {
    return [this.#state, this.#value];
  }

  then(fulfilled, rejected) {
    return new TurnPromise((resolve, reject) => {
      const turn = () => {
        const handler = this.#state === "fulfilled" ? fulfilled : rejected;
        if (typeof handler !== "function") return (this.#state === "fulfilled" ? resolve : reject)(this.#value);
        try {
          resolve(handler(this.#value));
        } catch (thrown) {
          reject(thrown);
        }
      };
      (this.#state === "pending" ? this.#waiting : turns).push(turn);
    });
  }

  catch(rejected) {
    return this.then(undefined, rejected);
  }

  finally(last) {
    const before = (pass) => (value) => TurnPromise.resolve(last()).then(() => pass(value));
    return this.then(
      before((value) => value),
      before((reason) => TurnPromise.reject(reason)),
    );
  }

  static resolve(value) {
    return value instanceof TurnPromise ? value : new TurnPromise((resolve) => resolve(value));
  }

  static reject(reason) {
    return new TurnPromise((_, reject) => reject(reason));
  }

  static withResolvers() {
    const made = {};
    made.promise = new TurnPromise((resolve, reject) => Object.assign(made, { resolve, reject }));
    return made;
  }

  static try(work, ...args) {
    return new TurnPromise((resolve) => resolve(work(...args)));
  }

  static all(list) {
    return gather(list, (all, resolve, reject) => [(value, index) => all.set(index, value), reject, resolve]);
  }

  static allSettled(list) {
    const put = (all, status, key) => (value, index) => all.set(index, { status, [key]: value });
    return gather(list, (all, resolve) => [put(all, "fulfilled", "value"), put(all, "rejected", "reason"), resolve]);
  }

  static any(list) {
    return gather(list, (all, resolve, reject) => [
      resolve,
      (reason, index) => all.set(index, reason),
      (reasons) => reject(new AggregateError(reasons, "all promises were rejected")),
    ]);
  }

  static race(list) {
    return new TurnPromise((resolve, reject) => {
      for (const one of list) TurnPromise.resolve(one).then(resolve, reject);
    });
  }

  static [Symbol.hasInstance](value) {
    return typeof value === "object" && value !== null && #state in value;
  }

  get [Symbol.toStringTag]() {
    return "Promise";
  }
}

/** Waits for all promises in a list. `handlers` returns the functions for each fulfilled and rejected promise, and for the end. */
function gather(list, handlers) {
  return new TurnPromise((resolve, reject) => {
    const all = new Map();
    const items = [...list];
    const [fulfilled, rejected, last] = handlers(all, resolve, reject);
    let left = items.length;
    const end = () => last(items.map((_, index) => all.get(index)));
    if (!left) return end();
    items.forEach((one, index) => {
      const ended = (handler) => (value) => {
        handler(value, index);
        if (--left === 0) end();
      };
      TurnPromise.resolve(one).then(ended(fulfilled), ended(rejected));
    });
  });
}
