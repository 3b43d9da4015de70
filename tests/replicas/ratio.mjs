// Compares three replicas that share through Redis with three that stand for themselves, in one run: the processor time that they take for a
// call of 2026-07-28, and for a call in a session whose every request goes to the next replica.
//
//   node ratio.mjs --bin WHARF --plugins DIR --debian DIR [--rounds N] [--calls N]
//
// One line for each kind of call; exit code 1 if sharing costs more than it may. The rounds of both alternate, and the least of each counts.

import { readFileSync, readdirSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Redis, Replica, fail, stopAll } from './place.mjs';

const options = parseArgs({
  options: {
    bin: { type: 'string' },
    plugins: { type: 'string' },
    debian: { type: 'string' },
    rounds: { type: 'string', default: '10' },
    calls: { type: 'string', default: '6000' },
  },
}).values;

const REPLICAS = 3;
const AT_ONCE = 16;
/** Time alone divided by time on Redis must not be less. */
const MUST = { '2026-07-28': 0.9, sessions: 0.8 };
const MODERN = '2026-07-28';
const CONTENT = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });

function post(port, headers, body) {
  return new Promise((done, failed) => {
    const sent = request({ host: '127.0.0.1', port, path: '/mcp', method: 'POST', agent, headers: { ...CONTENT, ...headers } }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => (text += part));
      response.on('end', () => done({ status: response.statusCode, headers: response.headers, text }));
    });
    sent.on('error', failed).end(body);
  });
}

async function started(shared) {
  const redis = shared ? await Redis.start(options.debian) : undefined;
  const replicas = [];
  for (let at = 0; at < REPLICAS; at++) {
    const config = `[plugins.echo]\npath = ${JSON.stringify(resolve(options.plugins, 'echo.wasm'))}\n`;
    const name = `${shared ? 'shared' : 'alone'}${at}`;
    replicas.push(await Replica.prepare({ bin: options.bin, name, config, redis: redis?.port }));
    await replicas[at].start();
  }
  return replicas;
}

/** The time that processes have run so far, in microseconds. */
function spent(replicas) {
  let nanos = 0n;
  for (const { child } of replicas) {
    for (const thread of readdirSync(`/proc/${child.pid}/task`)) {
      nanos += BigInt(readFileSync(`/proc/${child.pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
    }
  }
  return Number(nanos / 1000n);
}

const meta = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'ratio', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const called = (id, more) => {
  const params = { name: 'echo_echo', arguments: { message: 'hello' }, ...more };
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
};

/** Opens sessions, and returns what sends the next call of the next of them to the next replica. */
async function inSessions(replicas) {
  const ids = [];
  for (let at = 0; at < AT_ONCE; at++) {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'ratio', version: '1' } };
    const port = replicas[at % REPLICAS].port;
    const opened = await post(port, {}, JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }));
    const id = opened.headers['mcp-session-id'];
    const headers = { 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' };
    await post(port, headers, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }));
    ids.push(headers);
  }
  return (number) => post(replicas[number % REPLICAS].port, ids[Math.trunc(number / REPLICAS) % AT_ONCE], called(number));
}

const alone = (replicas) => (number) => {
  const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'echo_echo' };
  return post(replicas[number % REPLICAS].port, headers, called(number, { _meta: meta }));
};

/** The time of one call, in microseconds, over all calls of a round. */
async function round(replicas, call) {
  const calls = Number(options.calls);
  const before = spent(replicas);
  let next = 0;
  const work = async () => {
    for (let number = next++; number < calls; number = next++) {
      const { status, text } = await call(number);
      if (status !== 200 || !text.includes('hello')) fail(`${status} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return (spent(replicas) - before) / calls;
}

const [shared, separate] = [await started(true), await started(false)];
let failed = 0;
for (const [kind, made] of [['2026-07-28', alone], ['sessions', inSessions]]) {
  const sides = [];
  for (const replicas of [shared, separate]) sides.push({ replicas, call: await made(replicas), least: Infinity });
  for (const side of sides) await round(side.replicas, side.call);
  for (let at = 0; at < Number(options.rounds); at++) {
    for (const side of at % 2 ? sides : sides.toReversed()) side.least = Math.min(side.least, await round(side.replicas, side.call));
  }
  const [on, off] = sides.map(({ least }) => least);
  const ratio = off / on;
  const ok = ratio >= MUST[kind];
  if (!ok) failed++;
  console.log(`${ok ? 'ok  ' : 'FAIL'}  ${kind}: ${on.toFixed(1)} us on Redis, ${off.toFixed(1)} us alone: ${ratio.toFixed(2)} (must ${MUST[kind]})`);
}
stopAll();
process.exit(failed === 0 ? 0 : 1);
