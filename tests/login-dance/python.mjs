// The Python library, in a program of its own (python_client.py) that does one thing after the other as it is told, a JSON line
// each way. When it has to send a person to the provider, it says where, and is told what the provider called back with.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { run } from '../conformance/clients/processes.mjs';
import { logIn } from './person.mjs';
import { REDIRECT } from './provider.mjs';

const PROGRAM = fileURLToPath(new URL('./python_client.py', import.meta.url));
const STEP_MS = 20_000;
const END_MS = 5_000;

/** The version of the library that an interpreter has; throws a sentence if it has none. */
export async function versionOf(interpreter, env) {
  const program = 'import importlib.metadata as m; print(m.version("mcp"))';
  const { code, stdout, stderr } = await run(interpreter, ['-c', program], { env, ms: STEP_MS });
  if (code !== 0) throw new Error(`${interpreter} has no package mcp: ${stderr.slice(-1)}`);
  return stdout[0];
}

const running = new Set();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export function python(interpreter, env, url, { issuer, client, account, modern, tokens }) {
  const job = JSON.stringify({ url, issuer, client, tokens, modern, redirect: REDIRECT });
  const child = spawn(interpreter, [PROGRAM, job], { env, stdio: ['pipe', 'pipe', 'pipe'] });
  running.add(child);
  const ended = once(child, 'exit').finally(() => running.delete(child));
  const visited = [];
  const log = [];
  const say = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
  child.stdin.on('error', () => {});
  createInterface({ input: child.stderr }).on('line', (line) => log.push(line));
  let waiting;
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.visit) {
      visited.push(message.visit);
      logIn(message.visit, account).then(
        (called) => say({ called: Object.fromEntries(called) }),
        (error) => say({ called: { error: error.message } }),
      );
    } else {
      waiting?.(message);
    }
  });

  /** What the program answers to this. */
  async function told(message) {
    let timer;
    const answer = new Promise((resolve, reject) => {
      waiting = resolve;
      timer = setTimeout(() => reject(new Error(`no answer within ${STEP_MS} ms`)), STEP_MS);
      ended.then(([code]) => reject(new Error(`it ended with code ${code}`)), reject);
    });
    say(message);
    try {
      const { ok, value, why } = await answer;
      if (!ok) throw new Error(why);
      return value;
    } catch (error) {
      throw new Error([error.message, ...log.slice(-3)].join('; '));
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    tokens: () => told({ do: 'tokens' }),
    visited: async () => visited,
    // It tells nobody what it throws away; that tokens are kept is seen by `tokens`.
    thrown: async () => [],
    connect: () => told({ do: 'connect' }),
    call: (tool, args) => told({ do: 'call', tool, arguments: args }),
    together: (count, tool, args) => told({ do: 'together', count, tool, arguments: args }),
    async close() {
      child.stdin.end();
      const timer = setTimeout(() => child.kill('SIGKILL'), END_MS);
      const [code] = await ended;
      clearTimeout(timer);
      if (code !== 0) throw new Error([`it ended with code ${code}`, ...log.slice(-3)].join('; '));
    },
  };
}
