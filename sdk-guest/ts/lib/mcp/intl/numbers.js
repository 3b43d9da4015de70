// `Intl.NumberFormat` and `Intl.PluralRules`.

import { choice, lacking, localeOf, optionsOf, refuse, supported, whole } from "./common.js";

/** The digits of a number: `digits` stands for 0.DIGITS times ten to the power of `point`. */
function decimalOf(value) {
  if (typeof value === "bigint") {
    const text = String(value < 0n ? -value : value);
    return { minus: value < 0n, digits: text.replace(/0+$/, ""), point: text === "0" ? 0 : text.length };
  }
  const number = typeof value === "string" && /^\s*[-+]?\d+(\.\d*)?\s*$/.test(value) ? value.trim() : Number(value);
  if (number !== number || number === Infinity || number === -Infinity) return { special: number, minus: number < 0 };
  const minus = typeof number === "string" ? number.startsWith("-") : number < 0 || Object.is(number, -0);
  const [, integer, fraction = "", power = "0"] = /^[-+]?(\d+)\.?(\d*)(?:e([-+]\d+))?$/.exec(String(number));
  const all = integer + fraction;
  const digits = all.replace(/^0+/, "");
  const point = integer.length + Number(power) - (all.length - digits.length);
  const short = digits.replace(/0+$/, "");
  return { minus, digits: short, point: short ? point : 0 };
}

/** Rounds half away from zero, to `places` digits after the decimal point. */
function rounded({ minus, digits, point }, places) {
  const keep = point + places;
  if (digits.length <= keep) return { minus, digits, point };
  if (keep < 0) return { minus, digits: "", point: 0 };
  const up = digits[keep] >= "5";
  let kept = digits.slice(0, keep);
  if (!up) return { minus, digits: kept.replace(/0+$/, ""), point: kept.replace(/0+$/, "") ? point : 0 };
  kept = String(BigInt(kept || "0") + 1n).padStart(keep, "0");
  return { minus, digits: kept.replace(/0+$/, ""), point: point + (kept.length - keep) };
}

const STYLES = ["decimal", "percent", "currency", "unit"];
const SIGNS = ["auto", "never", "always", "exceptZero", "negative"];
const GROUPINGS = ["min2", "auto", "always"];

export class NumberFormat {
  static supportedLocalesOf = supported;
  #options;
  #known;

