// Logs in to wharf with official clients at an identity provider that others wrote, and shows which tokens are taken, also while
// the provider changes its keys or is away.
//
//   node dance.mjs --bin WHARF --plugins DIR --modules DIR --python PROGRAM … [--only TEXT]
//
// `--modules` has the packages of package-lock.json, `--python` those of requirements.txt or requirements-1.txt, and may be given
// for each. WHARF_BIN may stand for `--bin`. `--only` takes the libraries and groups whose name contains the text.
//
// One line per check; exit code 1 if any failed.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { installedVersion } from '../conformance/clients/arguments.mjs';
import { complain, count, needPaths } from '../conformance/clients/telling.mjs';
import { check, expectEqual } from './checks.mjs';
import { SHORT, dances } from './dances.mjs';
import { away, late, rotation } from './outages.mjs';
import { place } from './place.mjs';
import { CLIENTS, startProvider } from './provider.mjs';
import { python, versionOf } from './python.mjs';
import { refusals } from './refusals.mjs';
import { stepUp } from './step_up.mjs';
import { version1, version2 } from './typescript.mjs';

const option = { type: 'string' };
const { values: options } = parseArgs({
  options: {
    bin: { type: 'string', default: process.env.WHARF_BIN },
    plugins: option,
    modules: option,
    python: { type: 'string', multiple: true, default: [] },
    only: { type: 'string', default: '' },
  },
});
needPaths(options, ['bin', 'plugins', 'modules']);
if (options.python.length === 0) complain('--python is missing');
const { bin, plugins, modules } = options;

// What clients and servers keep is kept here, and nothing of the machine's own is read.
const folder = mkdtempSync(join(tmpdir(), 'wharf-login-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const env = { ...process.env, HOME: join(folder, 'home'), PYTHONPYCACHEPREFIX: join(dirname(modules), 'pycache') };
for (const name of ['XDG_CONFIG_HOME', 'XDG_CACHE_HOME', 'RUST_LOG', 'PYTHONPATH', 'PYTHONDONTWRITEBYTECODE']) delete env[name];
mkdirSync(env.HOME);

const version = (name) => installedVersion(modules, name);
const LIBRARIES = [
  {
    name: `@modelcontextprotocol/sdk ${version('@modelcontextprotocol/sdk')}`,
    make: (url, given) => version1(modules, url, given),
    eras: false,
    // It gives up on a call that is refused just when another one of its calls is sent again with a new token.
    refusedTogether: true,
    // With a refresh token it refreshes when it should log in again, gets no further scope, and gives up.
    stepping: CLIENTS.brief,
  },
  {
    name: `@modelcontextprotocol/client ${version('@modelcontextprotocol/client')}`,
    make: (url, given) => version2(modules, url, given),
    eras: true,
    stepping: CLIENTS.public,
  },
  ...(await Promise.all(options.python.map(inPython))),
];

/** The library as this interpreter has it. */
async function inPython(interpreter) {
  const found = await versionOf(interpreter, env);
  const make = (url, given) => python(interpreter, env, url, given);
  return { name: `mcp (Python) ${found}`, make, eras: !found.startsWith('1.'), once: true, stepping: CLIENTS.public };
}

const where = { bin, plugins, env, folder };
let number = 0;
const begin = (provider, more) => place(where, `wharf-${(number += 1)}`, provider, more);
const wanted = (name) => name.includes(options.only);

/** Does `body` with a wharf, and ends it. */
async function withWharf(name, provider, more, body) {
  if (!wanted(name)) return;
  const wharf = await begin(provider, more);
  await body(wharf);
  const code = await wharf.stop();
  if (code !== 0) await check(name, 'the end of wharf', () => expectEqual(code, 0, 'the exit code'));
}

// One for what is taken and what is not, one for logins, and one that is away at first: they do not disturb each other, and what
// has to be waited for is waited for only once.
const [strict, patient, absent] = await Promise.all([1, 2, 3].map(() => startProvider(modules)));

async function judged(wharf) {
  await refusals(wharf, strict);
  await away(wharf, strict);
  await rotation(wharf, strict);
}

const known = LIBRARIES.map(({ name, make }) => [name, make]);
const lateName = 'provider away at the start';
try {
  await Promise.all([
    withWharf('tokens', strict, {}, judged),
    wanted(lateName) && late((before) => begin(absent, { before }), absent, known),
    ...LIBRARIES.map(({ name, make, ...more }) =>
      withWharf(name, patient, { tokens: SHORT }, (wharf) => dances(name, make, more, wharf, patient)),
    ),
  ]);
  for (const { name, make, ...more } of LIBRARIES) {
    await withWharf(name, patient, { roles: true }, (wharf) => stepUp(name, make, more, wharf, patient));
  }
} catch (error) {
  console.error(error.message);
  // Others were begun side by side with what failed; a signal ends this program with all of them.
  process.kill(process.pid, 'SIGTERM');
  await new Promise(() => {});
}
for (const provider of [strict, patient, absent]) await provider.stop();
if (count.passed + count.failed === 0) complain(`nothing contains ${JSON.stringify(options.only)}`);
console.log(`${count.passed + count.failed} checks: ${count.passed} passed, ${count.failed} failed`);
process.exit(count.failed === 0 ? 0 : 1);
