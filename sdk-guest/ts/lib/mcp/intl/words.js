// `Intl.ListFormat`, `RelativeTimeFormat`, `DisplayNames`, `Segmenter` and `Collator`.

import { canonical, choice, lacking, localeOf, optionsOf, refuse, supported, tables } from "./common.js";
import { NumberFormat } from "./numbers.js";

const STYLES = ["long", "short", "narrow"];
const english = (locales) => supported(locales).filter((tag) => /^en(-|$)/.test(tag));

export class ListFormat {
  static supportedLocalesOf = english;
  #options;
  #known;
  constructor(locales, given) {
    const options = optionsOf(given, "ListFormat");
    const { tag, known } = localeOf(locales, "words", "Intl.ListFormat");
    const type = choice(options, "type", ["conjunction", "disjunction", "unit"], "conjunction", "ListFormat");
    const style = choice(options, "style", STYLES, "long", "ListFormat");
    this.#options = { locale: tag, type, style };
    this.#known = known.lists[`${type} ${style}`];
  }
  formatToParts(list) {
    const all = [...(list ?? [])];
    const wrong = all.find((one) => typeof one !== "string");
    if (wrong !== undefined) throw new TypeError("Iterable yielded a non-String value");
    const [two, first, middle, last] = this.#known;
    return all.flatMap((value, index) => {
      const element = { type: "element", value };
      if (!index) return [element];
      const end = index === all.length - 1;
      const between = all.length === 2 ? two : end ? last : index === 1 ? first : middle;
      return [{ type: "literal", value: between }, element];
    });
  }
  format(list) {
    return this.formatToParts(list)
      .map(({ value }) => value)
      .join("");
  }
  resolvedOptions() {
    return { ...this.#options };
  }
  get [Symbol.toStringTag]() {
    return "Intl.ListFormat";
  }
}

const UNITS = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];

