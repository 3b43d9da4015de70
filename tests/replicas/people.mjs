// Many people at once: each has a session and one stream for changes, at three replicas behind nginx or HAProxy. Some of them call, while a plugin
// is replaced and everybody hears of it.
//
//   node people.mjs --bin WHARF --plugins DIR --debian DIR [--people N] [--callers N] [--seconds N] [--proxy nginx|haproxy]
//
// Prints the memory and connections of each replica, and how long calls took; exit code 1 if a stream, a call or a change was lost.

import { copyFileSync, readFileSync, readdirSync, renameSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join, resolve } from 'node:path';
import { setTimeout as pass } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Redis, Replica, fail, say, startProxy, stopAll, until } from './place.mjs';

const options = parseArgs({
  options: {
    bin: { type: 'string' },
    plugins: { type: 'string' },
    debian: { type: 'string' },
    people: { type: 'string', default: '2000' },
    callers: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '30' },
    proxy: { type: 'string', default: 'nginx' },
  },
}).values;

const REPLICAS = 3;
const PEOPLE = Number(options.people);
const OPENED_AT_ONCE = 20;
/** How long a caller waits between two calls. */
const BETWEEN_MS = 500;
const CONTENT = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const agent = new Agent({ keepAlive: true });
let lost = 0;

/** Sends a request of one person, whose address is in the header of the proxy in front. */
function send(url, person, method, headers, body) {
  const own = { 'x-forwarded-for': person.address, ...person.session, ...headers };
  return new Promise((done, failed) => {
    const sent = request(url, { method, agent: method === 'GET' ? false : agent, headers: own }, done);
    sent.on('error', failed).end(body);
  });
}

async function textOf(response) {
  let text = '';
  for await (const part of response.setEncoding('utf8')) text += part;
  return text;
}

async function post(url, person, message) {
  const response = await send(url, person, 'POST', CONTENT, JSON.stringify(message));
  return { status: response.statusCode, headers: response.headers, text: await textOf(response) };
}

async function open(url, person) {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'person', version: '1' } };
  const opened = await post(url, person, { jsonrpc: '2.0', id: 0, method: 'initialize', params });
  if (opened.status !== 200) fail(`a session was not opened: ${opened.status} ${opened.text}`);
  person.session = { 'mcp-session-id': opened.headers['mcp-session-id'], 'mcp-protocol-version': '2025-11-25' };
  await post(url, person, { jsonrpc: '2.0', method: 'notifications/initialized' });
  const stream = await send(url, person, 'GET', { accept: 'text/event-stream' });
  if (stream.statusCode !== 200) fail(`a stream was not opened: ${stream.statusCode} ${await textOf(stream)}`);
  person.heard = 0;
  stream.setEncoding('utf8').on('data', (text) => {
    person.heard += text.split('notifications/tools/list_changed').length - 1;
  });
  stream.on('close', () => person.over || lost++);
  person.stream = stream;
}

const status = (pid, key) => Number(new RegExp(`${key}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);

function measured(replicas) {
  return replicas.map(({ name, child }) => {
    const sockets = readdirSync(`/proc/${child.pid}/fd`).length;
    return `${name}: ${Math.round(status(child.pid, 'VmRSS') / 1024)} MiB (most ${Math.round(status(child.pid, 'VmHWM') / 1024)}), ${sockets} files`;
  });
}

const redis = await Redis.start(options.debian);
const replicas = [];
for (let at = 0; at < REPLICAS; at++) {
  const config =
    `[http]\ntrusted_proxies = ["127.0.0.1"]\nsessions = ${2 * PEOPLE}\nlistens = ${2 * PEOPLE}\n` +
    `[plugins.echo]\npath = ${JSON.stringify(resolve(options.plugins, 'echo.wasm'))}\n`;
  replicas.push(await Replica.prepare({ bin: options.bin, name: `r${at}`, config, redis: redis.port }));
  await replicas[at].start();
}
const url = await startProxy(options.debian, options.proxy, replicas);
say('without people');
for (const line of measured(replicas)) console.log(`          ${line}`);

const people = Array.from({ length: PEOPLE }, (_, at) => ({ address: `10.9.${at >> 8}.${at & 255}` }));
let next = 0;
const opener = async () => {
  while (next < PEOPLE) await open(url, people[next++]);
};
await Promise.all(Array.from({ length: OPENED_AT_ONCE }, opener));
say(`${PEOPLE} people with a stream each`);
for (const line of measured(replicas)) console.log(`          ${line}`);

const times = [];
let calling = true;
const caller = async (person) => {
  await pass(Math.random() * BETWEEN_MS);
  for (let number = 1; calling; number++) {
    const [from, message] = [performance.now(), `${person.address}-${number}`];
    const params = { name: 'echo_echo', arguments: { message } };
    const answer = await post(url, person, { jsonrpc: '2.0', id: number, method: 'tools/call', params });
    times.push(performance.now() - from);
    if (answer.status !== 200 || !answer.text.includes(message)) lost++;
    await pass(BETWEEN_MS);
  }
};
const callers = people.slice(0, Number(options.callers)).map(caller);
const slowest = (part) => times.toSorted((a, b) => a - b)[Math.floor(times.length * part)].toFixed(1);
const told = (what) => {
  say(`${what}: ${times.length} calls, half within ${slowest(0.5)} ms, 99 % within ${slowest(0.99)} ms, the slowest ${slowest(0.9999)} ms`);
  times.length = 0;
};
await pass(Number(options.seconds) * 500);
told('calls while nothing changes');
const began = performance.now();
for (const { own } of replicas) {
  copyFileSync(join(options.plugins, 'hello.wasm'), join(own, '.hello'));
  renameSync(join(own, '.hello'), join(own, 'dropped', 'hello.wasm'));
}
await until('everybody has heard of the new plugin', () => people.every(({ heard }) => heard > 0), 60_000);
say(`everybody has heard of a new plugin after ${Math.round(performance.now() - began)} ms`);
await pass(Number(options.seconds) * 500);
told('calls while it is loaded and told');
calling = false;
await Promise.all(callers);
for (const line of measured(replicas)) console.log(`          ${line}`);
const twice = people.filter(({ heard }) => heard > 1).length;
console.log(`${lost} streams or answers lost, ${twice} people heard of the change more than once`);
for (const person of people) {
  person.over = true;
  person.stream.destroy();
}
stopAll();
process.exit(lost === 0 && twice === 0 ? 0 : 1);
