// Finds out from Node.js what the engine does not know: how dates and numbers are written, time zones, and the order of letters. The tables
// become a part of the component; the stand-ins for `Intl` read them (lib/mcp/intl). So they answer as the Node.js that builds.

import { ALIASES } from "./zones.js";

const USES = /\bIntl\b|\btoLocale|\blocaleCompare\b/;
/** `normalize` without an argument, or the name of a form. */
const NORMALIZES = /\.normalize\(\)|["'`]NFK?[CD]["'`]/;
const ZONES = /\btimeZone\b/;
/** Tags with a region, and those without one where a locale is expected. */
const TAGS =
  /["'`]([a-z]{2,3}(?:-[A-Z][a-z]{3})?-(?:[A-Z]{2}|\d{3}))["'`]|(?:toLocale\w+\(|Intl\.\w+\(\s*\[?|localeCompare\([^()]{1,60},|\blocales?["']?\s*[:=])\s*["'`]([a-z]{2,3})["'`]/g;
const MOST_TAGS = 8;

/** Returns the tables for a server with this text. */
export function tablesFor(text) {
  const normal = NORMALIZES.test(text) || USES.test(text) ? { normal: normalOf(/NFK/.test(text)) } : {};
  if (!USES.test(text)) return normal;
  const named = [...text.matchAll(TAGS)].map(([, region, plain]) => region ?? plain);
  const tags = ["en-US", ...new Set(named)].filter((tag) => tag !== "en" && native(tag)).slice(0, MOST_TAGS);
  const currencies = /currency/i.test(text);
  const units = /["'`]unit["'`]/.test(text);
  return {
    ...normal,
    locales: Object.fromEntries(tags.map((tag) => [tag, localeOf(tag, { currencies, units })])),
    ...(ZONES.test(text) && { zones: zones() }),
    order: order(),
    ...(/\bDisplayNames\b/.test(text) && { names: names() }),
  };
}

function native(tag) {
  try {
    return Intl.DateTimeFormat.supportedLocalesOf(tag).length === 1;
  } catch {
    return false;
  }
}

const isEnglish = (tag) => /^en(-|$)/.test(tag);

function localeOf(tag, { currencies, units }) {
  const numbers = numbersOf(tag, currencies, units);
  return { numbers, dates: datesOf(tag), ...(isEnglish(tag) && { words: wordsOf(tag) }) };
}

// Dates.

const SAMPLE = Date.UTC(2005, 1, 3, 4, 5, 6, 7);
const WIDTHS = { "": undefined, n: "numeric", 2: "2-digit", l: "long", s: "short", r: "narrow" };
export const DATE_KEYS = ["", "l", "s", "r"].flatMap((weekday) =>
  ["", "n", "2"].flatMap((year) =>
    ["", "n", "2", "l", "s", "r"].flatMap((month) => ["", "n", "2"].map((day) => [weekday, year, month, day])),
  ),
);
const CYCLES = { "": {}, 12: { hour12: true }, 24: { hour12: false }, h12: { hourCycle: "h12" }, h23: { hourCycle: "h23" } };
const TIMES = ["", "n", "2"].flatMap((hour) =>
  ["", "n", "2"].flatMap((minute) =>
    ["", "n", "2"].flatMap((second) => (second ? ["", "f"] : [""]).map((part) => [hour, minute, second, part])),
  ),
);
const STYLES = ["", "full", "long", "medium", "short"];

function datesOf(tag) {
  const plain = new Intl.DateTimeFormat(tag, { timeZone: "UTC" }).resolvedOptions();
  if (plain.calendar !== "gregory" || plain.numberingSystem !== "latn") return undefined;
  const pool = [];
  const found = { date: {}, time: {}, join: {}, zoned: {}, style: {}, pool };
  const read = (options) => pattern(tag, options, pool);
  const clock = [{ hour: "numeric" }, { hour: "numeric", minute: "numeric" }, { hour: "numeric", minute: "numeric", second: "numeric" }];
  const times = [...clock, ...clock.map((time) => ({ ...time, timeZoneName: "short" }))];
  const clocks = times.map((time) => [time, read(time)]);
  for (const [weekday, year, month, day] of DATE_KEYS) {
    const key = [weekday || "-", year || "-", month || "-", day || "-"].join("");
    const options = { weekday: WIDTHS[weekday], year: WIDTHS[year], month: WIDTHS[month], day: WIDTHS[day] };
    if (key === "----") continue;
    found.date[key] = read(options);
    const joins = clocks.map(([time, alone]) => between(found.date[key], read({ ...options, ...time }), alone));
    // In most cases it is the same before every time.
    found.join[key] = joins.every((one) => one !== undefined && one === joins[0]) ? joins[0] : joins.map((one) => one ?? null);
    const zoned = between(found.date[key], read({ ...options, timeZoneName: "short" }), [["timeZoneName", 0]]);
    if (zoned !== undefined) found.zoned[key] = zoned;
  }
  for (const [hour, minute, second, part] of TIMES) {
    const options = { hour: WIDTHS[hour], minute: WIDTHS[minute], second: WIDTHS[second], ...(part && { fractionalSecondDigits: 3 }) };
    if (!hour && !minute && !second) continue;
    for (const [cycle, more] of hour ? Object.entries(CYCLES) : [["", {}]])
      for (const timeZoneName of [undefined, "short"]) {
        const key = [hour || "-", minute || "-", second || "-", part, timeZoneName ? "z" : "", cycle].join("");
        found.time[key] = read({ ...options, ...more, timeZoneName });
      }
  }
  for (const dateStyle of STYLES)
    for (const timeStyle of STYLES)
      for (const [cycle, more] of timeStyle ? Object.entries(CYCLES) : [["", {}]]) {
        if (!dateStyle && !timeStyle) continue;
        const styles = { ...(dateStyle && { dateStyle }), ...(timeStyle && { timeStyle }) };
        found.style[[dateStyle, timeStyle, cycle].join()] = read({ ...styles, ...more });
      }
  const hour = new Intl.DateTimeFormat("en-US", { timeZone: "UTC", hour: "numeric" });
  return { ...found, narrow: hour.format(SAMPLE).includes("\u202f"), utc: ["long", "short"].map((width) => zoneName(tag, "UTC", width)(SAMPLE)) };
}

/** The text between a date and what follows it, beyond the text with which the one ends and the other begins. */
function between(first, whole, last) {
  if (!first || !whole || !last) return undefined;
  const [before, after] = [first.at(-1), last[0]].map((part) => (typeof part === "string" ? part : ""));
  const one = first.slice(0, before ? -1 : undefined).map((part) => JSON.stringify(part));
  const other = last.slice(after ? 1 : 0).map((part) => JSON.stringify(part));
  const all = whole.map((part) => JSON.stringify(part));
  const begins = one.every((part, index) => all[index] === part);
  const ends = other.every((part, index) => all[all.length - other.length + index] === part);
  const middle = whole[one.length] ?? "";
  if (!begins || !ends || all.length !== one.length + other.length + 1 || typeof middle !== "string") return undefined;
  const fits = middle.startsWith(before) && middle.endsWith(after) && middle.length >= before.length + after.length;
  return fits ? middle.slice(before.length, middle.length - after.length) : undefined;
}

/** Returns texts, and `[field, how]`: with 1 or 2 digits, by an hour's cycle, or the place of the names in the pool. */
function pattern(tag, options, pool) {
  const format = new Intl.DateTimeFormat(tag, { timeZone: "UTC", ...options });
  const parts = format.formatToParts(SAMPLE);
  const found = parts.map(({ type, value }, index) => {
    const at = (...time) => format.formatToParts(Date.UTC(...time))[index]?.value;
    const named = (names) => {
      const text = JSON.stringify(names);
      const known = pool.findIndex((one) => JSON.stringify(one) === text);
      return [type, known < 0 ? -pool.push(names) : -known - 1];
    };
    const digits = /^\d+$/.test(value) && [type, value.length === 2 && value.startsWith("0") ? 2 : 1];
    if (type === "literal") return value;
    if (type === "weekday") return named([6, 7, 8, 9, 10, 11, 12].map((day) => at(2005, 1, day)));
    if (type === "month") return digits || named([...Array(12).keys()].map((month) => at(2005, month, 3, 4, 5, 6)));
    if (type === "day" || type === "minute" || type === "second" || type === "year") return digits || undefined;
    if (type === "fractionalSecond" || type === "timeZoneName") return [type, 0];
    if (type === "hour" && digits) {
      const cycle = { "0 4": "h11", "12 4": "h12", "0 16": "h23", "24 16": "h24" };
      return [type, digits[1], cycle[[at(2005, 1, 3, 0, 5), at(2005, 1, 3, 16, 5)].map(Number).join(" ")]];
    }
    if (type !== "dayPeriod") return undefined;
    const hours = [...Array(24).keys()].map((hour) => at(2005, 1, 3, hour, 5));
    return hours.every((one, hour) => one === hours[hour < 12 ? 0 : 12]) ? named([hours[0], hours[12]]) : undefined;
  });
  return found.every((part) => part !== undefined) ? found : null;
}

// Time zones.

const [FIRST, LAST] = [Date.UTC(1970, 0, 1), Date.UTC(2038, 0, 1)];
const STEP = 14 * 86_400_000;
const NAMED_FROM = 2000;

function zones() {
  const names = Intl.supportedValuesOf("timeZone");
  const before = process.env.TZ;
  const changes = {};
  // Many zones have changed together since 1970.
  const known = new Map();
  try {
    for (const zone of names) {
      process.env.TZ = zone;
      const made = changesOf();
      const text = JSON.stringify(made);
      if (!known.has(text)) known.set(text, known.size);
      changes[zone] = known.get(text);
    }
  } finally {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  }
  const aliases = {};
  for (const alias of ALIASES) {
    try {
      aliases[alias] = new Intl.DateTimeFormat("en", { timeZone: alias }).resolvedOptions().timeZone;
    } catch {
      // Not in this version of Node.js.
    }
  }
  const lists = [...known.keys()].map((text) => JSON.parse(text));
  const named = names.map((zone) => [zone, namesOf(zone, lists[changes[zone]])]);
  return { changes, lists, aliases, names: Object.fromEntries(named) };
}

function offset(time) {
  const date = new Date(time);
  const local = Date.UTC(date.getFullYear(), date.getMonth(), date.getDate(), date.getHours(), date.getMinutes(), date.getSeconds());
  return (local - Math.floor(time / 1000) * 1000) / 60_000;
}

/** The offset in minutes, and then when it changes, in minutes from the change before, and to what. */
function changesOf() {
  const found = [offset(FIRST)];
  let [since, current] = [FIRST, found[0]];
  for (let time = FIRST + STEP; time <= LAST; time += STEP) {
    const now = -new Date(time).getTimezoneOffset();
    if (now === Math.trunc(current)) continue;
    let [low, high] = [time - STEP, time];
    while (high - low > 60_000) {
      const middle = Math.floor((low + high) / 120_000) * 60_000;
      if (-new Date(middle).getTimezoneOffset() === Math.trunc(current)) low = middle;
      else high = middle;
    }
    current = offset(time);
    found.push((high - since) / 60_000, current);
    since = high;
  }
  return found;
}

const zoneName = (tag, zone, width) => {
  const format = new Intl.DateTimeFormat(tag, { timeZone: zone, timeZoneName: width, year: "numeric" });
  return (time) => format.formatToParts(time).find(({ type }) => type === "timeZoneName").value;
};

/** The names for each offset, and since which year these were its names. */
function namesOf(zone, changes) {
  const [long, short] = [zoneName("en-US", zone, "long"), zoneName("en-US", zone, "short")];
  const found = {};
  let since = NAMED_FROM;
  for (let year = 2037; year >= NAMED_FROM; year--)
    for (const month of [0, 3, 6, 9]) {
      const time = Date.UTC(year, month, 15);
      const at = offsetAt(changes, time);
      const names = [long(time), short(time)];
      const known = (found[at] ??= names);
      if (known[0] !== names[0] || known[1] !== names[1]) since = Math.max(since, year + 1);
    }
  return [since, found];
}

function offsetAt(changes, time) {
  let [at, current] = [FIRST, changes[0]];
  for (let index = 1; index < changes.length; index += 2) {
    at += changes[index] * 60_000;
    if (at > time) break;
    current = changes[index + 1];
  }
  return current;
}

// Numbers.

const DISPLAYS = ["symbol", "narrowSymbol", "code"];

function numbersOf(tag, currencies, units) {
  const plain = new Intl.NumberFormat(tag);
  if (plain.resolvedOptions().numberingSystem !== "latn") return undefined;
  const part = (format, value, type) => format.formatToParts(value).find((one) => one.type === type)?.value;
  const always = new Intl.NumberFormat(tag, { useGrouping: "always" });
  const sizes = always.formatToParts(123456789).filter(({ type }) => type === "integer").map(({ value }) => value.length);
  const found = {
    group: part(always, 1234567, "group"),
    decimal: part(plain, 1.5, "decimal"),
    nan: plain.format(NaN),
    sizes: [sizes.at(-1), sizes.at(-2)],
    least: [1, 2].find((count) => plain.formatToParts(10 ** (count + 2)).some(({ type }) => type === "group")) ?? 9,
    affixes: { decimal: affixes(tag, {}), percent: affixes(tag, { style: "percent" }) },
  };
  const english = isEnglish(tag);
  if (english)
    for (const compactDisplay of ["short", "long"])
      found[compactDisplay] = [...Array(15).keys()].map((power) => compact(tag, power, compactDisplay));
  if (currencies) Object.assign(found, currenciesOf(tag, english));
  if (units && english)
    for (const unit of Intl.supportedValuesOf("unit"))
      for (const unitDisplay of ["short", "long", "narrow"])
        found.affixes[`${unit} ${unitDisplay}`] = plurals(tag, { style: "unit", unit, unitDisplay });
  return found;
}

/** For each currency its digits and, for each way to show it, its text and the form in which it stands. Most currencies share a form. */
function currenciesOf(tag, english) {
  const found = { digits: {}, symbols: {}, forms: {}, named: {} };
  for (const currency of Intl.supportedValuesOf("currency")) {
    const given = { style: "currency", currency };
    for (const currencyDisplay of DISPLAYS) {
      const format = new Intl.NumberFormat(tag, { ...given, currencyDisplay });
      if (currencyDisplay === "symbol") {
        const { maximumFractionDigits } = format.resolvedOptions();
        if (maximumFractionDigits !== 2) found.digits[currency] = maximumFractionDigits;
      }
      const parts = format.formatToParts(1);
      const symbol = parts.find(({ type }) => type === "currency").value;
      const shape = parts.map(({ type, value }) => (type === "literal" ? value : type)).join();
      found.forms[shape] ??= ["standard", "accounting"].map((currencySign) =>
        affixes(tag, { ...given, currencyDisplay, currencySign }),
      );
      found.symbols[`${currency} ${currencyDisplay}`] = [symbol, shape];
    }
    if (!english) continue;
    const format = new Intl.NumberFormat(tag, { ...given, currencyDisplay: "name" });
    found.named[currency] = [1, 2].map((value) => format.formatToParts(value).at(-1).value);
  }
  return found;
}

const DIGITS = /^(integer|group|decimal|fraction|compact|infinity|nan)$/;

/** What stands before and after the digits of a number without a sign, with a plus, and with a minus: `[type, value]` each. */
function affixes(tag, options, value = 1) {
  const found = ["never", "always", "minus"].map((sign) => {
    const format = new Intl.NumberFormat(tag, { ...options, ...(sign !== "minus" && { signDisplay: sign }) });
    const parts = format.formatToParts(sign === "minus" ? -value : value).map(({ type, value: text }) => [type, text]);
    const first = parts.findIndex(([type]) => DIGITS.test(type));
    const last = parts.findLastIndex(([type]) => DIGITS.test(type));
    return [parts.slice(0, first), parts.slice(last + 1)];
  });
  return found;
}

/** The affixes in the singular and in the plural. */
const plurals = (tag, options) => ({ one: affixes(tag, { ...options, maximumFractionDigits: 0 }, 1), other: affixes(tag, { ...options, maximumFractionDigits: 0 }, 2) });

/** For a power of ten: the power that it is divided by, and what follows the digits, singular and plural. */
function compact(tag, power, compactDisplay) {
  const format = new Intl.NumberFormat(tag, { notation: "compact", compactDisplay });
  const after = (value) => {
    const parts = format.formatToParts(value).map(({ type, value: text }) => [type, text]);
    const digits = parts.filter(([type]) => type === "integer").map(([, text]) => text).join("");
    return [power - digits.length + 1, parts.slice(parts.findLastIndex(([type]) => type === "integer") + 1)];
  };
  return [...after(10 ** power), after(2 * 10 ** power)[1]];
}

// Words: English only, because other languages have rules that a table does not hold.

const UNITS = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
const LENGTHS = ["long", "short", "narrow"];

function wordsOf(tag) {
  const relative = {};
  const lists = {};
  for (const style of LENGTHS) {
    const always = new Intl.RelativeTimeFormat(tag, { style });
    const auto = new Intl.RelativeTimeFormat(tag, { style, numeric: "auto" });
    for (const unit of UNITS)
      relative[`${style} ${unit}`] = {
        forms: [1, 2, -1, -2].map((count) => always.format(count, unit).split(/\d+/)),
        near: Object.fromEntries(
          [-1, 0, 1].map((count) => [count, auto.format(count, unit)]).filter(([, text]) => !/\d/.test(text)),
        ),
      };
    for (const type of ["conjunction", "disjunction", "unit"]) {
      const format = new Intl.ListFormat(tag, { type, style });
      const texts = (list) => format.formatToParts(list).filter((part) => part.type === "literal").map(({ value }) => value);
      lists[`${type} ${style}`] = [texts(["a", "b"])[0], ...texts(["a", "b", "c", "d"])];
    }
  }
  return { relative, lists };
}

/** Names in English of regions, languages, scripts and currencies. */
function names() {
  const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
  const pairs = letters.flatMap((one) => letters.map((other) => one + other));
  const codes = {
    region: [...pairs, "001", "002", "003", "005", "009", "013", "015", "019", "021", "142", "150", "155", "419"],
    language: [...pairs, ...pairs.flatMap((pair) => letters.map((one) => pair + one))].map((code) => code.toLowerCase()),
    script: ["Latn", "Cyrl", "Arab", "Hans", "Hant", "Grek", "Hebr", "Deva", "Jpan", "Kore", "Thai", "Hira", "Kana"],
    currency: Intl.supportedValuesOf("currency"),
  };
  const known = {};
  for (const [type, all] of Object.entries(codes)) {
    const format = new Intl.DisplayNames("en", { type, fallback: "none" });
    known[type] = Object.fromEntries(all.map((code) => [code, format.of(code)]).filter(([, name]) => name));
  }
  return known;
}

// The order of letters.

/** ASCII, Latin, Greek and Cyrillic letters, and marks. */
const RANGES = [[0x20, 0x7e], [0xa0, 0x24f], [0x386, 0x3ce], [0x400, 0x45f], [0x2010, 0x2027], [0x20a0, 0x20bf]];

/**
 * The characters whose order is that of three numbers (the letter, its accent, its case), with these numbers. A character that consists of
 * several for the order, such as ß, has those of each.
 */
function order() {
  const exact = new Intl.Collator("en");
  const base = new Intl.Collator("en", { sensitivity: "base" });
  const accents = new Intl.Collator("en", { sensitivity: "accent" });
  const all = RANGES.flatMap(([from, to]) => [...Array(to - from + 1).keys()].map((index) => String.fromCodePoint(from + index)));
  const plain = all.filter((one) => one.normalize("NFD") === one && base.compare(one, "") !== 0 && /^[\x20-\x7e\p{L}\p{P}\p{S}]$/u.test(one));
  const sorted = plain.sort((one, other) => exact.compare(one, other));
  const weights = {};
  let [letter, accent, kind] = [0, 0, 0];
  let before;
  for (const one of sorted) {
    const isNew = before === undefined || base.compare(before, one) !== 0;
    const isAccent = !isNew && accents.compare(before, one) !== 0;
    [letter, accent, kind] = isNew ? [letter + 1, 0, 0] : isAccent ? [letter, accent + 1, 0] : [letter, accent, kind + (exact.compare(before, one) ? 1 : 0)];
    before = one;
    // A letter that is another one with something is told apart from it by rules of its own.
    if (!accent) weights[one] = [letter, kind];
  }
  const marks = [...Array(0x30).keys()].map((index) => String.fromCodePoint(0x300 + index)).filter((mark) => base.compare(mark, "") === 0);
  marks.sort((one, other) => exact.compare(`a${one}`, `a${other}`));
  // Expansions such as æ begin with the weight of another letter: they are left out.
  for (const one of Object.keys(weights)) if (/[^\x20-\x7e]/.test(one) && expands(one, base)) delete weights[one];
  return { weights, marks };
}

/** Whether a character has the place of several: then it is between a letter and the same letter before another. */
const expands = (one, base) =>
  [..."abcdefghijklmnopqrstuvwxyz.,-'\"!?"].some((letter) => base.compare(letter, one) < 0 && base.compare(one, `${letter}\u{10fffd}`) < 0);

// Normal forms of Unicode.

const MARK = /^\p{M}$/u;

/** Of each character what it consists of, which pairs are one character, and the marks by the place that they take among others. */
function normalOf(withCompatible) {
  const [canonical, compatible, pairs] = [{}, {}, {}];
  const classes = [];
  for (let code = 0xa0; code < 0x30000; code++) {
    // Syllables of Hangul are computed, and a half of a pair has no meaning.
    if (code >= 0xac00 && code < 0xe000) continue;
    const one = String.fromCodePoint(code);
    const parts = one.normalize("NFD");
    if (parts !== one) {
      canonical[one] = parts;
      const all = [...parts];
      const first = all.slice(0, -1).join("").normalize("NFC");
      if (all.length > 1 && (first + all.at(-1)).normalize("NFC") === one) pairs[first + all.at(-1)] = one;
    }
    const wide = withCompatible ? one.normalize("NFKD") : parts;
    if (wide !== parts) compatible[one] = wide;
    if (parts === one && MARK.test(one)) place(one, classes);
  }
  return { canonical, pairs, marks: classes.map((all) => all.join("")), ...(withCompatible && { compatible }) };
}

/** Puts a mark among those with the same place. Marks that are moved by none stay where they are. */
function place(one, classes) {
  const moves = (first, second) => (first + second).normalize("NFD") !== first + second;
  if (!moves(one, "\u0334") && !moves("\u0345", one)) return;
  const found = classes.find(([other]) => !moves(one, other) && !moves(other, one));
  if (found) return void found.push(one);
  const after = classes.findIndex(([other]) => moves(other, one));
  classes.splice(after < 0 ? classes.length : after, 0, [one]);
}