  constructor(locales, given) {
    const options = optionsOf(given, "NumberFormat");
    const { tag, known } = localeOf(locales, "numbers", "Intl.NumberFormat");
    this.#known = known;
    const chosen = (name, values, missing) => choice(options, name, values, missing, "NumberFormat");
    const style = chosen("style", STYLES, "decimal");
    const resolved = { locale: tag, numberingSystem: "latn", style };
    const currency = code(options.currency, /^[a-z]{3}$/i, "currency code", style === "currency");
    const display = chosen("currencyDisplay", ["code", "symbol", "narrowSymbol", "name"], "symbol");
    const sign = chosen("currencySign", ["standard", "accounting"], "standard");
    const unit = code(options.unit, /^[a-z]+(-[a-z]+)*$/, "unit", style === "unit");
    const unitDisplay = chosen("unitDisplay", ["short", "narrow", "long"], "short");
    if (style === "currency")
      Object.assign(resolved, { currency: currency.toUpperCase(), currencyDisplay: display, currencySign: sign });
    if (style === "unit") Object.assign(resolved, { unit, unitDisplay });
    const notation = chosen("notation", ["standard", "scientific", "engineering", "compact"], "standard");
    const compactDisplay = chosen("compactDisplay", ["short", "long"], "short");
    if (/scientific|engineering/.test(notation)) throw lacking(`the notation ${notation} of Intl.NumberFormat`);
    refuse(options, "NumberFormat", {
      roundingMode: ["halfExpand"],
      roundingIncrement: [1],
      roundingPriority: ["auto"],
      trailingZeroDisplay: ["auto"],
      numberingSystem: ["latn"],
    });
    this.#digits(resolved, options, style, notation);
    const grouping = options.useGrouping;
    const plain = notation === "compact" ? "min2" : "auto";
    resolved.useGrouping =
      grouping === undefined || grouping === "true" || grouping === "false"
        ? plain
        : grouping === true
          ? "always"
          : !grouping
            ? false
            : chosen("useGrouping", GROUPINGS, plain);
    Object.assign(resolved, { notation, ...(notation === "compact" && { compactDisplay }) });
    resolved.signDisplay = chosen("signDisplay", SIGNS, "auto");
    // As in Node.js.
    if (resolved.signDisplay === "never" && resolved.currencySign) resolved.currencySign = "standard";
    const compact = notation === "compact" && resolved.roundingPriority;
    delete resolved.roundingPriority;
    this.#options = Object.assign(resolved, {
      roundingMode: "halfExpand",
      roundingIncrement: 1,
      trailingZeroDisplay: "auto",
      roundingPriority: compact || "auto",
    });
    this.#affixes(1);
    if (notation === "compact" && !known.short)
      throw lacking(`the notation compact of Intl.NumberFormat for the locale ${tag}`);
  }

  #digits(resolved, options, style, notation) {
    const own = this.#known.digits?.[resolved.currency] ?? 2;
    const [least, most] = style === "currency" ? [own, own] : [0, style === "percent" ? 0 : 3];
    resolved.minimumIntegerDigits = whole(options, "minimumIntegerDigits", 1, 21, 1);
    const significant = options.minimumSignificantDigits !== undefined || options.maximumSignificantDigits !== undefined;
    const fraction = options.minimumFractionDigits !== undefined || options.maximumFractionDigits !== undefined;
    if (significant) {
      resolved.minimumSignificantDigits = whole(options, "minimumSignificantDigits", 1, 21, 1);
      const { minimumSignificantDigits } = resolved;
      resolved.maximumSignificantDigits = whole(options, "maximumSignificantDigits", minimumSignificantDigits, 21, 21);
    } else if (fraction || notation === "standard") {
      let low = whole(options, "minimumFractionDigits", 0, 20, undefined);
      let high = whole(options, "maximumFractionDigits", 0, 20, undefined);
      if (low === undefined) low = Math.min(least, high ?? least);
      else if (high === undefined) high = Math.max(most, low);
      else if (low > high) throw new RangeError("maximumFractionDigits value is out of range.");
      resolved.minimumFractionDigits = low;
      resolved.maximumFractionDigits = high ?? Math.max(most, low);
    } else
      Object.assign(resolved, {
        minimumSignificantDigits: 1,
        maximumSignificantDigits: 2,
        minimumFractionDigits: 0,
        maximumFractionDigits: 0,
        roundingPriority: "morePrecision",
      });
  }

  /** What stands around the digits, for each sign. */
  #affixes(count) {
    const { style, currency, currencyDisplay, currencySign, unit, unitDisplay, locale } = this.#options;
    const { affixes, symbols, forms, named } = this.#known;
    if (style === "decimal" || style === "percent") return affixes[style];
    if (style === "unit") {
      const found = affixes[`${unit} ${unitDisplay}`];
      if (!found) throw lacking(`the unit ${unit} in the locale ${locale}`, "a plugin has the simple units, in English");
      return found[count === 1 ? "one" : "other"];
    }
    if (currencyDisplay === "name") {
      const name = named?.[currency]?.[count === 1 ? 0 : 1];
      if (!name) throw lacking(`the name of the currency ${currency} in the locale ${locale}`);
      return affixes.decimal.map(([before, after]) => [before, [...after, ["literal", " "], ["currency", name]]]);
    }
    const [symbol, shape] = symbols?.[`${currency} ${currencyDisplay}`] ?? [];
    if (!symbol) throw lacking(`the currency ${currency}`, "the build found no currencies in the server, or Node.js has no such one");
    const put = (parts) => parts.map(([type, value]) => [type, type === "currency" ? symbol : value]);
    return forms[shape][currencySign === "accounting" ? 1 : 0].map((sides) => sides.map(put));
  }

  #round(decimal) {
    const { minimumSignificantDigits, maximumSignificantDigits, maximumFractionDigits, roundingPriority } = this.#options;
    if (maximumSignificantDigits === undefined) return rounded(decimal, maximumFractionDigits);
    const places = maximumSignificantDigits - decimal.point;
    return rounded(decimal, roundingPriority === "morePrecision" ? Math.max(places, 0) : places);
  }

  /** The integer and the fraction as digits. */
  #written({ digits, point }) {
    const o = this.#options;
    const integer = point > 0 ? digits.slice(0, point).padEnd(point, "0") : "0";
    let fraction = point > 0 ? digits.slice(point) : digits && "0".repeat(-point) + digits;
    if (o.minimumSignificantDigits !== undefined && o.roundingPriority === "auto") {
      const after = o.minimumSignificantDigits - (digits ? point : 1);
      fraction = fraction.padEnd(Math.max(after, 0), "0");
    } else fraction = fraction.padEnd(o.minimumFractionDigits ?? 0, "0");
    return [integer.padStart(o.minimumIntegerDigits, "0"), fraction];
  }

  formatToParts(value) {
    if (value === undefined) value = NaN;
    if (typeof value === "symbol") throw new TypeError("Cannot convert a Symbol value to a number");
    const o = this.#options;
    const decimal = decimalOf(typeof value === "object" && value !== null ? toPrimitive(value) : value);
    const parts = [];
    let tail = [];
    let [isZero, count] = [false, 0];
    if (decimal.special !== undefined) {
      parts.push(Number.isNaN(decimal.special) ? ["nan", this.#known.nan] : ["infinity", "∞"]);
      if (Number.isNaN(decimal.special)) decimal.minus = false;
      isZero = Number.isNaN(decimal.special);
    } else {
      if (o.style === "percent" && decimal.digits) decimal.point += 2;
      let made = this.#round(decimal);
      if (o.notation === "compact") {
        const power = (one) => Math.min(Math.max(one.digits ? one.point - 1 : 0, 0), 14);
        // Amounts of money have the short words only.
        const display = o.style === "currency" ? "short" : o.compactDisplay;
        if (display !== o.compactDisplay && o.currencyDisplay === "name") throw lacking("a currency's name after a compact number");
        const scaled = (at) => {
          const [by, one, other] = this.#known[display][at];
          const moved = this.#round({ ...decimal, point: decimal.digits ? decimal.point - by : 0 });
          tail = moved.digits === "1" && moved.point === 1 ? one : other;
          return [moved, by];
        };
        let by;
        [made, by] = scaled(power(decimal));
        // 999,999 becomes 1,000 K, which is 1 M.
        if (made.digits && power({ ...made, point: made.point + by }) > power(decimal))
          [made] = scaled(power({ ...made, point: made.point + by }));
      }
      const [integer, fraction] = this.#written(made);
      isZero = !made.digits;
      count = tail.length || fraction || integer !== "1" ? 2 : 1;
      parts.push(...this.#grouped(integer));
      if (fraction) parts.push(["decimal", this.#known.decimal], ["fraction", fraction]);
    }
    const [none, plus, minus] = this.#affixes(count);
    const { signDisplay } = o;
    const negative = decimal.minus && signDisplay !== "never" && !(isZero && /exceptZero|negative/.test(signDisplay));
    const positive = !decimal.minus && (signDisplay === "always" || (signDisplay === "exceptZero" && !isZero));
    const [before, after] = negative ? minus : positive ? plus : none;
    const spaced = [...before, ...after].some(([type]) => type === "literal");
    if (decimal.special !== undefined && o.style === "currency" && spaced) throw lacking(`${value} as an amount of money`);
    const named = (type) => (type === "percentSign" && o.notation === "compact" ? "unit" : type);
    return [...before, ...parts, ...tail, ...after].map(([type, text]) => ({ type: named(type), value: text }));
  }

  #grouped(integer) {
    const { useGrouping } = this.#options;
    const { group, sizes, least } = this.#known;
    const needed = { false: Infinity, min2: Math.max(2, least), auto: least, always: 1 }[useGrouping];
    if (integer.length < sizes[0] + needed) return [["integer", integer]];
    const found = [];
    let [end, size] = [integer.length, sizes[0]];
    while (end > 0) {
      found.unshift(["group", group], ["integer", integer.slice(Math.max(end - size, 0), end)]);
      end -= size;
      [, size] = sizes;
    }
    return found.slice(1);
  }

  get format() {
    return (value) =>
      this.formatToParts(value)
        .map((part) => part.value)
        .join("");
  }
  formatRange() {
    throw lacking("Intl.NumberFormat.formatRange");
  }
  formatRangeToParts() {
    throw lacking("Intl.NumberFormat.formatRangeToParts");
  }
  resolvedOptions() {
    return { ...this.#options };
  }
  get [Symbol.toStringTag]() {
    return "Intl.NumberFormat";
  }
}

const toPrimitive = (value) => {
  const given = value[Symbol.toPrimitive]?.("number") ?? value.valueOf();
  return typeof given === "object" ? String(given) : given;
};

function code(value, form, what, needed) {
  if (value === undefined) {
    if (!needed) return undefined;
    throw new TypeError(
      what === "unit" ? "Required unit option is missing" : "Currency code is required with currency style.",
    );
  }
  if (!form.test(String(value)))
    throw new RangeError(what === "unit" ? `Invalid unit argument for Intl.NumberFormat() '${value}'` : `Invalid currency code : ${value}`);
  return String(value);
}

/** English has two forms of counting, and four of order. */
export class PluralRules {
  static supportedLocalesOf = (locales) => supported(locales).filter((tag) => /^en(-|$)/.test(tag));
  #type;
  #format;

  constructor(locales, given) {
    const options = optionsOf(given, "PluralRules");
    const { tag } = localeOf(locales, "words", "Intl.PluralRules");
    this.#type = choice(options, "type", ["cardinal", "ordinal"], "cardinal", "PluralRules");
    const { style: _s, notation: _n, useGrouping: _u, ...digits } = options;
    this.#format = new NumberFormat(tag, digits);
  }
  select(value) {
    const text = this.#format.formatToParts(Number(value)).filter(({ type }) => !/group|minusSign/.test(type));
    const written = text.map((part) => part.value).join("");
    if (this.#type === "cardinal") return written === "1" ? "one" : "other";
    if (!/^\d+$/.test(written) || /1[123]$/.test(written)) return "other";
    return { 1: "one", 2: "two", 3: "few" }[written.at(-1)] ?? "other";
  }
  selectRange() {
    throw lacking("Intl.PluralRules.selectRange");
  }
  resolvedOptions() {
    const { locale, numberingSystem: _n, style: _s, useGrouping: _u, notation: _o, signDisplay: _d, ...digits } =
      this.#format.resolvedOptions();
    const pluralCategories = this.#type === "cardinal" ? ["one", "other"] : ["few", "one", "two", "other"];
    const { roundingMode, roundingIncrement, trailingZeroDisplay, roundingPriority, ...rest } = digits;
    const rounding = { roundingMode, roundingIncrement, trailingZeroDisplay, roundingPriority };
    return { locale, type: this.#type, ...rest, pluralCategories, ...rounding };
  }
  get [Symbol.toStringTag]() {
    return "Intl.PluralRules";
  }
}
