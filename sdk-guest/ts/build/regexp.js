// Rewrites regular expressions that StarlingMonkey does not know: its engine lacks the tables of Unicode properties (`\p{…}`).

import { load } from "./packages.js";

const PROPERTY = /\\[pP]\{/;

/** Returns the code without `\p{…}`: literals are rewritten, and patterns in strings are found by `RegExp` when it gets them. */
export async function withoutProperties(code, project) {
  if (!PROPERTY.test(code) && !code.includes("\\\\p{") && !code.includes("\\\\P{")) return code;
  const acorn = await load("acorn", project);
  const { default: rewrite } = await load("regexpu-core", project);
  const rewritten = (pattern, flags) =>
    rewrite(pattern, flags, {
      unicodePropertyEscapes: "transform",
      unicodeSetsFlag: flags.includes("v") ? "transform" : undefined,
    });
  const edits = [];
  const table = {};
  for (const token of acorn.tokenizer(code, { ecmaVersion: "latest", sourceType: "module", allowHashBang: true })) {
    if (token.type === acorn.tokTypes.regexp) {
      const { pattern, flags } = token.value;
      if (!PROPERTY.test(pattern) || !/[uv]/.test(flags)) continue;
      edits.push([token.start, token.end, `/${rewritten(pattern, flags)}/${flags.replace("v", "u")}`]);
    } else if (token.type === acorn.tokTypes.string || token.type === acorn.tokTypes.template) {
      const text = token.value;
      if (typeof text !== "string" || !PROPERTY.test(text)) continue;
      try {
        table[text] = rewritten(text, "u");
      } catch {
        // The text is not a whole pattern.
      }
    }
  }
  let made = code;
  for (const [start, end, text] of edits.reverse()) made = made.slice(0, start) + text + made.slice(end);
  return Object.keys(table).length ? wrapper(table) + made : made;
}

/** One line, so that the lines of the bundle keep their distance. It takes the place of `RegExp` for patterns that the table has. */
const wrapper = (table) =>
  `{ const table = ${JSON.stringify(table)}; const given = (pattern) => (typeof pattern === "string" && Object.hasOwn(table, pattern) ? table[pattern] : pattern);` +
  ` globalThis.RegExp = new Proxy(RegExp, { construct: (target, [pattern, flags], like) => Reflect.construct(target, [given(pattern), given(pattern) === pattern ? flags : flags?.replace("v", "u")], like),` +
  ` apply: (target, self, [pattern, flags]) => target(given(pattern), flags) }); }`;
