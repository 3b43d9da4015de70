// Installs packages, exactly in the versions that a lockfile pins, without running any package's scripts.

import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../conformance/clients/processes.mjs';

/** Where the packages of a folder in packages/ are installed. */
export const modulesOf = (target, name) => join(target, 'packages', name, 'node_modules');

const HERE = fileURLToPath(new URL('packages', import.meta.url));
const INSTALL_MS = 600_000;

/** `name` is a folder in packages/. */
export async function install(name, target) {
  const [from, to] = [join(HERE, name), dirname(modulesOf(target, name))];
  const lock = readFileSync(join(from, 'package-lock.json'), 'utf8');
  const stamp = join(to, 'installed.json');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  console.log(`...   installing the packages in tests/agents/packages/${name}`);
  mkdirSync(to, { recursive: true });
  for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(from, file), join(to, file));
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const { code, stdout, stderr } = await run('npm', args, { env: process.env, ms: INSTALL_MS, cwd: to });
  if (code !== 0) throw new Error(`npm does not install what packages/${name} names: ${[...stdout, ...stderr].slice(-3).join(' ')}`);
  writeFileSync(stamp, lock);
}
