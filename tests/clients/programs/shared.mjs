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
/** How soon a client must give up a call whose server was killed. Their own limit for a call is a minute. */
const LOST_MS = 15_000;
/** How often a client calls while its servers are stopped and started, and how many of these calls ask a person. */
const BETWEEN_MS = 20;
const ASKS_EVERY = 5;
/** After so many requests, each replica has answered one. */
const ALL_ANSWERED = 9;
/** After this time an answer is a stream: wharf waits for it for 100 ms. */
const STREAM_MS = 500;

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
  const given = job.handshake === undefined ? {} : { handshake: job.handshake };
  if (job.meanwhile) given.person = { answer: () => ({ action: 'accept', content: { v: 'Ada' } }) };
  if (!(await check('connect', async () => (client = await connect(given))))) process.exit(0);
  if (job.meanwhile) {
    await meanwhile(client);
    await check('changed', () => changed(job.handshake === false ? { ...client, heard: undefined } : client));
    await check('close', () => client.close());
    process.exit(0);
  }
  if (job.restarts) {
    await restarted(client);
    process.exit(0);
  }
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

/** Goes on with one client while the server is restarted and killed. */
async function restarted(client) {
  const tools = await client.tools();
  const says = async (text) => {
    const result = JSON.stringify(await client.call(tools.echo_echo, { message: text }));
    expectIn(text, result, 'what echo answers');
  };
  const again = async (how) => {
    const done = await fetch(new URL(how, job.restarts), { method: 'POST' });
    expect(done.ok, `the server was not restarted: ${await done.text()}`);
  };
  const waits = (ms) => client.call(tools.g_t, { ms, text: 'waited' });
  await check('before', () => says('before'));
  for (const how of ['restart', 'kill']) {
    await check(`${how} at rest`, async () => {
      await again(how);
      for (const time of ['once', 'twice']) await says(`${how} ${time}`);
    });
  }
  // A subscription of 2026-07-28 ends with its server, and only the program can begin another one.
  await check('changed', () => changed(job.handshake === false ? { ...client, heard: undefined } : client));
  await check('restart during a call', async () => {
    const [result] = await Promise.all([waits(1_500), again('restart')]);
    expectIn('waited', JSON.stringify(result), 'what the call answers');
    await says('after the restart');
  });
  // At once, and when the answer has become a stream, which the client then tries to resume.
  for (const [name, ms] of [['a call', 0], ['an answer', STREAM_MS]]) {
    await check(`kill during ${name}`, async () => {
      const call = waits(60_000).then(
        () => 'no error',
        (error) => error,
      );
      await sleep(ms);
      await again('kill');
      const error = await within(LOST_MS, call, 'the error of the call that was lost');
      expect(error instanceof Error, () => `the call was answered: ${error}`);
      if (ms > 0 && job.handshake !== false) expectIn('the answer to this request is lost', error.message, 'the error');
      await says('after the kill');
    });
  }
  await check('close', () => client.close());
}

/** Calls until the runner says `over`, and tells which calls failed: it knows what happened to the servers then. */
async function meanwhile(client) {
  const tools = await client.tools();
  for (let number = 0; (await (await fetch(job.meanwhile)).text()) !== 'over'; number++) {
    const [text, asks, from] = [`number ${number}`, number % ASKS_EVERY === 0, Date.now()];
    try {
      const result = asks ? client.call(tools.g_t, { ask: [['name']], text }) : client.call(tools.echo_echo, { message: text });
      expectIn(text, JSON.stringify(await within(LOST_MS, result, 'the answer')), 'the answer');
      tell('right', asks ? 'question' : 'call');
    } catch (error) {
      tell('lost', { from, to: Date.now(), what: asks ? 'question' : 'call', why: error.message });
    }
    await sleep(BETWEEN_MS);
  }
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
  // Replicas load it one after the other, and each answers some of the requests.
  const wanted = job.meanwhile ? ALL_ANSWERED : 1;
  for (let listed = 0; listed < wanted; ) {
    listed = job.late.tool in (await client.tools()) ? listed + 1 : 0;
    if (listed > 0) continue;
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
