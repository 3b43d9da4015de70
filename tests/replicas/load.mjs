// Loads three replicas behind nginx or HAProxy, in both eras, while replicas and Redis are stopped, killed and started again. Everything that
// is answered has to be right; what was under way at a replica that is killed may be lost, and nothing else.
//
//   node load.mjs --bin WHARF --plugins DIR --debian DIR [--seconds N] [--proxy nginx|haproxy]
//
// One line for each count; exit code 1 if something was lost or wrong that must not be. `--debian`: where Debian's packages are unpacked.

import { copyFileSync, renameSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as pass } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Redis, Replica, say, startProxy, stopAll, until, wireTo } from './place.mjs';

const options = parseArgs({
  options: {
    bin: { type: 'string' },
    plugins: { type: 'string' },
    debian: { type: 'string' },
    seconds: { type: 'string', default: '60' },
    proxy: { type: 'string', default: 'nginx' },
  },
}).values;

const REPLICAS = 3;
const SESSIONS = 6;
const WORKERS = 6;
/** Plugins with a limit of so many calls an hour, each used up once. */
const LIMITED = 16;
const LIMIT = 40;
/** How long after a disturbance things have to be as before. */
const SETTLED_MS = 5000;
const MODERN = '2026-07-28';
const CAPABILITIES = { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } };

const began = Date.now();
const counts = new Map();
const wrong = [];
/** What happened to the servers: from when until everything has to be as before, whether it is about Redis, and how much it has cost. */
const disturbances = [];

const count = (name) => counts.set(name, (counts.get(name) ?? 0) + 1);
const plugin = (id, more) => `[plugins.${id}]\npath = ${JSON.stringify(resolve(options.plugins, 'badlist.wasm'))}\nconfig = { mode = "given", ${more}\n`;

const redis = await Redis.start(options.debian);
/** What stands between replica 0 and Redis. */
const wire = await wireTo(redis.port);
const replicas = [];
for (let at = 0; at < REPLICAS; at++) {
  const asks = (id) => `[plugins.${id}.grants]\nask = ["elicitation"]\n`;
  const limits = Array.from({ length: LIMITED }, (_, at) => plugin(`q${at}`, `alone = true }\nlimits = { calls_per_hour = ${LIMIT} }`));
  const config =
    '[http]\ntrusted_proxies = ["127.0.0.1"]\ndrain_delay_s = 1\n[limits]\ntotal_tasks = 100000\n' +
    plugin('g', 'task = "optional" }\nlimits = { timeout_ms = 30000 }') + asks('g') +
    plugin('p', 'alone = true }') +
    plugin('c', 'alone = true }\nconfirm = "all"') +
    limits.join('');
  replicas.push(await Replica.prepare({ bin: options.bin, name: `r${at}`, config, redis: at === 0 ? wire.port : redis.port }));
  await replicas[at].start();
}

/** The events of a stream, as they come: the values of `id` and `data`. */
async function* events(response) {
  let rest = '';
  for await (const bytes of response.body.pipeThrough(new TextDecoderStream())) {
    rest += bytes;
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      const lines = rest.slice(0, end).split('\n');
      rest = rest.slice(end + 2);
      const field = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      yield { id: field('id'), data: field('data') };
    }
  }
}

/** The messages of a response, as they come. */
async function* messages(response) {
  if (response.headers.get('content-type')?.includes('text/event-stream') !== true) {
    const text = await response.text();
    if (text) yield JSON.parse(text);
    return;
  }
  for await (const { data } of events(response)) {
    if (data) yield JSON.parse(data);
  }
}

const CONTENT = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/**
 * Does something, and counts it as right, lost or wrong. `shared`: whether it needs Redis. While a replica is killed, what is under way there
 * may be lost, once for each that works; while Redis is, what needs it.
 */
