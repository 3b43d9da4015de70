// Official clients behind nginx or HAProxy, in front of three replicas, while replicas and Redis are stopped, killed and started again. Each
// client goes on with the session that it has opened, and loses only what was under way.
//
//   node clients.mjs --bin WHARF --plugins DIR --debian DIR [--proxy nginx|haproxy] [--brief]
//
// One line for each client; exit code 1 if one of them needed its person. `--debian`: where Debian's packages are unpacked.

import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, resolve } from 'node:path';
import { setTimeout as pass } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { CLIENTS } from '../clients/clients.mjs';
import { commandOf, versionOf } from '../clients/environments.mjs';
import { prepare, surroundings } from '../clients/place.mjs';
import { run } from '../conformance/clients/processes.mjs';
import { Redis, Replica, folder, say, startProxy, stopAll, until } from './place.mjs';

const options = parseArgs({
  options: {
    bin: { type: 'string' },
    plugins: { type: 'string' },
    debian: { type: 'string' },
    proxy: { type: 'string', default: 'nginx' },
    brief: { type: 'boolean', default: false },
  },
}).values;

const REPLICAS = 3;
const RUN_MS = 300_000;
/** How long after a disturbance nothing may be lost any more. */
const SETTLED_MS = 5000;
const env = surroundings(folder);

/**
 * The official clients, by the program that drives each. `handshakes`: how often each initializes. `rests`: it ends itself if a request fails
 * by a status, as one at a killed replica does, so it rests at that moment.
 */
const CASES = [
  { program: 'sdk_v1.mjs', package: '@modelcontextprotocol/sdk', handshakes: 1 },
  { program: 'sdk_v2.mjs', package: '@modelcontextprotocol/client', handshake: true, handshakes: 1 },
  { program: 'sdk_v2.mjs', package: '@modelcontextprotocol/client', handshake: false, handshakes: 0 },
  { program: 'mcp_v1.py', environment: 'mcp-1.26', handshakes: 1, rests: true },
  { program: 'mcp_v2.py', environment: 'mcp', handshake: true, handshakes: 1 },
  { program: 'mcp_v2.py', environment: 'mcp', handshake: false, handshakes: 0 },
];

const clientOf = (one) =>
  CLIENTS.find(({ program, package: name, environment }) => {
    return program === one.program && (one.environment ? environment === one.environment : name === one.package);
  });

const redis = await Redis.start(options.debian);
const replicas = [];
/** The folder of plugins that all replicas watch. */
const dropped = join(folder, 'dropped');
mkdirSync(dropped, { mode: 0o700 });
for (let at = 0; at < REPLICAS; at++) {
  const plugin = (id, file) => `[plugins.${id}]\npath = ${JSON.stringify(resolve(options.plugins, file))}\n`;
  const config =
    `[http]\ntrusted_proxies = ["127.0.0.1"]\ndrain_delay_s = 2\naccess_log = "access.jsonl"\n` +
    `${plugin('echo', 'echo.wasm')}${plugin('g', 'badlist.wasm')}config = { mode = "given", alone = true }\n` +
    `[plugins.g.grants]\nask = ["elicitation"]\n`;
  replicas.push(await Replica.prepare({ bin: options.bin, name: `r${at}`, config, redis: redis.port, dropped }));
  await replicas[at].start();
}
const url = await startProxy(options.debian, options.proxy, replicas);

let state = 'on';
/** How often each client has asked whether to go on, which it does before each call. */
const asked = CASES.map(() => 0);
let resting = false;
const control = createServer((request, response) => {
  const number = Number(request.url.slice(1));
  asked[number]++;
  response.end(state === 'on' && resting && CASES[number].rests ? 'rest' : state);
});
await new Promise((resolve) => control.listen(0, '127.0.0.1', resolve));

/** Kills a replica while the clients that it would end rest. */
async function kill(replica) {
  const before = [...asked];
  resting = true;
  await until('clients rest', () => CASES.every(({ rests }, number) => !rests || asked[number] > before[number] + 1));
  await replica.end('SIGKILL');
  resting = false;
}

/** What happened to the servers: when, and how many calls each client may lose by it. */
const disturbed = [];
async function disturb(what, allowed, work) {
  say(what);
  const disturbance = { what, allowed, from: Date.now(), until: Infinity };
  disturbed.push(disturbance);
  await work();
  disturbance.until = Date.now() + SETTLED_MS;
  await pass(SETTLED_MS + 3000);
}

