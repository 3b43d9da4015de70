// A small `Intl` for engines without one: English, and UTC.

const date = (value) => (value === undefined ? new Date() : new Date(value));

class Format {
  static supportedLocalesOf = () => ["en-US"];
  #options;
  constructor(_locales, options = {}) {
    this.#options = options;
  }
  resolvedOptions() {
    return { locale: "en-US", timeZone: "UTC", calendar: "gregory", numberingSystem: "latn", ...this.#options };
  }
}

class DateTimeFormat extends Format {
  format(value) {
    return date(value)
      .toISOString()
      .replace("T", ", ")
      .replace(/\.\d+Z$/, "");
  }
  formatToParts(value) {
    const [year, month, day, hour, minute, second] = date(value)
      .toISOString()
      .split(/[-T:.Z]/);
    return Object.entries({ year, month, day, hour, minute, second }).map(([type, value]) => ({ type, value }));
  }
}

class NumberFormat extends Format {
  format(value) {
    const { maximumFractionDigits: most = 3, minimumFractionDigits: least = 0 } = this.resolvedOptions();
    const [whole, rest = ""] = Number(value).toFixed(Math.max(most, least)).split(".");
    const digits = rest.replace(/0+$/, "").padEnd(least, "0");
    return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (digits && `.${digits}`);
  }
}

class Collator extends Format {
  compare = (one, other) => String(one).localeCompare(String(other));
}

class PluralRules extends Format {
  select = (count) => (count === 1 ? "one" : "other");
}

class ListFormat extends Format {
  format(list) {
    const all = [...list];
    return all.length < 3 ? all.join(" and ") : `${all.slice(0, -1).join(", ")}, and ${all.at(-1)}`;
  }
}

class RelativeTimeFormat extends Format {
  format(value, unit) {
    const words = `${Math.abs(value)} ${unit}${Math.abs(value) === 1 ? "" : "s"}`;
    return value < 0 ? `${words} ago` : `in ${words}`;
  }
}

class Segmenter extends Format {
  segment(text) {
    let index = 0;
    return Array.from(text, (segment) => ({ segment, index: (index += segment.length) - segment.length, input: text }));
  }
}

globalThis.Intl ??= { DateTimeFormat, NumberFormat, Collator, PluralRules, ListFormat, RelativeTimeFormat, Segmenter };
