// Time and random numbers while the modules load, which is at build: constants, for packages that ask for them at their top level. The
// engines have none then. The build adds this module only if a package asks.

let loading = true;

/** Ends the time of the build. */
export function loaded() {
  loading = false;
}

/** Replaces a function for good, because a package may keep it: the constant is given only while the modules load. */
function constant(owner, name, value) {
  const own = owner?.[name];
  if (own) owner[name] = (...args) => (loading ? value : own.apply(owner, args));
}

constant(Date, "now", 1_700_000_000_000);
constant(Math, "random", 0.5);
constant(globalThis.performance, "now", 0);
