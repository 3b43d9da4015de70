// The Python interpreter with what requirements.txt names, in a folder of its own that is made when it is missing.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './processes.mjs';

const REQUIREMENTS = fileURLToPath(new URL('./requirements.txt', import.meta.url));
const [, WANTED] = /^mcp==(\S+)$/m.exec(readFileSync(REQUIREMENTS, 'utf8'));
const VERSION = 'import importlib.metadata as m; print(m.version("mcp"))';

/** The interpreter; throws a sentence if there can be none. */
export async function python(folder) {
  const program = join(folder, 'bin', 'python');
  if (!existsSync(program)) {
    const made = await run('python3', ['-m', 'venv', folder], { env: process.env, ms: 120_000 });
    if (made.code !== 0) {
      throw new Error(
        `the Python checks need python3 (3.10 or newer) with its modules venv and ensurepip (Debian: the package ` +
          `python3-venv): ${last(made)}`,
      );
    }
  }
  if ((await version(program)) !== WANTED) {
    const pip = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', '-r', REQUIREMENTS];
    const installed = await run(program, pip, { env: process.env, ms: 300_000 });
    if (installed.code !== 0) throw new Error(`pip could not install ${REQUIREMENTS}: ${last(installed)}`);
    const seen = await version(program);
    if (seen !== WANTED) throw new Error(`${folder} has mcp ${seen}, wanted ${WANTED}`);
  }
  return program;
}

async function version(program) {
  const { code, stdout } = await run(program, ['-c', VERSION], { env: process.env, ms: 20_000 });
  return code === 0 ? stdout[0] : undefined;
}

function last({ code, stdout, stderr }) {
  return [...stdout, ...stderr].slice(-3).join(' ') || `it ended with code ${code}`;
}
