// `node:async_hooks`. A plugin answers one call at a time, so a store stays set until the function that was run with it has settled.

export class AsyncLocalStorage {
  #store;
  run(store, work, ...args) {
    const before = this.#store;
    this.#store = store;
    const restore = () => void (this.#store = before);
    let result;
    try {
      result = work(...args);
    } catch (thrown) {
      restore();
      throw thrown;
    }
    if (typeof result?.then !== "function") {
      restore();
      return result;
    }
    return result.finally(restore);
  }
  exit(work, ...args) {
    return this.run(undefined, work, ...args);
  }
  getStore() {
    return this.#store;
  }
  enterWith(store) {
    this.#store = store;
  }
  disable() {
    this.#store = undefined;
  }
  static bind = (work) => work;
  static snapshot =
    () =>
    (work, ...args) =>
      work(...args);
}

export class AsyncResource {
  runInAsyncScope(work, self, ...args) {
    return work.apply(self, args);
  }
  bind(work) {
    return work;
  }
  emitDestroy() {
    return this;
  }
  static bind = (work) => work;
}

export const createHook = () => ({ enable() {}, disable() {} });
export const executionAsyncId = () => 0;
export const triggerAsyncId = () => 0;

export default { AsyncLocalStorage, AsyncResource, createHook, executionAsyncId, triggerAsyncId };
