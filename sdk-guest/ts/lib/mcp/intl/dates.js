// `Intl.DateTimeFormat`, for the Gregorian calendar and the zones that the build found.

import { choice, lacking, localeOf, optionsOf, refuse, supported, tables, whole } from "./common.js";

const FIRST = Date.UTC(1970, 0, 1);
/** From here on, rules go on as in the 28 years before, after which days of the week are the same again. */
const LAST = Date.UTC(2038, 0, 1);
const CYCLE_YEARS = 28;
const MOST = 8.64e15;

/** Returns the zone's name as Node.js gives it. */
function zoneOf(given) {
  if (given === undefined) return "UTC";
  const name = String(given);
  const low = name.toLowerCase();
  if (["utc", "gmt", "etc/utc", "etc/gmt"].includes(low)) return "UTC";
  const { zones } = tables();
  if (!zones) throw lacking(`the time zone ${name}`, "the build found no `timeZone` in the server, and left zones out");
  zones.lower ??= new Map(
    [...Object.keys(zones.changes).map((one) => [one, one]), ...Object.entries(zones.aliases)].map(([key, zone]) => [
      key.toLowerCase(),
      zone,
    ]),
  );
  const found = zones.lower.get(low);
  if (!found) throw new RangeError(`Invalid time zone specified: ${name}`);
  return found;
}

/** The same moment in a year that the tables have. */
function known(time) {
  if (time < LAST) return time;
  const date = new Date(time);
  const back = Math.ceil((date.getUTCFullYear() - 2037) / CYCLE_YEARS) * CYCLE_YEARS;
  return date.setUTCFullYear(date.getUTCFullYear() - back);
}

/** Zones that are not an hour ahead by the sun's year go on in their own way after the tables' end. */
const OWN_RULES = /^Africa\/(Casablanca|El_Aaiun)$/;

/** Minutes that the zone is ahead of UTC. */
function offsetOf(zone, time) {
  const { zones } = tables();
  if (zone === "UTC") return 0;
  const changes = zones.lists[zones.changes[zone]];
  if (!changes) {
    // Etc/GMT+5 is behind by five hours.
    const hours = /^Etc\/GMT([-+]\d+)$/.exec(zone);
    if (hours) return -60 * Number(hours[1]);
    throw lacking(`the time zone ${zone}`);
  }
  if (time < FIRST) throw lacking(`a time before 1970 in the zone ${zone}`);
  if (time >= LAST && (OWN_RULES.test(zone) || time >= Date.UTC(2100, 0, 1)))
    if (changes.length > 1) throw lacking(`a time as late as this in the zone ${zone}`);
  const wanted = known(time);
  let [at, current] = [FIRST, changes[0]];
  for (let index = 1; index < changes.length; index += 2) {
    at += changes[index] * 60_000;
    if (at > wanted) break;
    current = changes[index + 1];
  }
  return current;
}

const two = (value) => String(value).padStart(2, "0");

function zoneNameOf(zone, width, time, { tag, dates }) {
  if (zone === "UTC") {
    if (width === "long" || width === "short") return dates.utc[width === "long" ? 0 : 1];
    if (/^en(-|$)/.test(tag) && /Offset$/.test(width)) return "GMT";
  }
  if (!/^en-US$|^en$/.test(tag)) throw lacking(`the name of the time zone ${zone} in the locale ${tag}`);
  const minutes = offsetOf(zone, time);
  if (/Offset$/.test(width)) {
    if (!minutes) return "GMT";
    const [sign, all] = [minutes < 0 ? "-" : "+", Math.abs(minutes)];
    const [hours, rest] = [Math.floor(all / 60), all % 60];
    if (!Number.isInteger(rest)) throw lacking(`the offset of the time zone ${zone} with seconds`);
    if (width === "longOffset") return `GMT${sign}${two(hours)}:${two(rest)}`;
    return `GMT${sign}${hours}${rest ? `:${two(rest)}` : ""}`;
  }
  const [since, names] = tables().zones.names[zone] ?? [];
  const name = names?.[minutes]?.[width === "long" ? 0 : 1];
  const year = new Date(time).getUTCFullYear();
  if (!name || year < since || year > 2037) throw lacking(`the name of the time zone ${zone} in the year ${year}`);
  return name;
}

