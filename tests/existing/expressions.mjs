// Expressions whose values are compared between Node.js and a plugin: those that are likely to differ, and combinations of options, by a
// generator that always makes the same.

let seed = 1;
const below = (count) => {
  seed = (seed * 16807) % 2147483647;
  return seed % count;
};
const pick = (list) => list[below(list.length)];
/** Some of the options; each with the chance of so many in ten. */
const some = (given) =>
  Object.fromEntries(
    Object.entries(given)
      .filter(([, [chance]]) => below(10) < chance)
      .map(([name, [, values]]) => [name, pick(values)]),
  );
const times = (count, make) => Array.from({ length: count }, make);
const text = JSON.stringify;

const LOCALES = ["en-US", "en-US", "en", "en-GB", "de-DE", "fr-FR", "ja-JP"];
const NUMERIC = ["numeric", "2-digit"];
const WIDTHS = ["long", "short", "narrow"];
const STYLES = ["full", "long", "medium", "short"];
const ZONES = (
  "UTC America/New_York Europe/Berlin Asia/Kolkata Australia/Lord_Howe Africa/Casablanca Asia/Kathmandu " +
  "America/Sao_Paulo Asia/Tokyo US/Pacific Pacific/Apia Etc/GMT+5 europe/paris Mars/Phobos"
).split(" ");

function date() {
  const fields = {
    weekday: [3, WIDTHS],
    year: [5, NUMERIC],
    month: [6, [...NUMERIC, ...WIDTHS]],
    day: [6, NUMERIC],
    hour: [5, NUMERIC],
    minute: [6, NUMERIC],
    second: [3, NUMERIC],
    timeZoneName: [2, ["short", "long", "shortOffset", "longOffset"]],
  };
  const options = {
    ...some(below(5) ? fields : { dateStyle: [7, STYLES], timeStyle: [7, STYLES] }),
    ...some({ hour12: [2, [true, false]], hourCycle: [1, ["h12", "h23"]], timeZone: [7, ZONES] }),
  };
  // Nobody asks for hours and seconds alone.
  if (!options.hour) delete options.minute;
  if (!options.minute) delete options.second;
  const time = below(2) ? below(2147483647) * 1000 + below(1000) : 946684800000 + below(1e9) * 1000;
  const [tag, how] = [text(pick(LOCALES)), text(options)];
  const method = pick(["format", "formatToParts", "toLocaleString", "toLocaleDateString", "toLocaleTimeString", ""]);
  if (method.startsWith("to")) return `new Date(${time}).${method}(${tag}, ${how})`;
  return `new Intl.DateTimeFormat(${tag}, ${how}).${method ? `${method}(${time})` : "resolvedOptions()"}`;
}

const NUMBERS = (
  "0 -0 1 -1 0.5 1.005 1234.5 -1234.567 12345678 999999 999.5 0.256 1e21 1e-7 123456789.987 NaN Infinity -Infinity 0.045 15 1500 " +
  "99.95 1000000 -0.001 12345.6789 12345678901234567890n"
).split(" ");

function number() {
  const styles = {
    decimal: {},
    percent: { style: "percent" },
    currency: {
      style: "currency",
      currency: pick(["USD", "EUR", "JPY", "CHF", "GBP", "INR", "KWD", "usd"]),
      ...some({
        currencyDisplay: [4, ["symbol", "code", "name", "narrowSymbol"]],
        currencySign: [2, ["accounting"]],
      }),
    },
    unit: {
      style: "unit",
      unit: pick(["kilometer", "celsius", "byte", "megabyte", "hour", "percent", "mile"]),
      ...some({ unitDisplay: [6, WIDTHS] }),
    },
  };
  const options = {
    ...styles[pick(["decimal", "decimal", "percent", "currency", "currency", "unit"])],
    ...some({
      notation: [3, ["compact"]],
      compactDisplay: [3, ["short", "long"]],
      minimumFractionDigits: [2, [0, 1, 2]],
      maximumFractionDigits: [3, [0, 1, 2, 5]],
      maximumSignificantDigits: [1, [1, 3, 5]],
      minimumSignificantDigits: [1, [1, 3]],
      minimumIntegerDigits: [1, [1, 2, 3]],
      useGrouping: [2, [true, false, "always", "min2", "auto"]],
      signDisplay: [2, ["auto", "always", "never", "exceptZero", "negative"]],
    }),
  };
  const [tag, how, value] = [text(pick(LOCALES)), text(options), pick(NUMBERS)];
  const method = pick(["format", "format", "formatToParts", "toLocaleString", ""]);
  if (method === "toLocaleString") return `(${value}).toLocaleString(${tag}, ${how})`;
  return `new Intl.NumberFormat(${tag}, ${how}).${method ? `${method}(${value})` : "resolvedOptions()"}`;
}

const TEXTS = (
  "a A b B ä Ä a10 a2 a02 z résumé resume Resume co-op coop 1 10 2 _x x_ ñ n o'neil oneil Zebra апельсин яблоко é e file1.txt " +
  "file10.txt file2.txt a-b ab A1 ß ss 日本 😀"
).split(" ");

function order() {
  const options = { ...some({ numeric: [3, [true]], sensitivity: [5, ["base", "accent", "case", "variant"]] }) };
  return `${text(pick(TEXTS))}.localeCompare(${text(pick(TEXTS))}, ${pick(["undefined", '"en"', '"de"', '"sv"'])}, ${text(options)})`;
}

