// Stands in the bundle of a plugin that uses `fetch`, so the build knows that it does.

const { fetch } = globalThis;

export { fetch };
