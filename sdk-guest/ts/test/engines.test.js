// The polyfills for QuickJS.

import assert from "node:assert/strict";
import { test } from "node:test";

import { TurnPromise, takeTurns } from "../lib/engines/promise.js";
import * as utf8 from "../lib/engines/utf8.js";

/** Checks that the SDK's promises and the language's have the same outcome. */
async function both(work) {
  const ours = work(TurnPromise);
  takeTurns();
  const [state, value] = ours.peek();
  const theirs = await work(Promise).then(
    (value) => ["fulfilled", value],
    (reason) => ["rejected", reason],
  );
  assert.deepEqual(
    [state, String(value?.message ?? JSON.stringify(value))],
    [theirs[0], String(theirs[1]?.message ?? JSON.stringify(theirs[1]))],
  );
}

const thenable = { then: (resolve) => resolve("thenable") };
const CASES = {
  "a value": (P) => P.resolve(1),
  "a promise in a promise": (P) => P.resolve(new P((resolve) => resolve(P.resolve(2)))),
  "a thenable": (P) => new P((resolve) => resolve(thenable)),
  "a thenable that throws": (P) =>
    P.resolve({
      then() {
        throw new Error("no");
      },
    }),
  "an executor that throws": (P) =>
    new P(() => {
      throw new Error("no");
    }),
  "the first settling counts": (P) =>
    new P((resolve, reject) => {
      resolve(P.resolve(1));
      reject(new Error("late"));
    }),
  "a chain": (P) =>
    P.resolve(1)
      .then((n) => n + 1)
      .then(undefined, () => 0)
      .then((n) => [n]),
  "a handler that throws": (P) =>
    P.resolve()
      .then(() => {
        throw new Error("no");
      })
      .catch((error) => error.message),
  "a handler that is not a function": (P) => P.reject(new Error("no")).then(3),
  finally: (P) => P.resolve(1).finally(() => 2),
  "finally that throws": (P) =>
    P.resolve(1).finally(() => {
      throw new Error("no");
    }),
  "finally after a rejection": (P) => P.reject(new Error("first")).finally(() => 2),
  all: (P) => P.all([1, P.resolve(2), thenable]),
  "all of nothing": (P) => P.all([]),
  "all with a rejection": (P) => P.all([1, P.reject(new Error("no"))]),
  allSettled: (P) => P.allSettled([1, P.reject("no")]),
  any: (P) => P.any([P.reject(1), 2]),
  "any of only rejections": (P) => P.any([P.reject(1)]).catch((error) => error.errors),
  race: (P) => P.race([new P(() => {}), P.resolve(2), 3]),
  itself: (P) => {
    const made = {};
    made.promise = new P((resolve) => {
      made.resolve = resolve;
    });
    made.resolve(made.promise);
    return made.promise.catch((error) => error.constructor.name);
  },
};

for (const [what, work] of Object.entries(CASES)) test(`promises by turns: ${what}`, () => both(work));

test("handlers run in the order of their turns", () => {
  const seen = [];
  TurnPromise.resolve()
    .then(() => seen.push(1))
    .then(() => seen.push(3));
  TurnPromise.resolve()
    .then(() => seen.push(2))
    .then(() => seen.push(4));
  takeTurns();
  assert.deepEqual(seen, [1, 2, 3, 4]);
});

test("UTF-8 is what the platform's is", () => {
  const encoder = new utf8.TextEncoder();
  for (const text of ["", "a", "ü€😀", "\ud800x", "\u0000\uffff", "x".repeat(1000)]) {
    assert.deepEqual(encoder.encode(text), new TextEncoder().encode(text));
  }
  let seed = 7;
  const byte = () => ((seed = (seed * 1103515245 + 12345) & 0x7fffffff) >> 16) & 0xff;
  const lead = [0x41, 0xc3, 0xe2, 0xf0, 0xed, 0xf4, 0x80, 0xbf, 0xa0, 0x9f, 0xef, 0xbb, 0xbf, 0xc0, 0xff];
  for (let round = 0; round < 5000; round++) {
    const bytes = Uint8Array.from({ length: byte() % 8 }, () => (byte() % 4 ? lead[byte() % lead.length] : byte()));
    assert.equal(new utf8.TextDecoder().decode(bytes), new TextDecoder().decode(bytes), [...bytes].join());
  }
  assert.throws(() => new utf8.TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.of(0xff)), TypeError);
  assert.throws(() => new utf8.TextDecoder("latin1"), RangeError);
});
