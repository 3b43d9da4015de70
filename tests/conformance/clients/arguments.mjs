// The command line of the client programs, and packages out of the folder it names.
//
//   node <program> --modules DIR --revision REVISION (--url URL | --bin WHARF --config FILE)

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

export function clientArguments() {
  const option = { type: 'string' };
  const { values } = parseArgs({
    options: { modules: option, revision: option, url: option, bin: option, config: option },
  });
  const stdio = values.url === undefined;
  return { ...values, stdio, command: values.bin, args: ['run', '-c', values.config] };
}

/** `require` for the packages in the folder `modules`. */
export function requireFrom(modules) {
  return createRequire(join(resolve(modules), 'none.js'));
}

/** The version of an installed package; undefined if it is not there. */
export function installedVersion(modules, name) {
  try {
    return JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8')).version;
  } catch {
    return undefined;
  }
}