export class RelativeTimeFormat {
  static supportedLocalesOf = english;
  #options;
  #known;
  #numbers;
  constructor(locales, given) {
    const options = optionsOf(given, "RelativeTimeFormat");
    const { tag, known } = localeOf(locales, "words", "Intl.RelativeTimeFormat");
    refuse(options, "RelativeTimeFormat", { numberingSystem: ["latn"] });
    const style = choice(options, "style", STYLES, "long", "RelativeTimeFormat");
    const numeric = choice(options, "numeric", ["always", "auto"], "always", "RelativeTimeFormat");
    this.#options = { locale: tag, style, numeric, numberingSystem: "latn" };
    this.#known = known.relative;
    this.#numbers = new NumberFormat(tag);
  }
  formatToParts(value, unit) {
    const number = Number(value);
    const name = String(unit).replace(/s$/, "");
    if (!UNITS.includes(name))
      throw new RangeError(`Invalid unit argument for Intl.RelativeTimeFormat.prototype.format() '${unit}'`);
    if (!Number.isFinite(number)) throw new RangeError("Invalid time value");
    const { forms, near } = this.#known[`${this.#options.style} ${name}`];
    const minus = number < 0 || Object.is(number, -0);
    if (this.#options.numeric === "auto") {
      if (Object.is(number, -0) && near[0]) return [{ type: "literal", value: near[0] }];
      if (Object.hasOwn(near, String(number))) return [{ type: "literal", value: near[String(number)] }];
    }
    const parts = this.#numbers.formatToParts(Math.abs(number)).map((part) => ({ ...part, unit: name }));
    const one = parts.length === 1 && parts[0].value === "1";
    const [before, after] = forms[(minus ? 2 : 0) + (one ? 0 : 1)];
    const literal = (text) => (text ? [{ type: "literal", value: text }] : []);
    return [...literal(before), ...parts, ...literal(after)];
  }
  format(value, unit) {
    return this.formatToParts(value, unit)
      .map((part) => part.value)
      .join("");
  }
  resolvedOptions() {
    return { ...this.#options };
  }
  get [Symbol.toStringTag]() {
    return "Intl.RelativeTimeFormat";
  }
}

const CODES = {
  // As in Node.js: a region is known by capitals.
  region: [/^([a-z]{2}|\d{3})$/i, (code) => code],
  language: [/^[a-z]{2,3}$/i, (code) => code.toLowerCase()],
  script: [/^[a-z]{4}$/i, (code) => code[0].toUpperCase() + code.slice(1).toLowerCase()],
  currency: [/^[a-z]{3}$/i, (code) => code.toUpperCase()],
};

export class DisplayNames {
  static supportedLocalesOf = (locales) => supported(locales).filter((tag) => /^en(-US)?$/.test(tag));
  #options;
  constructor(locales, given) {
    if (given === undefined) throw new TypeError("Cannot convert undefined or null to object");
    const options = optionsOf(given, "DisplayNames");
    const { tag } = localeOf(locales, "words", "Intl.DisplayNames");
    if (!/^en(-US)?$/.test(tag)) throw lacking(`Intl.DisplayNames for the locale ${tag}`);
    const types = ["language", "region", "script", "currency", "calendar", "dateTimeField"];
    const type = choice(options, "type", types, undefined, "DisplayNames");
    if (type === undefined) throw new TypeError('Required option "type" must not be undefined');
    if (!CODES[type] || !tables().names) throw lacking(`Intl.DisplayNames for the type ${type}`);
    refuse(options, "DisplayNames", { style: ["long"], languageDisplay: ["dialect"] });
    const fallback = choice(options, "fallback", ["code", "none"], "code", "DisplayNames");
    this.#options = { locale: tag, style: "long", type, fallback };
  }
  of(code) {
    const { type, fallback } = this.#options;
    const [form, canonicalCode] = CODES[type];
    const text = String(code);
    if (type === "language" && text.includes("-") && canonical([text])) throw lacking(`the name of the language ${text}`);
    if (!form.test(text)) throw new RangeError("Invalid argument to Intl.DisplayNames.prototype.of");
    const known = canonicalCode(text);
    const name = tables().names[type][known];
    // Not all scripts are in the table.
    if (name === undefined && type === "script") throw lacking(`the name of the script ${text}`);
    return name ?? (fallback === "code" ? known : undefined);
  }
  resolvedOptions() {
    const { type } = this.#options;
    return { ...this.#options, ...(type === "language" && { languageDisplay: "dialect" }) };
  }
  get [Symbol.toStringTag]() {
    return "Intl.DisplayNames";
  }
}

/** Letters of scripts in which each stands for itself, digits, and the marks of ASCII. Everything else has rules of its own. */
const PLAIN = /^[\t\n\r\x20-\x7e\xa1-\xac\xae-\xb6\xb8-\u02ff\u0391-\u03ff\u0400-\u0482\u048a-\u052f\u2010\u2011\u2013-\u2017\u2018-\u201f\u2026\u20ac]*$/;
/** Han, kana and Hangul besides: each is a character for a person. */
const CLUSTERS = /^[\t\n\r\x20-\x7e\xa1-\xa8\xaa-\xac\xaf-\u02ff\u0391-\u03ff\u0400-\u0482\u048a-\u052f\u2010-\u2027\u20ac\u3001-\u3029\u3031-\u303c\u3041-\u3096\u309b-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff9d]*$/;
const WORD = /^[\w\xaa\xb5\xba\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0391-\u03ff\u0400-\u0482\u048a-\u052f]/;
/** Letters and digits, with a point or an apostrophe between letters and a comma between digits; or spaces; or one character. */
const WORDS =
  /(?:[A-Za-z\xaa\xb5\xba\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0391-\u03f5\u03f7-\u0481\u048a-\u052f]|(?<=[A-Za-z\xaa\xb5\xba\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0391-\u03f5\u03f7-\u0481\u048a-\u052f])[:.'\u2018\u2019\u2024](?=[A-Za-z\xaa\xb5\xba\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0391-\u03f5\u03f7-\u0481\u048a-\u052f])|[0-9_]|(?<=[0-9])[.,;'\u2018\u2019\u2024](?=[0-9]))+|\r\n|\x20+|[^]/gu;

class Segments {
  #parts;
  constructor(parts) {
    this.#parts = parts;
  }
  containing(index = 0) {
    const at = Math.trunc(Number(index)) || 0;
    const found = this.#parts.find((one) => at >= one.index && at < one.index + one.segment.length);
    return found && { ...found };
  }
  *[Symbol.iterator]() {
    for (const one of this.#parts) yield { ...one };
  }
}

export class Segmenter {
  static supportedLocalesOf = supported;
  #options;
  constructor(locales, given) {
    const options = optionsOf(given, "Segmenter");
    const { tag } = localeOf(locales, "words", "Intl.Segmenter");
    const kinds = ["grapheme", "word", "sentence"];
    const granularity = choice(options, "granularity", kinds, "grapheme", "Segmenter");
    if (granularity === "sentence") throw lacking("Intl.Segmenter for sentences");
    this.#options = { locale: tag, granularity };
  }
  segment(given) {
    const input = String(given);
    const word = this.#options.granularity === "word";
    if (!(word ? PLAIN : CLUSTERS).test(input))
      throw lacking(`Intl.Segmenter for a text with ${word ? "other letters than Latin, Greek and Cyrillic ones" : "marks, emoji or rare letters"}`);
    let index = 0;
    const parts = (input.match(word ? WORDS : /\r\n|[^]/gu) ?? []).map((segment) => {
      const one = { segment, index, input, ...(word && { isWordLike: WORD.test(segment) && segment !== "_" }) };
      index += segment.length;
      return one;
    });
    return new Segments(parts);
  }
  resolvedOptions() {
    return { ...this.#options };
  }
  get [Symbol.toStringTag]() {
    return "Intl.Segmenter";
  }
}

/** Languages whose letters have the order that English has. */
const SAME_ORDER = /^(en|de|fr|it|pt|nl|id|ms|ga|ru|bg)(-|$)/;
const SENSITIVITIES = ["base", "accent", "case", "variant"];

export class Collator {
  static supportedLocalesOf = supported;
  #options;
  #compare;
  constructor(locales, given) {
    const options = optionsOf(given, "Collator");
    const tag = canonical(locales)[0] ?? "en-US";
    if (!SAME_ORDER.test(tag) || /-u-/.test(tag)) throw lacking(`the order of letters of the locale ${tag}`, "a plugin has that of English");
    const { order } = tables();
    if (!order) throw lacking("Intl.Collator", "the build found nothing in the server that needs `Intl`, and left its tables out");
    order.markAt ??= Object.fromEntries(order.marks.map((mark, index) => [mark, index + 1]));
    const usage = choice(options, "usage", ["sort", "search"], "sort", "Collator");
    const sensitivity = choice(options, "sensitivity", SENSITIVITIES, "variant", "Collator");
    const caseFirst = choice(options, "caseFirst", ["upper", "lower", "false"], "false", "Collator");
    if (usage === "search") throw lacking("the usage search of Intl.Collator");
    if (caseFirst !== "false") throw lacking("the option caseFirst of Intl.Collator");
    refuse(options, "Collator", { collation: ["default"] });
    if (options.ignorePunctuation) throw lacking("the option ignorePunctuation of Intl.Collator");
    const numeric = Boolean(options.numeric);
    const fixed = { ignorePunctuation: false, collation: "default" };
    this.#options = { locale: tag, usage, sensitivity, ...fixed, numeric, caseFirst };
    this.#compare = (one, other) => compared(String(one), String(other), { sensitivity, numeric });
  }
  get compare() {
    return this.#compare;
  }
  resolvedOptions() {
    return { ...this.#options };
  }
  get [Symbol.toStringTag]() {
    return "Intl.Collator";
  }
}

/** The weights of a text: letters, accents, cases. */
function keysOf(text, numeric) {
  const { weights, markAt } = tables().order;
  const [letters, accents, cases] = [[], [], []];
  const read = text.normalize("NFD");
  for (let at = 0; at < read.length; ) {
    const digits = numeric && /^\d+/.exec(read.slice(at))?.[0];
    if (digits) {
      const whole = digits.replace(/^0+(?=\d)/, "");
      letters.push(weights["0"][0] + whole.length / 1e6, ...[...whole].map((digit) => weights["0"][0] + Number(digit) / 1e3));
      accents.push(0, ...[...whole].map(() => 0));
      cases.push(0, ...[...whole].map(() => 0));
      at += digits.length;
      continue;
    }
    const one = String.fromCodePoint(read.codePointAt(at));
    at += one.length;
    if (Object.hasOwn(markAt, one)) {
      if (!letters.length) throw lacking("the order of a text that begins with a mark");
      accents.push(markAt[one]);
    } else if (Object.hasOwn(weights, one)) {
      letters.push(weights[one][0]);
      accents.push(0);
      cases.push(weights[one][1]);
    } else if (!/[\0-\x08\x0e-\x1f\x7f]/.test(one)) throw lacking(`the order of the character ${JSON.stringify(one)}`);
  }
  return [letters, accents, cases];
}

function compared(one, other, { sensitivity, numeric }) {
  if (one === other) return 0;
  const [first, second] = [keysOf(one, numeric), keysOf(other, numeric)];
  const levels = { base: [0], accent: [0, 1], case: [0, 2], variant: [0, 1, 2] }[sensitivity];
  for (const level of levels) {
    const [left, right] = [first[level], second[level]];
    for (let at = 0; at < Math.max(left.length, right.length); at++) {
      const [a, b] = [left[at] ?? -1, right[at] ?? -1];
      if (a !== b) return a < b ? -1 : 1;
    }
  }
  return 0;
}