/** Runs one client until the disturbances are over, and returns what it tells. */
async function drive(one, number) {
  const client = clientOf(one);
  const era = one.handshakes ? 'with the handshake' : '2026-07-28';
  const name = `${client.name} ${versionOf(client)}, ${era}`;
  const program = await commandOf(client);
  const place = prepare(folder, options.plugins, 'http');
  const job = {
    ...place.job(options.bin, url),
    package: client.package,
    meanwhile: `http://127.0.0.1:${control.address().port}/${number}`,
    handshake: one.handshake,
    handshakes: one.handshakes,
  };
  job.late = { ...job.late, to: join(dropped, `late${number}.wasm`), tool: `late${number}_echo` };
  const end = await run(program[0], [...program.slice(1), JSON.stringify(job)], { env, ms: RUN_MS });
  const told = end.stdout.flatMap((line) => {
    try {
      return [JSON.parse(line)];
    } catch {
      return [];
    }
  });
  return { name, told, stderr: end.stderr };
}

/** What is wrong with what a client tells. */
function judge({ told, stderr }) {
  const wrong = [];
  const right = (what) => told.filter(({ fact, value }) => fact === 'right' && value === what).length;
  const lost = told.filter(({ fact }) => fact === 'lost').map(({ value }) => value);
  const spent = new Map();
  for (const { from, to, what, why } of lost) {
    // What happened while the call was under way, or shortly before it.
    const causes = disturbed.filter((one) => one.from < to && from < one.until);
    const key = (cause) => `${disturbed.indexOf(cause)} ${what}`;
    const cause = causes.find((one) => (spent.get(key(one)) ?? 0) < one.allowed[what]);
    if (cause) spent.set(key(cause), (spent.get(key(cause)) ?? 0) + 1);
    else wrong.push(`a ${what} was lost after: ${causes.at(-1)?.what ?? 'nothing'}: ${why}`);
  }
  for (const name of ['connect', 'changed', 'close']) {
    const check = told.find(({ check }) => check === name);
    if (!check) wrong.push(`${name}: did not run: ${stderr.at(-1)}`);
  }
  for (const { check, why } of told.filter(({ ok }) => ok === false)) wrong.push(`${check}: ${why}`);
  const counts = `${right('call')} calls and ${right('question')} questions right, ${lost.length} lost`;
  if (right('call') < 100) wrong.push('it hardly called');
  return { wrong, counts };
}

// Installed one after the other, if they are not yet.
for (const one of CASES) await commandOf(clientOf(one));
const clients = CASES.map(drive);
await until('all clients call', () => asked.every((times) => times > 5));
const once = { call: 1, question: 1 };
const none = { call: 0, question: 0 };
await disturb('replica 1 is killed', once, () => kill(replicas[1]));
await disturb('replica 1 starts again', none, () => replicas[1].start());
await disturb('replica 2 is drained and started', none, async () => {
  await replicas[2].end('SIGTERM');
  await replicas[2].start();
});
if (!options.brief) {
  const silent = { call: 0, question: Infinity };
  await disturb('Redis is killed and started, empty', silent, async () => {
    await redis.kill();
    await pass(2000);
    await redis.again();
  });
  await disturb('Redis is stopped and started', silent, async () => {
    await redis.stop();
    await redis.again();
  });
  for (const replica of replicas) {
    await disturb(`${replica.name} is drained and started`, none, async () => {
      await replica.end('SIGTERM');
      await replica.start();
    });
  }
  await disturb('replica 0 is killed', once, () => kill(replicas[0]));
  await disturb('replica 0 starts again', none, () => replicas[0].start());
}
say('over');
state = 'over';
let failed = 0;
for (const client of await Promise.all(clients)) {
  const { wrong, counts } = judge(client);
  console.log(`${wrong.length === 0 ? 'ok  ' : 'FAIL'}  ${client.name} behind ${options.proxy}: ${counts}`);
  for (const why of wrong) console.log(`      | ${why}`);
  failed += wrong.length;
}
const requests = replicas.flatMap(({ own }) => readFileSync(join(own, 'access.jsonl'), 'utf8').split('\n').filter(Boolean));
const read = requests.map((line) => JSON.parse(line));
const handshakes = read.filter((line) => line.mcp_method === 'initialize' && line.status === 200).length;
const expected = CASES.reduce((sum, one) => sum + one.handshakes, 0);
const missing = read.filter((line) => line.status === 404).length;
console.log(`${handshakes === expected ? 'ok  ' : 'FAIL'}  handshakes: ${handshakes} of ${expected}`);
console.log(`${missing === 0 ? 'ok  ' : 'FAIL'}  answers with 404: ${missing} of ${read.length}`);
if (handshakes !== expected || missing > 0) failed++;
control.closeAllConnections();
control.close();
stopAll();
process.exit(failed === 0 ? 0 : 1);
