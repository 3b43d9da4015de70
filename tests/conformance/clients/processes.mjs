// Programs that run.mjs starts: each bounded in time, and ended with all it started.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { once } from 'node:events';

/** What ends if this program has to. */
const groups = new Set();

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    for (const pid of groups) end(pid, 'SIGKILL');
    process.exit(1);
  });
}

/** Sends `signal` to a program and all it started. */
function end(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // Nothing of it is left.
  }
}

/** Starts a program in a process group of its own. */
function start(command, args, env, cwd) {
  const child = spawn(command, args, { env, cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  // Without a pid there was nothing to start; 'error' tells why.
  if (child.pid !== undefined) groups.add(child.pid);
  return child;
}

/** Ends what is left of a program. */
function reap(child) {
  if (child.pid === undefined) return;
  end(child.pid, 'SIGKILL');
  groups.delete(child.pid);
}

/** Runs a program in the folder `cwd` for at most `ms`: its exit code (undefined if it had to be ended) and the lines it wrote. */
export async function run(command, args, { env, ms, cwd }) {
  const child = start(command, args, env, cwd);
  const told = { stdout: [], stderr: [] };
  for (const stream of ['stdout', 'stderr']) {
    createInterface({ input: child[stream] }).on('line', (line) => told[stream].push(line));
  }
  const timer = setTimeout(() => reap(child), ms);
  try {
    const [code] = await once(child, 'close');
    return { code: code ?? undefined, ...told };
  } catch (error) {
    return { code: undefined, stdout: told.stdout, stderr: [...told.stderr, error.message] };
  } finally {
    clearTimeout(timer);
    reap(child);
  }
}

/** `wharf serve` on a port of its choice, or at this address, once it has loaded everything. */
export async function serve(bin, config, { env, ms, listen = '127.0.0.1:0' }) {
  const child = start(bin, ['serve', '-c', config, '--listen', listen], env);
  const log = [];
  let found;
  const address = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`\`wharf serve\` was not ready within ${ms} ms`)), ms);
    found = (url) => {
      clearTimeout(timer);
      resolve(url);
    };
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`\`wharf serve\` ended with code ${code}`)));
  });
  createInterface({ input: child.stderr }).on('line', (line) => {
    log.push(line);
    const url = /serving MCP at (http:\S+\/mcp)/.exec(line)?.[1];
    if (url) found(url);
  });
  child.stdout.resume();
  try {
    const url = await address;
    await healthy(new URL('/healthz', url), ms);
    return { url, log, stop: () => stop(child), kill: () => kill(child) };
  } catch (error) {
    reap(child);
    throw new Error([error.message, ...log.slice(-10)].join('\n'));
  }
}

async function healthy(url, ms) {
  const limit = Date.now() + ms;
  while (Date.now() < limit) {
    const { ok } = await fetch(url, { signal: AbortSignal.timeout(ms) });
    if (ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${url} was not well within ${ms} ms`);
}

/** Ends the server at once, as a crash does. */
async function kill(child) {
  const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
  reap(child);
  await ended;
}

/** Asks the server to end; its exit code, undefined if it did not within five seconds. */
async function stop(child) {
  try {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode ?? undefined;
    const ended = once(child, 'exit');
    const timer = setTimeout(() => reap(child), 5_000);
    child.kill('SIGTERM');
    const [code] = await ended;
    clearTimeout(timer);
    return code ?? undefined;
  } finally {
    reap(child);
  }
}
