// Loads three replicas behind nginx or HAProxy, in both eras, while replicas and Redis are stopped, killed and started again. Everything that
// is answered has to be right; what was under way at a replica that is killed may be lost, and nothing else.
//
//   node load.mjs --bin WHARF --plugins DIR --debian DIR [--seconds N] [--proxy nginx|haproxy]
//
// One line for each count; exit code 1 if something was lost or wrong that must not be. `--debian`: where Debian's packages are unpacked.

import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pass } from 'node:timers/promises';
import { parseArgs } from 'node:util';

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
/** How long after a disturbance things have to be as before. */
const SETTLED_MS = 5000;
const KEY = '07'.repeat(32);
const MODERN = '2026-07-28';
const CAPABILITIES = { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } };

const folder = mkdtempSync(join(tmpdir(), 'wharf-replicas-'));
const began = Date.now();
const counts = new Map();
const wrong = [];
/** What happens to the servers, with the time after which everything has to be as before. */
let disturbed = { what: 'nothing', until: 0, redis: false, lost: 0 };

const count = (name) => counts.set(name, (counts.get(name) ?? 0) + 1);
const say = (text) => console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(6)} s  ${text}`);

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts a program of Debian, unpacked or installed. */
function debian(path, args) {
  const unpacked = join(options.debian, path);
  const libraries = join(options.debian, 'usr/lib', `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`);
  const env = existsSync(unpacked) ? { ...process.env, LD_LIBRARY_PATH: libraries } : process.env;
  const program = existsSync(unpacked) ? unpacked : path.split('/').at(-1);
  return started(spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] }), program);
}

function started(child, name) {
  child.log = '';
  for (const output of [child.stdout, child.stderr]) output?.on('data', (text) => (child.log += text));
  child.on('error', (error) => fail(`${name}: ${error.message}`));
  child.ended = new Promise((resolve) => child.on('exit', resolve));
  return child;
}

/** Waits until something is so. */
async function until(what, test, ms = 30_000) {
  const end = Date.now() + ms;
  while (!(await test())) {
    if (Date.now() > end) fail(`not within ${ms} ms: ${what}`);
    await pass(20);
  }
}

function fail(why) {
  console.error(`failed: ${why}`);
  stopAll();
  process.exit(1);
}

const redis = { port: await freePort(), child: undefined };
const startRedis = async () => {
  redis.child = debian('usr/bin/redis-server', [
    ...['--port', `${redis.port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder],
  ]);
  await until('redis-server is ready', () => redis.child.log.includes('Ready to accept connections'));
};

const replicas = [];
async function startReplica(at) {
  const { port, config } = replicas[at];
  const child = started(
    spawn(options.bin, ['serve', '-c', config, '--listen', `127.0.0.1:${port}`], {
      env: { ...process.env, WHARF_STATE_KEY: KEY, XDG_STATE_HOME: join(folder, `state${at}`) },
      stdio: ['ignore', 'ignore', 'pipe'],
    }),
    'wharf',
  );
  replicas[at].child = child;
  await until(`replica ${at} is ready`, async () => {
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    return ready?.status === 200;
  });
}

const plugin = (id, more) => `[plugins.${id}]\npath = ${JSON.stringify(resolve(options.plugins, 'badlist.wasm'))}\nconfig = { mode = "given", ${more}\n`;

async function prepare() {
  await startRedis();
  for (let at = 0; at < REPLICAS; at++) {
    const own = join(folder, `replica${at}`);
    mkdirSync(join(own, 'dropped'), { recursive: true, mode: 0o700 });
    const config = join(own, 'wharf.toml');
    const asks = '[plugins.ID.grants]\nask = ["elicitation"]\n';
    writeFileSync(
      config,
      `plugin_dir = "dropped"\n[http]\ntrusted_proxies = ["127.0.0.1"]\ndrain_delay_s = 1\n` +
        `[protocol]\nstate_keys = [{ env = "WHARF_STATE_KEY" }]\n` +
        `[limits]\ntotal_tasks = 100000\n[cluster]\nredis = "redis://127.0.0.1:${redis.port}"\nname = "r${at}"\n` +
        plugin('g', 'task = "optional", alone = true }\nlimits = { timeout_ms = 30000 }') + asks.replace('ID', 'g') +
        plugin('p', 'alone = true }') +
        plugin('c', 'alone = true }\nconfirm = "all"') +
        plugin('q', 'alone = true }\nlimits = { calls_per_hour = 40 }'),
      { mode: 0o600 },
    );
    replicas.push({ port: await freePort(), config, own });
    await startReplica(at);
  }
}

