// `Intl` for engines without one, and the methods that depend on it. What it answers is what Node.js answers; anything else throws a sentence.

import { callable, canonical, lacking, Locale, tables } from "./intl/common.js";
import { DateTimeFormat } from "./intl/dates.js";
import { normalize } from "./intl/normal.js";
import { NumberFormat, PluralRules } from "./intl/numbers.js";
import { Collator, DisplayNames, ListFormat, RelativeTimeFormat, Segmenter } from "./intl/words.js";

function supportedValuesOf(key) {
  const { zones, locales } = tables();
  if (key === "timeZone" && zones) return Object.keys(zones.changes);
  const symbols = key === "currency" && locales?.["en-US"].numbers.symbols;
  if (symbols) return [...new Set(Object.keys(symbols).map((name) => name.split(" ")[0]))];
  if (!["calendar", "collation", "currency", "numberingSystem", "timeZone", "unit"].includes(key))
    throw new RangeError(`Invalid key : ${key}`);
  throw lacking(`Intl.supportedValuesOf("${key}")`, "the build found no use of it in the server");
}

/** Each method has the name, and is not listed among the members, as that of the engine. */
function put(target, methods) {
  for (const [name, value] of Object.entries(methods))
    Object.defineProperty(target, name, { value, configurable: true, writable: true });
}

const timeOf = (date) => Date.prototype.getTime.call(date);
const dateMethod = (needs, defaults) =>
  function toLocaleString(locales, options) {
    const time = timeOf(this);
    return Number.isNaN(time) ? "Invalid Date" : new DateTimeFormat(locales, options, needs, defaults).format(time);
  };

if (!String.prototype.normalize) put(String.prototype, { normalize });

if (!globalThis.Intl) {
  const made = {};
  put(made, {
    DateTimeFormat: callable(DateTimeFormat),
    NumberFormat: callable(NumberFormat),
    Collator: callable(Collator),
    PluralRules,
    ListFormat,
    RelativeTimeFormat,
    Segmenter,
    DisplayNames,
    Locale,
    getCanonicalLocales: canonical,
    supportedValuesOf,
  });
  Object.defineProperty(made, Symbol.toStringTag, { value: "Intl", configurable: true });
  put(globalThis, { Intl: made });
  put(Date.prototype, {
    toLocaleString: dateMethod("any", "all"),
    toLocaleDateString: dateMethod("date", "date"),
    toLocaleTimeString: dateMethod("time", "time"),
  });
  put(Number.prototype, {
    toLocaleString(locales, options) {
      return new NumberFormat(locales, options).format(Number.prototype.valueOf.call(this));
    },
  });
  put(BigInt.prototype, {
    toLocaleString(locales, options) {
      return new NumberFormat(locales, options).format(BigInt.prototype.valueOf.call(this));
    },
  });
  put(Array.prototype, {
    toLocaleString(locales, options) {
      return Array.from(this, (one) => (one === undefined || one === null ? "" : one.toLocaleString(locales, options))).join(",");
    },
  });
  const upper = String.prototype.toUpperCase;
  const lower = String.prototype.toLowerCase;
  const cased = (method) =>
    function (locales) {
      const [tag = "en"] = canonical(locales);
      if (/^(tr|az|lt|el|hy)(-|$)/.test(tag)) throw lacking(`the case of letters in the locale ${tag}`);
      return method.call(this);
    };
  put(String.prototype, {
    localeCompare(other, locales, options) {
      return new Collator(locales, options).compare(String(this), String(other));
    },
    toLocaleUpperCase: cased(upper),
    toLocaleLowerCase: cased(lower),
  });
}
