// The functions that only wharf provides, by the modules that export them. Outside of a component, other sources stand for these modules.

export const HOST = {
  "wharf:plugin/logging@0.1.0": ["log"],
  "wharf:plugin/progress@0.1.0": ["report"],
  "wharf:plugin/announcements@0.1.0": ["listChanged", "resourceUpdated"],
  "wharf:plugin/environment@0.1.0": ["config", "directories"],
  "wasi:clocks/monotonic-clock@0.2.0": ["now", "subscribeDuration"],
  "wasi:random/random@0.2.0": ["getRandomBytes"],
  "wasi:cli/environment@0.2.0": ["getEnvironment"],
  "wasi:filesystem/preopens@0.2.0": ["getDirectories"],
};

/** Returns sources for these modules. `value` returns the expression for a function. */
export const sources = (value) =>
  Object.fromEntries(
    Object.entries(HOST).map(([path, names]) => [
      path,
      names.map((name) => `export const ${name} = ${value(name, path)};`).join("\n"),
    ]),
  );
