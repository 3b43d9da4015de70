// Replicas of wharf, Redis, and nginx or HAProxy, each a process on a loopback port of its own, for the programs in this folder. The configs
// of the proxies are those of docs/replicas.md, with other addresses.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pass } from 'node:timers/promises';

const KEY = '07f3'.repeat(16);
const DOCS = new URL('../../docs/replicas.md', import.meta.url);

export const folder = mkdtempSync(join(tmpdir(), 'wharf-replicas-'));
const children = new Set();
const began = Date.now();

export const say = (text) => console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(6)} s  ${text}`);

/** Ends everything that was started here. */
export function stopAll() {
  // A master of nginx that is killed leaves its workers behind.
  for (const child of children) child.kill(child.hasWorkers ? 'SIGTERM' : 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}

export function fail(why) {
  console.error(`failed: ${why}`);
  stopAll();
  process.exit(1);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => fail(`ended by ${signal}`));

/** Waits until something is so. */
export async function until(what, test, ms = 30_000) {
  const end = Date.now() + ms;
  while (!(await test())) {
    if (Date.now() > end) fail(`not within ${ms} ms: ${what}`);
    await pass(20);
  }
}

export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function started(child, name) {
  children.add(child);
  child.log = '';
  for (const output of [child.stdout, child.stderr]) output?.on('data', (text) => (child.log += text));
  child.on('error', (error) => fail(`${name}: ${error.message}`));
  child.ended = new Promise((resolve) => {
    child.on('exit', (code) => {
      children.delete(child);
      resolve(code);
    });
  });
  return child;
}

/** Starts a program of Debian, unpacked at `unpacked` or installed. */
function debian(unpacked, path, args) {
  const own = join(unpacked, path);
  const libraries = join(unpacked, 'usr/lib', `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`);
  const env = existsSync(own) ? { ...process.env, LD_LIBRARY_PATH: libraries } : process.env;
  const program = existsSync(own) ? own : path.split('/').at(-1);
  return started(spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] }), program);
}

/** A Redis server that keeps nothing when it ends. */
export class Redis {
  static async start(unpacked) {
    const redis = new Redis();
    Object.assign(redis, { unpacked, port: await freePort() });
    await redis.again();
    return redis;
  }

  /** Starts it again, empty. */
  async again() {
    const where = ['--port', `${this.port}`, '--bind', '127.0.0.1', '--dir', folder];
    this.child = debian(this.unpacked, 'usr/bin/redis-server', [...where, '--save', '', '--appendonly', 'no']);
    await until('redis-server is ready', () => this.child.log.includes('Ready to accept connections'));
  }

  async kill() {
    this.child.kill('SIGKILL');
    await this.child.ended;
  }

  /** Stops it in order: it tells its clients that it ends. */
  async stop() {
    this.child.kill('SIGTERM');
    await this.child.ended;
  }

  hang() {
    this.child.kill('SIGSTOP');
  }

  goOn() {
    this.child.kill('SIGCONT');
  }

  /** Sends one command of a single line, and waits for the answer. */
  async command(words) {
    const socket = connect(this.port, '127.0.0.1');
    await new Promise((resolve, reject) => {
      socket.once('data', resolve).once('error', reject);
      socket.write(`${words}\r\n`);
    });
    socket.destroy();
  }
}

/** A way to Redis for one replica alone. It can be cut: connections stay open, and nothing passes. */
export async function wireTo(port) {
  const sockets = new Set();
  let cut = false;
  const server = createServer((socket) => {
    const other = connect(port, '127.0.0.1');
    for (const [from, to] of [[socket, other], [other, socket]]) {
      sockets.add(from);
      from.on('data', (bytes) => to.write(bytes));
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      if (cut) from.pause();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  const set = (is) => () => {
    cut = is;
    for (const socket of sockets) cut ? socket.pause() : socket.resume();
  };
  return { port: server.address().port, cut: set(true), mend: set(false) };
}

/** One replica, with a folder and a port of its own. */
export class Replica {
  /**
   * `config`: its config, without `[protocol]` and `[cluster]`. `redis`: the port of Redis, if there is one. `dropped`: the folder of plugins
   * that it watches, if that is not its own.
   */
  static async prepare({ bin, name, config, redis, dropped = 'dropped' }) {
    const replica = new Replica();
    const own = join(folder, name);
    mkdirSync(join(own, 'dropped'), { recursive: true, mode: 0o700 });
    Object.assign(replica, { bin, name, own, file: join(own, 'wharf.toml'), port: await freePort() });
    const cluster = redis === undefined ? '' : `[cluster]\nredis = "redis://127.0.0.1:${redis}"\nname = "${name}"\n`;
    const shared = `[protocol]\nstate_keys = [{ env = "WHARF_STATE_KEY" }]\n${cluster}`;
    writeFileSync(replica.file, `plugin_dir = ${JSON.stringify(dropped)}\n${config}\n${shared}`, { mode: 0o600 });
    return replica;
  }

  get url() {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  async start() {
    const args = ['serve', '-c', this.file, '--listen', `127.0.0.1:${this.port}`];
    const env = { ...process.env, WHARF_STATE_KEY: KEY, XDG_STATE_HOME: join(this.own, 'state') };
    this.child = started(spawn(this.bin, args, { env, stdio: ['ignore', 'ignore', 'pipe'] }), 'wharf');
    await until(`${this.name} is ready`, async () => {
      if (this.child.exitCode !== null) fail(`${this.name} ended: ${this.child.log.slice(-2000)}`);
      const ready = await fetch(`http://127.0.0.1:${this.port}/readyz`).catch(() => undefined);
      await ready?.text();
      return ready?.status === 200;
    });
  }

  /** Ends it, and waits until it has ended. */
  async end(signal) {
    this.child.kill(signal);
    return await this.child.ended;
  }
}

