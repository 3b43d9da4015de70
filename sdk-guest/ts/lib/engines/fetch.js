// esbuild injects this module if a plugin uses `fetch`. By its presence in the bundle the build knows that.

const { fetch } = globalThis;

export { fetch };