let proxy;
async function startProxy() {
  const port = await freePort();
  const config = join(folder, options.proxy);
  if (options.proxy === 'nginx') {
    mkdirSync(join(folder, 'nginx-temp'));
    const servers = replicas.map(({ port }) => `server 127.0.0.1:${port} max_fails=0;`).join(' ');
    const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder}/nginx-temp;`).join(' ');
    writeFileSync(
      config,
      `daemon off; pid ${folder}/nginx.pid; error_log stderr warn; events { worker_connections 4096; }\n` +
        `http { access_log off; ${temp} upstream wharf { ${servers} keepalive 64; }\n` +
        `server { listen 127.0.0.1:${port}; location / { proxy_pass http://wharf; proxy_http_version 1.1; proxy_set_header Connection "";\n` +
        `proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_read_timeout 300s;\n` +
        `client_max_body_size 9m; } } }\n`,
    );
    proxy = debian('usr/sbin/nginx', ['-e', 'stderr', '-p', folder, '-c', config]);
  } else {
    const servers = replicas.map(({ port }, at) => `    server r${at} 127.0.0.1:${port}\n`).join('');
    writeFileSync(
      config,
      `defaults\n    mode http\n    timeout connect 1s\n    timeout client 300s\n    timeout server 300s\n` +
        `frontend f\n    bind 127.0.0.1:${port}\n    default_backend wharf\n` +
        `backend wharf\n    balance roundrobin\n    option httpchk GET /readyz\n    option forwardfor\n` +
        `    option redispatch\n    default-server check inter 500ms fall 1 rise 1\n${servers}`,
    );
    proxy = debian('usr/sbin/haproxy', ['-f', config]);
  }
  const url = `http://127.0.0.1:${port}/mcp`;
  await until(`${options.proxy} answers`, async () => ((await fetch(url).catch(() => undefined))?.status ?? 500) < 500);
  return url;
}

function stopAll() {
  for (const child of [proxy, redis.child, ...replicas.map(({ child }) => child)]) child?.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
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
  const [at, from] = [disturbed, Date.now()];
  try {
    await work();
    count(`${name}: right`);
  } catch (error) {
    const during = Date.now() < disturbed.until ? disturbed : at;
    const allowed = from < during.until && (during.redis ? shared : ++during.lost <= SESSIONS + WORKERS);
    count(`${name}: ${allowed ? `lost (${during.what})` : 'WRONG'}`);
    if (!allowed) wrong.push(`${name}: ${error.message} (${((Date.now() - began) / 1000).toFixed(1)} s, after: ${disturbed.what})`);
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
  }

  async open() {
    const params = { protocolVersion: '2025-11-25', capabilities: { elicitation: {} }, clientInfo: { name: 'load', version: '1' } };
    const response = await this.post({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
    this.id = response.headers.get('mcp-session-id');
    await response.text();
    await this.post({ jsonrpc: '2.0', method: 'notifications/initialized' });
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
  async listen(ends) {
    let last;
    while (Date.now() < ends) {
      try {
        const headers = { accept: 'text/event-stream', ...this.headers(), ...(last ? { 'last-event-id': last } : {}) };
        const response = await fetch(this.url, { headers, signal: AbortSignal.timeout(Math.max(1, ends - Date.now())) });
        if (response.status === 404) count('streams: 404');
        if (response.status !== 200) {
          await response.text();
          await pass(200);
          continue;
        }
        for await (const { id, data } of events(response)) {
          last = id ?? last;
          if (data && JSON.parse(data).method === 'notifications/tools/list_changed') this.changes++;
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
    }
  }
}

async function disturb(what, isRedis, work) {
  say(what);
  disturbed = { what, until: Infinity, redis: isRedis, lost: 0 };
  await work();
  disturbed.until = Date.now() + SETTLED_MS;
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

await prepare();
const url = await startProxy();
const seconds = Number(options.seconds);
const ends = Date.now() + seconds * 1000;
const sessions = Array.from({ length: SESSIONS }, () => new Session(url));
await Promise.all(sessions.map((session) => session.open()));
const workers = [
  ...sessions.map((session, number) => sessionWorker(session, number, ends)),
  ...sessions.map((session) => session.listen(ends)),
  ...Array.from({ length: WORKERS }, (_, number) => modernWorker(url, number, ends)),
];

// Before anything is disturbed: a limit counts over all replicas, and everybody hears of a change once.
let passed = 0;
for (let call = 0; call < 60; call++) {
  const done = await modern(url, 'tools/call', { name: 'q_t', arguments: { text: 'q' } }).catch(() => undefined);
  if (done?.content?.[0].text === 'q') passed++;
}
if (passed !== 40) wrong.push(`a limit of 40 calls let ${passed} pass`);
count(`limit of 40 calls: ${passed} passed`);
await reload(sessions, 0);

const kill = (at, signal) => async () => {
  replicas[at].child.kill(signal);
  await replicas[at].child.ended;
};
const steps = [
  () => disturb('replica 1 is killed', false, kill(1, 'SIGKILL')),
  () => disturb('replica 1 starts again', false, () => startReplica(1)),
  () => disturb('replica 2 is stopped and started', false, async () => {
    await kill(2, 'SIGTERM')();
    await startReplica(2);
  }),
  () => disturb('Redis hangs for 5 s', true, async () => {
    redis.child.kill('SIGSTOP');
    await pass(5000);
    redis.child.kill('SIGCONT');
  }),
  () => disturb('Redis is killed, and starts again, empty, after 5 s', true, async () => {
    redis.child.kill('SIGKILL');
    await redis.child.ended;
    await pass(5000);
    await startRedis();
  }),
  () => disturb('replica 0 is killed', false, kill(0, 'SIGKILL')),
  () => disturb('replica 0 starts again', false, () => startReplica(0)),
];
for (let at = 0; Date.now() + 15_000 < ends; at++) {
  await steps[at % steps.length]();
  // Settled, and then a while in which nothing may be lost.
  await pass(SETTLED_MS + 3000);
  if (at % steps.length === steps.length - 1 && Date.now() + 20_000 < ends) await reload(sessions, at + 1);
}
await Promise.all(workers);
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
stopAll();
console.log(wrong.length === 0 ? 'nothing was wrong' : `${wrong.length} wrong`);
process.exit(wrong.length === 0 ? 0 : 1);
