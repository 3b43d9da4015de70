// The checks by the command line of `@modelcontextprotocol/inspector`, which starts again for each method. It can list, call,
// read and get prompts; nothing else.

import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { clientArguments } from './arguments.mjs';
import { fixture, lists, plain } from './checks.mjs';
import { check, expect, expectEqual } from './report.mjs';

const { modules, revision, url, stdio, command, args } = clientArguments();
const PROGRAM = join(resolve(modules), '@modelcontextprotocol/inspector/clients/launcher/build/index.js');
const ERA = revision === '2026-07-28' ? 'modern' : 'legacy';

/** What one method answers, as JSON. */
function inspect(method, ...options) {
  const common = ['--cli', '-q', '--format', 'json', '--protocol-era', ERA, '--method', method, ...options];
  const server = stdio ? ['--', command, ...args] : ['--server-url', url, '--transport', 'http'];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [PROGRAM, ...common, ...server], { stdio: ['ignore', 'pipe', 'pipe'] });
    const told = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr']) child[stream].on('data', (data) => (told[stream] += data));
    child.on('error', reject);
    child.on('close', (code) => {
      try {
        expectEqual(code, 0, 'the exit code');
        resolve(JSON.parse(told.stdout).result);
      } catch (error) {
        reject(new Error(`${method}: ${error.message}; stdout ${told.stdout.trim()}; stderr ${told.stderr.trim()}`));
      }
    });
  });
}

const pairs = (values) => Object.entries(values).map(([name, value]) => `${name}=${value}`);

/** What the checks want of a client, as far as this one goes. */
const client = {
  async list(kind) {
    switch (kind) {
      case 'tools':
        return (await inspect('tools/list')).tools;
      case 'resources':
        return (await inspect('resources/list')).resources;
      case 'templates':
        return (await inspect('resources/templates/list')).resourceTemplates;
      default:
        return (await inspect('prompts/list')).prompts;
    }
  },
  call: (name) => inspect('tools/call', '--tool-name', name),
  read: (uri) => inspect('resources/read', '--uri', uri),
  prompt: (name, values) => inspect('prompts/get', '--prompt-name', name, '--prompt-args', ...pairs(values)),
};

await check('revision', async () => {
  const told = await inspect('initialize');
  expectEqual(told.protocolVersion, revision, 'the negotiated revision');
  expectEqual(told.serverInfo?.name, fixture.server, "the server's name");
});
await lists(client);
await plain(client);
await check('tool-error', async () => {
  // It ends with 5 where a tool answers `isError`.
  const seen = await inspect('tools/call', '--tool-name', 'test_error_handling').then(
    (result) => `a result: ${JSON.stringify(result)}`,
    (error) => error.message,
  );
  expect(seen.includes('the exit code is 5,') && seen.includes('"isError":true'), seen);
});
