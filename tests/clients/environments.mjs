// What a client program needs to run: a Python environment of its own for each framework, and one folder of JavaScript packages.
// Each is made when it is missing or no longer what the pins here say.

import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../conformance/clients/processes.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const TARGET = fileURLToPath(new URL('../../target/clients', import.meta.url));
const INSTALL_MS = 600_000;

const requirements = (client) => join(HERE, 'requirements', `${client.environment}.txt`);

/** The pinned version of the package that a client is named after. */
export function versionOf(client) {
  if (client.environment) {
    const pin = readFileSync(requirements(client), 'utf8')
      .split('\n')
      .find((line) => line.replace(/\[.*\]/, '').startsWith(`${client.package}==`));
    return pin.split('==')[1];
  }
  const wanted = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8')).dependencies[client.package];
  return wanted.split('@').at(-1);
}

/** The command that runs a client's program, without the job; throws a sentence if it cannot be installed. */
export async function commandOf(client) {
  const program = join(HERE, 'programs', client.program);
  return client.environment ? [await python(client), program] : [await node(), program, modules];
}

/** Makes an environment at most once; what went wrong the first time is said again. */
const made = new Map();
function once(key, make) {
  if (!made.has(key)) made.set(key, make());
  return made.get(key);
}

const python = (client) =>
  once(client.environment, async () => {
    const folder = join(TARGET, 'venv', client.environment);
    const interpreter = join(folder, 'bin', 'python');
    const stamp = join(folder, 'installed.txt');
    const wanted = readFileSync(requirements(client), 'utf8');
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return interpreter;
    console.log(`...   installing ${client.name} at target/clients/venv/${client.environment}`);
    rmSync(folder, { recursive: true, force: true });
    await ended('python3', ['-m', 'venv', folder]);
    // Nothing is compiled from C or Rust here, and what is never imported is never compiled to bytecode.
    const pip = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', '--no-compile', '--only-binary', ':all:'];
    await ended(interpreter, [...pip, '-r', requirements(client)]);
    writeFileSync(stamp, wanted);
    return interpreter;
  });

/** Where the JavaScript packages are. */
const modules = join(TARGET, 'node_modules');

/** Node.js of the version that package.json pins: some frameworks want a newer one than this runner does. */
const node = () =>
  once('node', async () => {
    const stamp = join(TARGET, 'installed.json');
    const wanted = readFileSync(join(HERE, 'package-lock.json'), 'utf8');
    if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
      console.log('...   installing the JavaScript clients at target/clients/node_modules');
      mkdirSync(TARGET, { recursive: true });
      for (const name of ['package.json', 'package-lock.json']) copyFileSync(join(HERE, name), join(TARGET, name));
      await ended('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', '--prefix', TARGET]);
      writeFileSync(stamp, wanted);
    }
    const own = join(modules, '.bin', 'node');
    return existsSync(own) ? own : process.execPath;
  });

async function ended(command, args) {
  const { code, stdout, stderr } = await run(command, args, { env: process.env, ms: INSTALL_MS });
  if (code !== 0) throw new Error([...stdout, ...stderr].slice(-3).join(' ') || `${command} ended with code ${code}`);
}
