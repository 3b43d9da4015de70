// What all parts of `Intl` share: the tables that the build made of Node.js's knowledge, and the choice of a locale.

/** Undefined parts of the tables were of no use to the server, as far as the build could see. */
export const tables = () => globalThis.__wharfTables ?? {};

/** An error for what a plugin does not know: it is better than an answer that is not that of Node.js. */
export const lacking = (what, more = "a plugin has only a part of `Intl`") =>
  Object.assign(new Error(`${what} does not work here: ${more}`), { code: "ERR_NOT_IN_A_PLUGIN" });

const TAG = /^(?:[a-z]{2,3}|[a-z]{5,8})(?:-[a-z]{4})?(?:-(?:[a-z]{2}|\d{3}))?(?:-(?:[a-z\d]{5,8}|\d[a-z\d]{3}))*(?:-[a-wyz\d](?:-[a-z\d]{2,8})+)*(?:-x(?:-[a-z\d]{1,8})+)?$/i;

/** Returns the tags, as `Intl.getCanonicalLocales` does. */
export function canonical(locales) {
  if (locales === undefined) return [];
  if (locales === null) throw new TypeError("Cannot convert undefined or null to object");
  const all = typeof locales === "string" || locales instanceof Locale ? [locales] : Array.from(locales);
  const tags = all.map((given) => {
    if (typeof given !== "string" && (typeof given !== "object" || given === null))
      throw new TypeError("Language ID should be string or object.");
    const tag = String(given);
    if (!TAG.test(tag)) throw new RangeError(`Incorrect locale information provided`);
    let extended = false;
    return tag
      .split("-")
      .map((part, index) => {
        if (index === 0) return part.toLowerCase();
        if (part.length === 1) extended = true;
        if (extended) return part.toLowerCase();
        if (part.length === 2) return part.toUpperCase();
        return part.length === 4 && /^[a-z]/i.test(part)
          ? part[0].toUpperCase() + part.slice(1).toLowerCase()
          : part.toLowerCase();
      })
      .join("-");
  });
  return [...new Set(tags)];
}

/** Returns the tag and its tables. `part`: what of the tables is needed. */
export function localeOf(locales, part, service) {
  const tag = canonical(locales)[0] ?? "en-US";
  const all = tables().locales;
  if (!all) throw lacking(service, "the build found nothing in the server that needs `Intl`, and left its tables out");
  const known = all[tag === "en" ? "en-US" : tag];
  if (!known)
    throw lacking(
      `${service} for the locale ${tag}`,
      `the plugin has ${Object.keys(all).join(", ")}; write the tag as a string in the server's source, so that the build includes it`,
    );
  if (!known[part]) throw lacking(`${service} for the locale ${tag}`, "its rules are not in a plugin; English is");
  return { tag, known: known[part] };
}

/** Reads one of the options that have certain values. */
export function choice(options, name, values, missing, service) {
  const value = options[name];
  if (value === undefined) return missing;
  const text = String(value);
  if (!values.includes(text))
    throw new RangeError(`Value ${text} out of range for Intl.${service} options property ${name}`);
  return text;
}

/** Reads a whole number between two bounds. */
export function whole(options, name, least, most, missing) {
  const value = options[name];
  if (value === undefined) return missing;
  const number = Number(value);
  if (!(number >= least && number <= most)) throw new RangeError(`${name} value is out of range.`);
  return Math.floor(number);
}

/** Refuses options that would change the answer and are not implemented. `same`: values that change nothing. */
export function refuse(options, service, same) {
  for (const [name, values] of Object.entries(same))
    if (options[name] !== undefined && !values.includes(options[name]))
      throw lacking(`the option ${name} of Intl.${service}`);
}

export const optionsOf = (options, service) => {
  if (options === undefined) return {};
  if (options === null) throw new TypeError("Cannot convert undefined or null to object");
  return typeof options === "object" || typeof options === "function" ? options : refused(service);
};
const refused = (service) => {
  throw new TypeError(`the options of Intl.${service} have to be an object`);
};

/** Makes a class one that may be called without `new`, as the older parts of `Intl` may. */
export const callable = (Class) =>
  new Proxy(Class, { apply: (target, _self, given) => new target(...given) });

/** A tag, of which only the parts are known. */
export class Locale {
  #tag;
  constructor(tag) {
    if (tag === undefined) throw new TypeError("First argument to Intl.Locale constructor can't be empty or missing");
    this.#tag = canonical([tag])[0];
    if (/-[a-wyz\d]-/.test(this.#tag)) throw lacking("Intl.Locale with an extension");
    if (arguments.length > 1 && arguments[1] !== undefined) throw lacking("Intl.Locale with options");
  }
  get baseName() {
    return this.#tag;
  }
  get language() {
    return this.#tag.split("-")[0];
  }
  get script() {
    return this.#tag.split("-").find((part, index) => index && part.length === 4);
  }
  get region() {
    return this.#tag.split("-").find((part, index) => index && /^([A-Z]{2}|\d{3})$/.test(part));
  }
  maximize() {
    throw lacking("Intl.Locale.maximize");
  }
  minimize() {
    throw lacking("Intl.Locale.minimize");
  }
  toString() {
    return this.#tag;
  }
  get [Symbol.toStringTag]() {
    return "Intl.Locale";
  }
}

/** Of a list of tags, those that the plugin has. */
export const supported = (locales) =>
  canonical(locales).filter((tag) => Object.hasOwn(tables().locales ?? {}, tag === "en" ? "en-US" : tag));
