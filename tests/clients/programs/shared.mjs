// What every JavaScript program here asks of its framework. A program hands over how its framework connects; the rest is the same.
//
//   node PROGRAM MODULES JOB        (JOB is JSON, written by ../matrix.mjs; MODULES holds the packages)

import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { requireFrom } from '../../conformance/clients/arguments.mjs';
import { Unmet, check, expect, expectEqual, expectIn, sleep, within } from '../../conformance/clients/report.mjs';
import { MODERN, approval } from './approval.mjs';

const [modules, given] = process.argv.slice(2);
/** Where the server is, and what the runner prepared; the fields are told in shared.py. */
export const job = JSON.parse(given);
export const stdio = job.transport === 'stdio';
export const require = requireFrom(modules);
export { modules };

const CALLS = JSON.parse(readFileSync(new URL('./calls.json', import.meta.url), 'utf8'));
/** How soon a new plugin must be heard of or listed. */
const HEARD_MS = 10_000;

/** Something that happens once: `happen()` ends what waits for `happened`. */
export function event() {
  const it = {};
  it.happened = new Promise((resolve) => (it.happen = resolve));
  return it;
}

/**
 * Runs the checks. `connect({ roots })` gives a client that is connected: `tools()` lists again and gives the framework's own tools
 * by name, `call(tool, args)` the result, or throws if that is an error, `close()` ends it. `heard()`, if the framework tells of
 * changes, gives the event of the next one. `callsMs` is for those that take longer for all calls than one check may.
 * `approval`: see approval.mjs for what `connect` takes then; with `bothEras` it takes `handshake` as well.
 */
export async function drive(connect, { emptyRoots = false, callsMs, approval: asks } = {}) {
  let client;
  if (!(await check('connect', async () => (client = await connect({}))))) process.exit(0);
  const checks = { list, call: calls, roots, changed };
  for (const [name, body] of Object.entries(checks)) {
    if (name === 'call' && callsMs) await slowly(name, callsMs, () => body(client));
    else await check(name, () => body(client));
  }
  await check('close', () => client.close());
  if (emptyRoots) {
    // A second client, which declares roots and has none.
    await check('empty-roots', async () => {
      const second = await connect({ roots: [] });
      await roots(second, 'written-empty.txt');
      await second.close();
    });
  }
  if (asks) {
    const { bothEras = false, ...more } = asks;
    const how = { server: job.asked, transport: job.transport, canHaveRoots: emptyRoots, ...more };
    const ask = async (by, modern) => {
      const revision = await approval(by, how);
      if (bothEras) expectEqual(revision === MODERN, modern, `that ${revision} is the modern revision`);
      tell('asks', revision);
    };
    await check('approval', () => ask(connect, true));
    if (bothEras) await check('approval-handshake', () => ask((given) => connect({ ...given, handshake: true }), false));
  }
  process.exit(0);
}

async function slowly(name, ms, body) {
  const problem = await within(ms, body(), 'it').catch((error) => error);
  await check(name, () => {
    if (problem) throw problem;
  });
}

async function list(client) {
  const names = Object.keys(await client.tools()).sort();
  expectEqual(names, [...new Set(CALLS.map(({ tool }) => tool))].sort(), 'the list of tools');
}

async function calls(client) {
  const tools = await client.tools();
  for (const { tool, arguments: args, expect: wanted, never } of CALLS) {
    try {
      const result = JSON.stringify(await client.call(tools[tool], args));
      expectIn(wanted ?? '', result, 'the result');
      // What is only in the sentence of an error, which some frameworks give as any other text.
      expect(never === undefined || !result.includes(never), `the result is ${result}`);
    } catch (error) {
      throw new Unmet(`${tool} ${JSON.stringify(args)}: ${error.message}`);
    }
  }
}

async function one(client, name, args) {
  const tools = await client.tools();
  expect(name in tools, () => `there is no ${name} among ${Object.keys(tools)}`);
  return JSON.stringify(await client.call(tools[name], args));
}

async function roots(client, written = 'written.txt') {
  expectIn(job.made, await one(client, 'files_read_text_file', { path: join(job.root, 'made.txt') }), 'made.txt');
  await one(client, 'files_write_file', { path: join(job.root, written), content: job.made });
}

async function changed(client) {
  const told = client.heard?.();
  renameSync(job.late.from, job.late.to);
  if (told) await within(HEARD_MS, told.happened, 'hearing of the new plugin');
  const limit = Date.now() + HEARD_MS;
  while (!(job.late.tool in (await client.tools()))) {
    expect(Date.now() < limit, `${job.late.tool} was not listed within ${HEARD_MS} ms`);
    await sleep(50);
  }
  expectIn('late', await one(client, job.late.tool, { message: 'late' }), 'what the new tool answers');
  tell('hears', told ? 'told' : 'listed again');
}

const tell = (fact, value) => console.log(JSON.stringify({ fact, value }));

/** Tools by their names. */
export const named = (tools) => Object.fromEntries(tools.map((tool) => [tool.name, tool]));

/** The result of a call; throws if it is an error. */
export function fine(result) {
  expect(!result.isError, () => JSON.stringify(result.content));
  return result;
}