const FIELDS = ["weekday", "year", "month", "day", "dayPeriod", "hour", "minute", "second", "fractionalSecondDigits"];
const NUMERIC = ["2-digit", "numeric"];
const WORDS = ["narrow", "short", "long"];
const VALUES = {
  weekday: WORDS,
  era: WORDS,
  year: NUMERIC,
  month: [...NUMERIC, ...WORDS],
  day: NUMERIC,
  dayPeriod: WORDS,
  hour: NUMERIC,
  minute: NUMERIC,
  second: NUMERIC,
  timeZoneName: ["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"],
};
const LETTER = { numeric: "n", "2-digit": "2", long: "l", short: "s", narrow: "r" };

/** Options with what the method's name says if they ask for nothing. `needs`: "date", "time" or "any". */
function completed(options, needs, defaults) {
  const all = { ...options };
  const asks = (names) => names.some((name) => options[name] !== undefined);
  const date = needs !== "time" && asks(["weekday", "year", "month", "day"]);
  const time = needs !== "date" && asks(["dayPeriod", "hour", "minute", "second", "fractionalSecondDigits"]);
  const styled = options.dateStyle !== undefined || options.timeStyle !== undefined;
  if (needs === "date" && options.timeStyle !== undefined) throw new TypeError("Invalid option : timeStyle");
  if (needs === "time" && options.dateStyle !== undefined) throw new TypeError("Invalid option : dateStyle");
  if (date || time || styled) return all;
  if (defaults !== "time") Object.assign(all, { year: "numeric", month: "numeric", day: "numeric" });
  if (defaults !== "date") Object.assign(all, { hour: "numeric", minute: "numeric", second: "numeric" });
  return all;
}

/** One pattern of two, in which texts next to each other are one. */
function joined(first, between, last) {
  const all = [];
  for (const part of [...first, between, ...last]) {
    if (typeof part === "string" && typeof all.at(-1) === "string") all[all.length - 1] += part;
    else if (part !== "") all.push(part);
  }
  return all;
}

export class DateTimeFormat {
  static supportedLocalesOf = supported;
  #tag;
  #dates;
  #zone;
  #isDefault;
  #options = {};
  #pattern;

