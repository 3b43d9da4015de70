// `String.prototype.normalize`, from the tables of the build.

import { lacking, tables } from "./common.js";

const FORMS = ["NFC", "NFD", "NFKC", "NFKD"];
const [S, L, V, T] = [0xac00, 0x1100, 0x1161, 0x11a7];
const [VOWELS, TAILS, SYLLABLES] = [21, 28, 11172];

/** A syllable of Hangul consists of two or three letters. */
function letters(code) {
  const at = code - S;
  const tail = at % TAILS;
  const all = [L + Math.floor(at / (VOWELS * TAILS)), V + Math.floor((at % (VOWELS * TAILS)) / TAILS)];
  return String.fromCodePoint(...all, ...(tail ? [T + tail] : []));
}

function together(one, other) {
  const [first, second] = [one.codePointAt(0), other.codePointAt(0)];
  if (first >= L && first < L + 19 && second >= V && second < V + VOWELS)
    return String.fromCodePoint(S + ((first - L) * VOWELS + second - V) * TAILS);
  const at = first - S;
  if (at >= 0 && at < SYLLABLES && at % TAILS === 0 && second > T && second < T + TAILS)
    return String.fromCodePoint(first + second - T);
  return undefined;
}

export function normalize(given) {
  if (this === undefined || this === null) throw new TypeError("String.prototype.normalize called on null or undefined");
  const form = given === undefined ? "NFC" : String(given);
  if (!FORMS.includes(form)) throw new RangeError(`The normalization form should be one of ${FORMS.join(", ")}.`);
  const text = String(this);
  if (/^[\0-\x7f]*$/.test(text)) return text;
  const known = tables().normal;
  const wide = form.startsWith("NFK");
  if (!known || (wide && !known.compatible))
    throw lacking(`normalize("${form}")`, `the build found no "${form}" in the server, and left its table out`);
  known.places ??= Object.fromEntries(known.marks.flatMap((all, index) => [...all].map((mark) => [mark, index + 1])));
  const parts = ordered(
    [...text].flatMap((one) => {
      const code = one.codePointAt(0);
      if (code >= S && code < S + SYLLABLES) return [...letters(code)];
      return [...((wide && own(known.compatible, one)) || own(known.canonical, one) || one)];
    }),
    known.places,
  );
  return form.endsWith("D") ? parts.join("") : composed(parts, known);
}

const own = (table, name) => (Object.hasOwn(table, name) ? table[name] : undefined);

/** Marks that follow each other stand in the order of their places. */
function ordered(parts, places) {
  const all = parts.map((one) => [one, own(places, one) ?? 0]);
  for (let from = 0; from < all.length; from++) {
    if (!all[from][1]) continue;
    let to = from;
    while (to < all.length && all[to][1]) to++;
    all.splice(from, to - from, ...all.slice(from, to).sort((one, other) => one[1] - other[1]));
    from = to;
  }
  return all.map(([one]) => one);
}

function composed(parts, { pairs, places }) {
  const made = [];
  let [starter, before] = [-1, 0];
  for (const one of parts) {
    const place = own(places, one) ?? 0;
    // A mark of the same place between the two keeps them apart.
    const free = starter >= 0 && (made.length - 1 === starter || (before < place && before > 0));
    const whole = free ? (own(pairs, made[starter] + one) ?? together(made[starter], one)) : undefined;
    if (whole) {
      made[starter] = whole;
      continue;
    }
    made.push(one);
    if (!place) starter = made.length - 1;
    before = place;
  }
  return made.join("");
}
