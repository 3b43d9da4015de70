// How a client program says what it found: one JSON line per check on stdout, read by run.mjs.

/** How long one check may take. */
export const STEP_MS = 20_000;

/** A check failed: the sentence says what was seen and what was wanted. */
export class Unmet extends Error {}

/** Fails unless `holds`. */
export function expect(holds, sentence) {
  if (!holds) throw new Unmet(typeof sentence === 'function' ? sentence() : sentence);
}

/** Fails unless both are the same JSON. */
export function expectEqual(seen, wanted, what) {
  expect(
    JSON.stringify(seen) === JSON.stringify(wanted),
    () => `${what} is ${JSON.stringify(seen)}, wanted ${JSON.stringify(wanted)}`,
  );
}

/** Fails unless `text` is a string with `part` in it. */
export function expectIn(part, text, what) {
  expect(
    typeof text === 'string' && text.includes(part),
    () => `${what} lacks ${JSON.stringify(part)}: ${JSON.stringify(text)}`,
  );
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The outcome of `promise`, or a failure once `ms` have passed. */
export async function within(ms, promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Unmet(`${what} took more than ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until `holds()` is true. */
export async function until(ms, holds, what) {
  const end = Date.now() + ms;
  while (!holds()) {
    expect(Date.now() < end, `${what}: not within ${ms} ms`);
    await sleep(20);
  }
}

/** Runs one check and reports it; whether it passed. */
export async function check(name, body) {
  const start = Date.now();
  let why;
  try {
    await within(STEP_MS, Promise.resolve().then(body), 'it');
  } catch (error) {
    why = describe(error);
  }
  const line = { check: name, ok: why === undefined, why, ms: Date.now() - start };
  await new Promise((resolve) => process.stdout.write(`${JSON.stringify(line)}\n`, resolve));
  return line.ok;
}

function describe(error) {
  if (error instanceof Unmet) return error.message;
  const code = error?.code === undefined ? '' : ` (code ${error.code})`;
  const data = error?.data === undefined ? '' : ` ${JSON.stringify(error.data)}`;
  return `${error?.name ?? 'thrown'}${code}: ${error?.message ?? String(error)}${data}`;
}