  /** `needs` and `defaults` are given by the methods of `Date`. */
  constructor(locales, given, needs = "any", defaults = "date") {
    const options = completed(optionsOf(given, "DateTimeFormat"), needs, defaults);
    const { tag, known } = localeOf(locales, "dates", "Intl.DateTimeFormat");
    [this.#tag, this.#dates] = [tag, known];
    const chosen = (name, values) => choice(options, name, values, undefined, "DateTimeFormat");
    refuse(options, "DateTimeFormat", { calendar: ["gregory"], numberingSystem: ["latn"] });
    const { hour12 } = options;
    const hourCycle = chosen("hourCycle", ["h11", "h12", "h23", "h24"]);
    this.#zone = zoneOf(options.timeZone);
    this.#isDefault = options.timeZone === undefined;
    for (const [name, values] of Object.entries(VALUES)) this.#options[name] = chosen(name, values);
    this.#options.fractionalSecondDigits = whole(options, "fractionalSecondDigits", 1, 3, undefined);
    const styles = ["full", "long", "medium", "short"];
    const [dateStyle, timeStyle] = [chosen("dateStyle", styles), chosen("timeStyle", styles)];
    const cycle = hour12 === undefined ? (hourCycle ?? "") : hour12 ? "12" : "24";
    for (const name of ["era", "dayPeriod"])
      if (this.#options[name]) throw lacking(`the option ${name} of Intl.DateTimeFormat`);
    if (/Generic$/.test(this.#options.timeZoneName)) throw lacking("a generic name of a time zone");
    if (dateStyle || timeStyle) {
      const mixed = [...FIELDS, "timeZoneName"].find((name) => this.#options[name] !== undefined);
      if (mixed)
        throw new TypeError(`Can't set option ${mixed} when ${dateStyle ? "dateStyle" : "timeStyle"} is used`);
      Object.assign(this.#options, { dateStyle, timeStyle });
      this.#pattern = known.style[[dateStyle ?? "", timeStyle ?? "", timeStyle ? cycle : ""].join()];
      // The zone has its short name except in the style "full".
      this.#options.timeZoneName = undefined;
    } else this.#pattern = this.#composed(cycle);
    if (!this.#pattern) throw lacking("this combination of options of Intl.DateTimeFormat");
  }

  #composed(cycle) {
    const o = this.#options;
    const { date, time, join, zoned } = this.#dates;
    const letters = (names) => names.map((name) => LETTER[o[name]] ?? "-").join("");
    const day = letters(["weekday", "year", "month", "day"]);
    const clock = letters(["hour", "minute", "second"]);
    const fraction = o.fractionalSecondDigits === undefined ? "" : "f";
    const zone = o.timeZoneName ? "z" : "";
    if (fraction && clock[2] === "-") return undefined;
    if (clock === "---") {
      if (!zone) return date[day];
      return date[day] && zoned[day] !== undefined ? joined(date[day], zoned[day], [["timeZoneName", 0]]) : undefined;
    }
    const written = time[clock + fraction + zone + (clock[0] === "-" ? "" : cycle)];
    if (day === "----" || !written) return written;
    // The build has looked at an hour, at hours and minutes, and at all three.
    const shown = clock.replaceAll("-", "").length;
    if (clock.slice(0, shown).includes("-")) return undefined;
    const between = typeof join[day] === "string" ? join[day] : join[day]?.[shown - 1 + (zone ? 3 : 0)];
    return date[day] && typeof between === "string" ? joined(date[day], between, written) : undefined;
  }

  formatToParts(value) {
    const time = value === undefined ? Date.now() : Number(typeof value === "object" && value !== null ? value.valueOf() : value);
    if (!(Math.abs(time) <= MOST)) throw new RangeError("Invalid time value");
    const whole = Math.trunc(time);
    const here = new Date(whole + offsetOf(this.#zone, whole) * 60_000);
    const year = here.getUTCFullYear();
    if (year < 1583) throw lacking("a date before the Gregorian calendar");
    const numbers = {
      year,
      month: here.getUTCMonth() + 1,
      day: here.getUTCDate(),
      minute: here.getUTCMinutes(),
      second: here.getUTCSeconds(),
    };
    return this.#pattern.map((part) => {
      if (typeof part === "string") return { type: "literal", value: part };
      const [type, how, cycle] = part;
      return { type, value: this.#field(type, how, cycle, { here, whole, numbers }) };
    });
  }

  #field(type, how, cycle, { here, whole, numbers }) {
    const hour = here.getUTCHours();
    if (how < 0) {
      const names = this.#dates.pool[-how - 1];
      return names[{ weekday: here.getUTCDay(), month: numbers.month - 1, dayPeriod: hour < 12 ? 0 : 1 }[type]];
    }
    if (type === "timeZoneName") return this.#zoneName(whole);
    if (type === "fractionalSecond")
      return String(here.getUTCMilliseconds()).padStart(3, "0").slice(0, this.#options.fractionalSecondDigits);
    if (type === "hour") {
      const shown = { h11: hour % 12, h12: hour % 12 || 12, h23: hour, h24: hour || 24 }[cycle];
      return how === 2 ? two(shown) : String(shown);
    }
    const value = String(numbers[type]);
    return how === 2 ? two(value.slice(-2)) : value;
  }

  #zoneName(time) {
    const { timeZoneName, timeStyle } = this.#options;
    if (/Offset$/.test(timeZoneName) && this.#isDefault) throw lacking("the offset of the zone that Node.js runs in");
    const width = timeZoneName ?? (timeStyle === "full" ? "long" : "short");
    return zoneNameOf(this.#zone, width, time, { tag: this.#tag, dates: this.#dates });
  }

  get format() {
    return (value) => {
      const text = this.formatToParts(value)
        .map((part) => part.value)
        .join("");
      // Node.js writes a plain space where the parts have a narrow one.
      return this.#dates.narrow ? text : text.replaceAll("\u202f", " ");
    };
  }
  formatRange() {
    throw lacking("Intl.DateTimeFormat.formatRange");
  }
  formatRangeToParts() {
    throw lacking("Intl.DateTimeFormat.formatRangeToParts");
  }
  resolvedOptions() {
    const made = { locale: this.#tag, calendar: "gregory", numberingSystem: "latn", timeZone: this.#zone };
    const cycle = this.#pattern.find((part) => part[0] === "hour")?.[2];
    if (cycle) Object.assign(made, { hourCycle: cycle, hour12: cycle === "h11" || cycle === "h12" });
    const { dateStyle, timeStyle, ...fields } = this.#options;
    if (dateStyle || timeStyle) return { ...made, ...(dateStyle && { dateStyle }), ...(timeStyle && { timeStyle }) };
    for (const [name, given] of Object.entries(fields)) {
      const how = this.#pattern.find((part) => part[0] === name)?.[1];
      const shown = how > 0 ? NUMERIC[2 - how] : given;
      if (shown !== undefined) made[name] = shown;
    }
    return made;
  }
  get [Symbol.toStringTag]() {
    return "Intl.DateTimeFormat";
  }
}
