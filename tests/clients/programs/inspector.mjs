// The command line of `@modelcontextprotocol/inspector`, which opens a new connection for each method.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { drive, fine, job, modules, named, stdio } from './shared.mjs';

const PROGRAM = join(modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js');

/** What one method answers. */
async function inspect(method, ...options) {
  const server = stdio ? ['--', job.command, ...job.args] : ['--server-url', job.url, '--transport', job.transport];
  const args = [PROGRAM, '--cli', '-q', '--format', 'json', '--method', method, ...options, ...server];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let told = '';
  child.stdout.on('data', (data) => (told += data));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${method} ended with code ${code}: ${told.trim()}`);
  return JSON.parse(told).result;
}

const client = {
  tools: async () => named((await inspect('tools/list')).tools),
  call: async (tool, args) => {
    const pairs = Object.entries(args).map(([name, value]) => `${name}=${text(value)}`);
    return fine(await inspect('tools/call', '--tool-name', tool.name, ...(pairs.length ? ['--tool-arg', ...pairs] : [])));
  },
  close: () => {},
};

/** As the command line takes it. */
function text(value) {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

// It starts again for every call.
await drive(() => client, { callsMs: 100_000 });
