// Rewrites regular expressions that StarlingMonkey does not know: its engine lacks the tables of Unicode properties (`\p{…}`).

import { load } from "./packages.js";
import { rewriting } from "../lib/engines/properties.js";

const PROPERTY = /\\[pP]\{/;
const NAMES = /\\[pP]\{([\w=]+)\}/g;
const MADE = /\\[pP]\{(?![\w=]+\})/;
/** What a property may be called that is not a category. */
const PROPERTY_NAME = /^(?=.{3,40}$)[A-Z]\w*[a-z]\w*$/;
const CATEGORIES =
  "L LC Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc Cf Cn Co Cs".split(" ");

/**
 * Returns the code without `\p{…}` in literals. Patterns that are made at run time are rewritten then, for the properties that strings of the
 * code name; `always`: for others, they throw a sentence.
 */
export async function withoutProperties(code, project, { always = false } = {}) {
  const none = !PROPERTY.test(code) && !code.includes("\\\\p{") && !code.includes("\\\\P{");
  if (none) return always ? wrapper([]) + code : code;
  const acorn = await load("acorn", project);
  const { default: rewrite } = await load("regexpu-core", project);
  const rewritten = (pattern, flags) =>
    rewrite(pattern, flags, {
      unicodePropertyEscapes: "transform",
      unicodeSetsFlag: flags.includes("v") ? "transform" : undefined,
    });
  const edits = [];
  const names = new Set();
  const words = new Set();
  let makes = false;
  for (const token of acorn.tokenizer(code, { ecmaVersion: "latest", sourceType: "module", allowHashBang: true })) {
    if (token.type === acorn.tokTypes.regexp) {
      const { pattern, flags } = token.value;
      // The text of a literal may become a part of a pattern, as its `source`.
      if (!PROPERTY.test(pattern) || !/[uv]/.test(flags)) continue;
      edits.push([token.start, token.end, `/${rewritten(pattern, flags)}/${flags.replace("v", "u")}`]);
    } else if (token.type === acorn.tokTypes.string || token.type === acorn.tokTypes.template) {
      // A template that is a tag's may have no value, and its source says the same.
      const text = token.value ?? code.slice(token.start, token.end);
      if (typeof text !== "string") continue;
      if (PROPERTY_NAME.test(text)) words.add(text);
      for (const raw of [text, code.slice(token.start, token.end)]) {
        for (const [, name] of raw.matchAll(NAMES)) names.add(name);
        makes ||= MADE.test(raw);
      }
    }
  }
  // The names that are put into such a pattern are categories, or stand somewhere in the code.
  if (makes) for (const name of [...CATEGORIES, ...words]) names.add(name);
  let made = code;
  for (const [start, end, text] of edits.reverse()) made = made.slice(0, start) + text + made.slice(end);
  return names.size || always ? wrapper([...names]) + made : made;
}

/** One line, so that the lines of the bundle keep their distance. It takes the place of `RegExp` for patterns with properties. */
function wrapper(names) {
  const known = names.map((name) => [name, rangesOf(name)]).filter(([, ranges]) => ranges);
  const source = String(rewriting)
    .replace(/^ *\/\/.*$/gm, "")
    .replace(/\n\s*/g, " ");
  return `globalThis.RegExp = (${source})(${JSON.stringify(Object.fromEntries(known))}); `;
}

/** The first and the last character of each range that has the property. A property that Node.js does not know either has none. */
function rangesOf(name) {
  let property;
  try {
    property = new RegExp(`^\\p{${name}}$`, "u");
  } catch {
    return undefined;
  }
  const ranges = [];
  let from = -1;
  for (let code = 0; code <= 0x110000; code++) {
    const has = code < 0x110000 && property.test(String.fromCodePoint(code));
    if (has && from < 0) from = code;
    if (has || from < 0) continue;
    ranges.push(from, code - 1);
    from = -1;
  }
  return ranges;
}
