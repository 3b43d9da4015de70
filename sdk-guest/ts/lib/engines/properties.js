// Regular expressions with `\p{…}` for an engine without Unicode's properties. The build puts this function's source before the bundle.

/** Returns a `RegExp` that knows these properties: the first and the last character of each of their ranges. */
export function rewriting(known) {
  const real = globalThis.RegExp;
  const hex = (code) => "\\u{" + code.toString(16) + "}";
  const shown = (ranges) => {
    let text = "";
    for (let at = 0; at < ranges.length; at += 2) text += hex(ranges[at]) + "-" + hex(ranges[at + 1]);
    return text;
  };
  const others = (ranges) => {
    const found = [];
    let from = 0;
    for (let at = 0; at < ranges.length; at += 2) {
      if (ranges[at] > from) found.push(from, ranges[at] - 1);
      from = ranges[at + 1] + 1;
    }
    if (from <= 0x10ffff) found.push(from, 0x10ffff);
    return found;
  };
  const written = (pattern, flags) => {
    let depth = 0;
    return pattern.replace(/\\[pP]\{([^}]*)\}|\\[^]|[[\]]/g, (all, name) => {
      if (all === "[" && (depth === 0 || flags.includes("v"))) depth++;
      if (all === "]" && depth > 0) depth--;
      if (name === undefined) return all;
      const not = all[1] === "P";
      const mixed = not && flags.includes("v") && flags.includes("i");
      if (!Object.hasOwn(known, name) || mixed)
        throw new SyntaxError(
          `the regular expression /${pattern}/${flags} does not work here: a plugin knows ${all} only if the server's source has it in a string` + (mixed ? ", and not with the flags v and i" : ""),
        );
      const ranges = not ? others(known[name]) : known[name];
      return depth > 0 && !flags.includes("v") ? shown(ranges) : "[" + shown(ranges) + "]";
    });
  };
  const rewritten = ([pattern, flags]) => {
    const text = pattern instanceof real ? undefined : String(pattern ?? "");
    const asked = flags === undefined ? "" : String(flags);
    if (text === undefined || !/[uv]/.test(asked) || !/\\[pP]\{/.test(text)) return undefined;
    return [text, asked];
  };
  const named = (made, source) => Object.defineProperty(made, "source", { value: source, configurable: true });
  const changed = new Proxy(real, {
    construct(target, given, like) {
      const found = rewritten(given);
      if (!found) return Reflect.construct(target, given, like === changed ? target : like);
      return named(Reflect.construct(target, [written(...found), found[1]], like === changed ? target : like), found[0]);
    },
    apply(target, self, given) {
      const found = rewritten(given);
      return found ? named(target(written(...found), found[1]), found[0]) : target(...given);
    },
  });
  real.prototype.constructor = changed;
  return changed;
}