async function attempt(name, shared, work) {
  const from = Date.now();
  try {
    await work();
    count(`${name}: right`);
  } catch (error) {
    // What happened while it was under way, or shortly before it.
    const causes = disturbances.filter((one) => from < one.until);
    const cause = causes.find(({ redis, lost }) => (redis ? shared : lost < SESSIONS + WORKERS));
    if (cause) cause.lost++;
    count(`${name}: ${cause ? `lost (${cause.what})` : 'WRONG'}`);
    const after = `${((Date.now() - began) / 1000).toFixed(1)} s, after: ${disturbances.at(-1)?.what ?? 'nothing'}`;
    if (!cause) wrong.push(`${name}: ${error.message} (${after})`);
    await pass(50);
  }
}

function expect(is, why) {
  if (!is) throw new Error(why);
}

async function modern(url, method, params) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': { name: 'load', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': CAPABILITIES,
  };
  const headers = { ...CONTENT, 'mcp-protocol-version': MODERN, 'mcp-method': method };
  const name = params.name ?? params.taskId;
  if (name !== undefined) headers['mcp-name'] = name;
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } });
  const response = await fetch(url, { method: 'POST', headers, body });
  for await (const message of messages(response)) {
    if (message.id === 1) {
      if (message.error) throw new Error(`${response.status} ${JSON.stringify(message.error)}`);
      return message.result;
    }
  }
  throw new Error(`${response.status} without an answer`);
}

/** One client of 2026-07-28: plain calls, tasks with questions, and approvals, each with a text of its own. */
async function modernWorker(url, number, ends) {
  for (let round = 0; Date.now() < ends; round++) {
    const text = `m${number}-${round}`;
    await attempt('2026-07-28 call', false, async () => {
      const result = await modern(url, 'tools/call', { name: 'p_t', arguments: { text } });
      expect(result.content[0].text === text, `another answer: ${JSON.stringify(result)}`);
    });
    if (round % 4 === 0) {
      await attempt('2026-07-28 task with a question', true, async () => {
        const task = await modern(url, 'tools/call', { name: 'g_t', arguments: { ask: [['name']], text } });
        await taskIs(url, task.taskId, 'input_required');
        const answer = { name: { action: 'accept', content: { v: 'Ada' } } };
        await modern(url, 'tasks/update', { taskId: task.taskId, inputResponses: answer });
        await taskEnds(url, task.taskId, text);
      });
      await attempt('2026-07-28 approval', true, async () => {
        const call = { name: 'c_t', arguments: { text } };
        const asked = await modern(url, 'tools/call', call);
        expect(asked.resultType === 'input_required', `it was not asked: ${JSON.stringify(asked)}`);
        const answered = {
          ...call,
          requestState: asked.requestState,
          inputResponses: { 'wharf.approve': { action: 'accept', content: {} } },
        };
        const done = await modern(url, 'tools/call', answered);
        expect(done.content?.[0].text === text, `it was asked again: ${JSON.stringify(done)}`);
        const again = await modern(url, 'tools/call', answered).catch((error) => error);
        expect(again instanceof Error || again.resultType === 'input_required', 'an approval was good twice');
        if (!(again instanceof Error) && again.content) wrong.push('an approval was good twice');
      });
    }
  }
}

async function taskIs(url, taskId, status) {
  const end = Date.now() + 20_000;
  for (;;) {
    const task = await modern(url, 'tasks/get', { taskId });
    if (task.status === status) return task;
    expect(!['failed', 'cancelled'].includes(task.status), `the task has ${task.status}: ${JSON.stringify(task)}`);
    expect(Date.now() < end, `the task is not ${status}: ${JSON.stringify(task)}`);
    await pass(20);
  }
}

async function taskEnds(url, taskId, text) {
  const task = await taskIs(url, taskId, 'completed');
  expect(task.result.content[0].text === text, `another result: ${JSON.stringify(task)}`);
}

/** A client with a session: calls, and questions that it answers at whichever replica. */
class Session {
  constructor(url) {
    this.url = url;
    this.next = 1;
    this.changes = 0;
    this.updates = 0;
  }

