// How the runners of clients begin and what they say: one line for each check, and a count of them.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

/** How many checks passed, and how many failed. */
export const count = { passed: 0, failed: 0 };

/** Tells of a check, and returns whether it passed. */
export function tell(combination, name, ok, why, ms) {
  count[ok ? 'passed' : 'failed'] += 1;
  const time = ms === undefined ? '' : ` (${ms} ms)`;
  console.log(`${ok ? 'ok  ' : 'FAIL'}  ${combination}: ${name}${time}${ok ? '' : `: ${why}`}`);
  return ok;
}

export function complain(sentence) {
  console.error(sentence);
  process.exit(1);
}

/** Makes paths of options that must be given absolute, and complains of those that lead nowhere. */
export function needPaths(options, names) {
  for (const name of names) {
    if (options[name] === undefined) complain(`--${name} is missing`);
    options[name] = resolve(options[name]);
    if (!existsSync(options[name])) complain(`${options[name]} does not exist`);
  }
}