/** The config of a proxy, of docs/replicas.md, for these replicas. */
function ofDocs(heading, port, replicas) {
  const block = readFileSync(DOCS, 'utf8').split(`\n## ${heading}\n`)[1]?.match(/```\w*\n([\s\S]*?)```/)?.[1];
  if (!block) fail(`docs/replicas.md has no config under "${heading}"`);
  let config = block;
  const replace = (pattern, by) => {
    if (!pattern.test(config)) fail(`the config of ${heading} in docs/replicas.md has nothing like ${pattern}`);
    config = config.replace(pattern, by);
  };
  if (heading === 'nginx') {
    replace(/listen 443 ssl;/, `listen 127.0.0.1:${port};`);
    replace(/( *server )10\.0\.0\.1:7300(.*\n)(?: *server 10\.0\.0\..*\n)*/, (_, before, after) => {
      return replicas.map((replica) => `${before}127.0.0.1:${replica.port}${after}`).join('');
    });
  } else {
    replace(/bind :443 .*/, `bind 127.0.0.1:${port}`);
    replace(/(?: *server \w+ 10\.0\.0\.\d:7300\n?)+/, replicas.map(({ name, port }) => `    server ${name} 127.0.0.1:${port}\n`).join(''));
  }
  return config;
}

/** Starts nginx or HAProxy in front of replicas, and returns the address of MCP. */
export async function startProxy(unpacked, kind, replicas) {
  const port = await freePort();
  const config = join(folder, kind);
  let child;
  if (kind === 'nginx') {
    mkdirSync(join(folder, 'nginx-temp'));
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((of) => `${of}_temp_path ${folder}/nginx-temp;`).join(' ');
    const own = `daemon off; pid ${folder}/nginx.pid; error_log stderr warn; events { worker_connections 16384; }\n`;
    writeFileSync(config, `${own}http { access_log off; ${paths}\n${ofDocs(kind, port, replicas)}}\n`);
    child = debian(unpacked, 'usr/sbin/nginx', ['-e', 'stderr', '-p', folder, '-c', config]);
    child.hasWorkers = true;
  } else {
    writeFileSync(config, ofDocs('HAProxy', port, replicas));
    child = debian(unpacked, 'usr/sbin/haproxy', ['-f', config]);
  }
  const url = `http://127.0.0.1:${port}/mcp`;
  await until(`${kind} answers`, async () => {
    if (child.exitCode !== null) fail(`${kind} ended: ${child.log.slice(-2000)}`);
    const answer = await fetch(url).catch(() => undefined);
    await answer?.text();
    return (answer?.status ?? 500) < 500;
  });
  return url;
}