  async open() {
    const params = { protocolVersion: '2025-11-25', capabilities: { elicitation: {} }, clientInfo: { name: 'load', version: '1' } };
    const response = await this.post({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
    this.id = response.headers.get('mcp-session-id');
    await response.text();
    await this.post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    this.resource = `note:///${this.id.slice(-12)}`;
    const subscribed = await this.post({ jsonrpc: '2.0', id: -1, method: 'resources/subscribe', params: { uri: this.resource } });
    expect((await subscribed.text()).includes('result'), 'it cannot subscribe');
  }

  headers() {
    return this.id ? { 'mcp-session-id': this.id, 'mcp-protocol-version': '2025-11-25' } : {};
  }

  async post(message) {
    const response = await fetch(this.url, { method: 'POST', headers: { ...CONTENT, ...this.headers() }, body: JSON.stringify(message) });
    if (response.status === 404) count('sessions: 404');
    return response;
  }

  async call(args) {
    const id = this.next++;
    const response = await this.post({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'g_t', arguments: args } });
    for await (const message of messages(response)) {
      if (message.method === 'elicitation/create') {
        const answer = { jsonrpc: '2.0', id: message.id, result: { action: 'accept', content: { v: 'Ada' } } };
        const taken = await this.post(answer);
        await taken.text();
        expect(taken.status === 202, `the answer was not taken: ${taken.status}`);
      } else if (message.id === id) {
        if (message.error) throw new Error(JSON.stringify(message.error));
        return message.result.content[0].text;
      }
    }
    throw new Error(`${response.status} without an answer`);
  }

  /** Reads the stream for changes, and opens it again when it ends. */
  async listen(stop) {
    let last;
    while (!stop.aborted) {
      try {
        const headers = { accept: 'text/event-stream', ...this.headers(), ...(last ? { 'last-event-id': last } : {}) };
        const response = await fetch(this.url, { headers, signal: stop });
        if (response.status === 404) count('streams: 404');
        if (response.status !== 200) {
          await response.text();
          await pass(200);
          continue;
        }
        for await (const { id, data } of events(response)) {
          last = id ?? last;
          const message = data ? JSON.parse(data) : {};
          if (message.method === 'notifications/tools/list_changed') this.changes++;
          if (message.method === 'notifications/resources/updated' && message.params.uri === this.resource) this.updates++;
        }
      } catch {
        await pass(200);
      }
    }
  }
}

async function sessionWorker(session, number, ends) {
  for (let round = 0; Date.now() < ends; round++) {
    const text = `s${number}-${round}`;
    await attempt('session call', false, async () => {
      const got = await session.call({ text });
      expect(got === text, `another answer: ${got}`);
    });
    if (round % 4 === 0) {
      // The answer goes to another replica than the question, through Redis.
      await attempt('session question', true, async () => {
        const got = await session.call({ ask: [['name']], text });
        expect(got === text, `another answer: ${got}`);
      });
      // The change happens at another replica than the stream.
      await attempt('session subscription', true, async () => {
        const before = session.updates;
        await session.call({ updated: session.resource, text });
        const end = Date.now() + SETTLED_MS;
        while (session.updates === before) {
          expect(Date.now() < end, 'the stream did not hear of a changed resource');
          await pass(10);
        }
      });
    }
  }
}

async function disturb(what, isRedis, work) {
  say(what);
  const disturbance = { what, until: Infinity, redis: isRedis, lost: 0 };
  disturbances.push(disturbance);
  await work();
  disturbance.until = Date.now() + SETTLED_MS;
}

/** Puts a plugin into the folders of all replicas, and waits until each stream has heard of it, once. */
async function reload(sessions, number) {
  const before = sessions.map(({ changes }) => changes);
  for (const { own } of replicas) {
    copyFileSync(join(options.plugins, 'hello.wasm'), join(own, 'dropped', `.hello${number}`));
  }
  for (const { own } of replicas) renameSync(join(own, 'dropped', `.hello${number}`), join(own, 'dropped', `hello${number}.wasm`));
  await until('every stream has heard of the new plugin', () => sessions.every(({ changes }, at) => changes > before[at]), 15_000);
  await pass(1000);
  const more = sessions.filter(({ changes }, at) => changes !== before[at] + 1).length;
  if (more > 0) wrong.push(`${more} of ${sessions.length} streams heard of one change more than once`);
  count('list_changed: every stream, once');
}

const url = await startProxy(options.debian, options.proxy, replicas);
const seconds = Number(options.seconds);
const ends = Date.now() + seconds * 1000;
const sessions = Array.from({ length: SESSIONS }, () => new Session(url));
await Promise.all(sessions.map((session) => session.open()));
const listening = new AbortController();
const streams = sessions.map((session) => session.listen(listening.signal));
const workers = [
  ...sessions.map((session, number) => sessionWorker(session, number, ends)),
  ...Array.from({ length: WORKERS }, (_, number) => modernWorker(url, number, ends)),
];

let limited = 0;
/** Uses up a limit. It counts over all replicas; without Redis, each of them allows its share more. */
async function limit(most = LIMIT) {
  if (limited === LIMITED) return;
  const name = `q${limited++}_t`;
  let passed = 0;
  for (let call = 0; call < 1.5 * LIMIT; call++) {
    const done = await modern(url, 'tools/call', { name, arguments: { text: 'q' } }).catch(() => undefined);
    if (done?.content?.[0].text === 'q') passed++;
  }
  if (passed < LIMIT || passed > most) wrong.push(`a limit of ${LIMIT} calls let ${passed} pass after: ${disturbances.at(-1)?.what ?? 'nothing'}`);
  count(`limit of ${LIMIT} calls: ${passed} passed`);
}

// Before anything is disturbed: a limit counts over all replicas, and everybody hears of a change once.
await limit();
await reload(sessions, 0);

const steps = [
  () => disturb('replica 1 is killed', false, () => replicas[1].end('SIGKILL')),
  () => disturb('replica 1 starts again', false, () => replicas[1].start()),
  () => disturb('replica 2 is stopped and started', false, async () => {
    await replicas[2].end('SIGTERM');
    await replicas[2].start();
  }),
  () => disturb('Redis hangs for 5 s', true, async () => {
    redis.hang();
    await pass(5000);
    redis.goOn();
  }),
  () => disturb('replica 0 is cut off from Redis for 20 s', true, async () => {
    wire.cut();
    await limit(LIMIT + Math.ceil(LIMIT / REPLICAS));
    await pass(20_000);
    wire.mend();
  }),
  () => disturb('Redis is killed, and starts again, empty, after 5 s', true, async () => {
    await redis.kill();
    await pass(5000);
    await redis.again();
  }),
  () => disturb('replica 0 is killed', false, () => replicas[0].end('SIGKILL')),
  () => disturb('replica 0 starts again', false, () => replicas[0].start()),
  () => disturb('Redis is stopped and started', true, async () => {
    await redis.stop();
    await redis.again();
  }),
  () => disturb('Redis is flushed', true, () => redis.command('FLUSHALL')),
];
for (let at = 0; Date.now() + 30_000 < ends; at++) {
  await steps[at % steps.length]();
  await pass(SETTLED_MS);
  // A while in which nothing may be lost.
  await Promise.all([limit(), pass(3000)]);
  if (at % 3 === 2 && Date.now() + 20_000 < ends) await reload(sessions, at + 1);
}
await Promise.all(workers);
listening.abort();
await Promise.all(streams);
for (const [name, number] of [...counts].sort()) console.log(`${String(number).padStart(8)}  ${name}`);
for (const name of ['sessions: 404', 'streams: 404']) {
  if (counts.has(name)) wrong.push(`${name}: ${counts.get(name)}`);
}
const kinds = new Map();
for (const why of wrong) {
  const kind = why.replace(/[0-9a-f-]{6,}|\d+/g, '#');
  kinds.set(kind, [...(kinds.get(kind) ?? []), why]);
}
for (const all of [...kinds.values()].slice(0, 30)) console.log(`WRONG  ${all.length} times, the first and the last: ${all[0]} … ${all.at(-1)}`);
if (wrong.length > 0) {
  for (const { name, child } of replicas) {
    const warned = child.log.split('\n').filter((line) => / (WARN|ERROR) /.test(line));
    for (const line of warned.slice(-10)) console.log(`      | ${name} ${line.slice(0, 300)}`);
  }
}
stopAll();
console.log(wrong.length === 0 ? 'nothing was wrong' : `${wrong.length} wrong`);
process.exit(wrong.length === 0 ? 0 : 1);