const LETTERS = [..."aeouAé가각ạ̈ﬁÅ①Ω", "\u0301", "\u0308", "\u0323", "\u0327", "\u05b0", "\u0345", "\u1161", "\u11a8"];
const normal = () =>
  `${text(times(1 + below(6), () => pick(LETTERS)).join(""))}.normalize(${text(pick(["NFC", "NFD", "NFKC", "NFKD"]))})`;

const counts = [0, 1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 100, 101, 111, 1.5, -1];
const plurals = counts.flatMap((count) =>
  ["cardinal", "ordinal"].map((type) => `new Intl.PluralRules("en-US", { type: "${type}" }).select(${count})`),
);
const relative = ["0", "-0", "1", "-1", "2", "1.5", "-12345"].flatMap((count) =>
  ["day", "hours", "year", "quarter"].map((unit) => {
    const options = text(some({ numeric: [6, ["auto"]], style: [5, WIDTHS] }));
    return `new Intl.RelativeTimeFormat("${pick(["en", "en-GB"])}", ${options}).${pick(["format", "formatToParts"])}(${count}, "${unit}")`;
  }),
);
const lists = ["", "a", "ab", "abc", "abcd"].flatMap((letters) =>
  ["conjunction", "disjunction", "unit"].map(
    (type) => `new Intl.ListFormat("en", { type: "${type}", style: "${pick(WIDTHS)}" }).format(${text([...letters])})`,
  ),
);
const segments = ["Hello, world. It's 3.14!", "a_b c1 2,000 x:y", "naïve café’s", "a  b\n\nc\r\n", "日本語", "👍🏽 ok"].flatMap((one) =>
  ["word", "grapheme"].map(
    (granularity) => `[...new Intl.Segmenter("en", { granularity: "${granularity}" }).segment(${text(one)})]`,
  ),
);
const names = ["region US", "region 419", "region xx", "language fr", "language zz", "language en-US", "currency EUR", "script Latn"].map(
  (one) => `new Intl.DisplayNames("en", { type: "${one.split(" ")[0]}" }).of("${one.split(" ")[1]}")`,
);

const BY_HAND = `
  Intl.DateTimeFormat().resolvedOptions()
  Intl.supportedValuesOf("timeZone")
  Intl.supportedValuesOf("currency")
  Intl.supportedValuesOf("x")
  Intl.DateTimeFormat("en", { timeZone: "Mars/Phobos" })
  Intl.DateTimeFormat() instanceof Intl.DateTimeFormat
  Intl.PluralRules()
  Intl.NumberFormat().format("12345678901234567890.5")
  Intl.getCanonicalLocales("EN-us")
  Object.prototype.toString.call(Intl)
  new Date(0).toLocaleString("xx_YY")
  new Date(0).toLocaleString()
  new Date(NaN).toLocaleString()
  new Date(0).toLocaleString("en-US", { timeZone: "America/New_York" })
  new Date(-1e12).toLocaleString("en-US", { timeZone: "America/New_York" })
  new Date(2540000000000).toLocaleString("en-US", { timeZone: "America/New_York" })
  new Date("0044-03-15").toLocaleDateString()
  new Date(0).toLocaleDateString("pl-PL")
  (1234567.891).toLocaleString()
  (5).toLocaleString(undefined, { style: "currency" })
  (5).toLocaleString(undefined, { style: "bogus" })
  (5).toLocaleString("en", { maximumFractionDigits: 200 })
  [1, 1234.5, null].toLocaleString()
  "I".toLocaleLowerCase("tr")
  ["b", "a", "ä"].sort(Intl.Collator("de").compare)
  "é".normalize("x")
  "Crème Brûlée".normalize("NFD").replace(/[\\u0300-\\u036f]/g, "")
  new RegExp("^\\\\p{Lu}+$", "u").test("ÄB")
  new RegExp("[\\\\p{Lu}\\\\P{Cf}]", "u").exec("\\u200bé")[0]
  new RegExp("\\\\p{Nonsense}", "u")
  new RegExp("\\\\p{Script=Greek}", "u").test("α")
  modules.buffer.Buffer.from("_-8", "base64url").toString("hex")
  modules.buffer.Buffer.from("héé?>").toString("base64url")
  modules.buffer.Buffer.from("a-_b==", "base64").toString("hex")
  modules.buffer.Buffer.byteLength("_-8", "base64url")
  modules.buffer.Buffer.isEncoding("base64url")
  modules.buffer.Buffer.alloc(4).fill("_-8", "base64url").toString("hex")
  modules.buffer.Buffer.alloc(4).write("_-8", "base64url")
  modules.buffer.Buffer.from("x", "nonsense")
  modules.crypto.createHash("sha256").update("a").digest("base64url")
  fetch("http://localhost:9/").catch((thrown) => thrown.constructor.name)
  fetch("http://localhost:9/", { method: "POST", body: "x".repeat(9000) }).catch((thrown) => thrown.constructor.name)
  modules.crypto.createHmac("sha1", "k").update("a").digest("base64")
  modules.crypto.createCipheriv("aes-256-cbc", "0".repeat(32), "0".repeat(16)).update("a", "utf8", "hex")
`;

export default [
  ...times(250, date),
  ...times(250, number),
  ...times(120, order),
  ...times(120, normal),
  ...[plurals, relative, lists, segments, names].flat(),
  ...BY_HAND.trim().split(/\n\s*/),
];
