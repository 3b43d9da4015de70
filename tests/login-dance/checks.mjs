// How a check is made and told: one line, and below it what was seen if it failed.

import { Unmet, expect, within } from '../conformance/clients/report.mjs';
import { tell } from '../conformance/clients/telling.mjs';
import { cut } from './door.mjs';

export { expect, expectEqual, expectIn, sleep, until, within } from '../conformance/clients/report.mjs';

const STEP_MS = 20_000;

/** Nothing of a token is printed that could be used. */
const without = (text) => text.replace(/[\w-]{20,}\.[\w-]{20,}\.[\w-]{20,}/g, (token) => cut(token));

/**
 * Makes a check, and tells of it; whether it passed. `seen()` gives lines about what went on meanwhile. What `body` returns, if
 * it is a text, is told with a check that passed.
 */
export async function check(group, name, body, { ms = STEP_MS, seen = () => [] } = {}) {
  const start = Date.now();
  try {
    const more = await within(ms, Promise.resolve().then(body), 'it');
    return tell(group, typeof more === 'string' ? `${name}: ${more}` : name, true, undefined, Date.now() - start);
  } catch (error) {
    const cause = error.cause === undefined ? '' : ` (${error.cause.code ?? error.cause.message})`;
    const why = error instanceof Unmet ? error.message : `${error.name}: ${error.message}${cause}`;
    tell(group, name, false, without(why), Date.now() - start);
    for (const line of seen()) console.log(`      | ${without(line)}`);
    return false;
  }
}

/** Fails unless an answer has this status and, if they are given, these parts in its challenge. */
export function expectAnswer(answer, status, parts, shown) {
  const challenge = answer.headers['www-authenticate'] ?? '';
  const fits = answer.status === status && parts.every((part) => challenge.includes(part));
  expect(fits, () => `wanted status ${status} and ${parts.join(', ') || 'any challenge'}; ${shown(answer)}`);
}
