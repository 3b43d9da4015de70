// Restarts and kills wharf under clients that are connected: each goes on calling tools, and none of them initializes again.
//
//   node restarts.mjs --bin WHARF --plugins DIR [--only TEXT]
//
// One line per check; exit code 1 if any failed or did not run. matrix.mjs says what the other options of `cargo xtask check clients` are,
// which are taken here too.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { run, serve } from '../conformance/clients/processes.mjs';
import { complain, count, needPaths, tell } from '../conformance/clients/telling.mjs';
import { CLIENTS } from './clients.mjs';
import { commandOf, versionOf } from './environments.mjs';
import { prepare, surroundings } from './place.mjs';

const COMBINATION_MS = 180_000;
const READY_MS = 60_000;

const PYTHON = ['connect', 'before', 'restart at rest', 'kill at rest', 'changed', 'close'];
const JAVASCRIPT = [...PYTHON, 'restart during a call', 'kill during a call', 'kill during an answer'];

/** The official clients, by the program that drives each, and what they begin with. */
const CASES = [
  { program: 'sdk_v1.mjs', package: '@modelcontextprotocol/sdk', checks: JAVASCRIPT, handshakes: 1 },
  { program: 'sdk_v2.mjs', package: '@modelcontextprotocol/client', checks: JAVASCRIPT, handshake: true, handshakes: 1 },
  { program: 'sdk_v2.mjs', package: '@modelcontextprotocol/client', checks: JAVASCRIPT, handshake: false, handshakes: 0 },
  { program: 'mcp_v1.py', environment: 'mcp-1.26', checks: PYTHON, handshakes: 1 },
  { program: 'mcp_v2.py', environment: 'mcp', checks: PYTHON, handshake: true, handshakes: 1 },
  { program: 'mcp_v2.py', environment: 'mcp', checks: PYTHON, handshake: false, handshakes: 0 },
];

const options = parseArgs({
  options: {
    bin: { type: 'string' },
    plugins: { type: 'string' },
    only: { type: 'string', default: '' },
    brief: { type: 'boolean', default: false },
    table: { type: 'string' },
  },
}).values;

needPaths(options, ['bin', 'plugins']);

const clientOf = (one) =>
  CLIENTS.find(({ program, package: name, environment }) => {
    return program === one.program && (one.environment ? environment === one.environment : name === one.package);
  });

/** A wharf at one address, and a server that restarts it when a client program asks for that. */
async function restartable(config, env) {
  let wharf = await serve(options.bin, config, { env, ms: READY_MS });
  const { host, href } = new URL(wharf.url);
  const log = [];
  const control = createServer(async (request, response) => {
    try {
      if (request.url === '/kill') await wharf.kill();
      else if ((await wharf.stop()) !== 0) throw new Error('wharf did not end without an error');
      log.push(...wharf.log);
      wharf = await serve(options.bin, config, { env, ms: READY_MS, listen: host });
      response.end('done');
    } catch (error) {
      response.writeHead(500).end(error.message);
    }
  });
  await new Promise((resolve) => control.listen(0, '127.0.0.1', resolve));
  return {
    url: href,
    restarts: `http://127.0.0.1:${control.address().port}/`,
    lines: () => [...log, ...wharf.log],
    stop: async () => {
      control.closeAllConnections();
      control.close();
      return await wharf.stop();
    },
  };
}

async function goesOn(one) {
  const client = clientOf(one);
  const era = one.handshakes ? 'with the handshake' : '2026-07-28';
  const combination = `${client.name} ${versionOf(client)}, ${era}`;
  const verdict = (name, ok, why, ms) => tell(`${combination}, restarts`, name, ok, why, ms);
  let program;
  try {
    program = await commandOf(client);
  } catch (error) {
    return verdict('not installed', false, error.message);
  }
  const place = prepare(folder, options.plugins, 'http');
  const access = join(place.folder, 'access.jsonl');
  const waits = `[plugins.g]\npath = ${JSON.stringify(join(options.plugins, 'badlist.wasm'))}\nconfig = { mode = "given" }\n`;
  const more = `${waits}limits = { timeout_ms = 120000 }\n[http]\naccess_log = ${JSON.stringify(access)}\n`;
  writeFileSync(place.config, `${readFileSync(place.config, 'utf8')}${more}`);
  const server = await restartable(place.config, env);
  const { handshake, handshakes: expected } = one;
  const job = {
    ...place.job(options.bin, server.url),
    package: client.package,
    restarts: server.restarts,
    handshake,
    handshakes: expected,
  };
  const end = await run(program[0], [...program.slice(1), JSON.stringify(job)], { env, ms: COMBINATION_MS });
  const failed = count.failed;
  const seen = new Set();
  for (const line of end.stdout) {
    let told;
    try {
      told = JSON.parse(line);
    } catch {
      continue;
    }
    if (typeof told.check !== 'string') continue;
    seen.add(told.check);
    verdict(told.check, told.ok && one.checks.includes(told.check), told.why ?? 'no such check', told.ms);
  }
  const unrun = one.checks.filter((name) => !seen.has(name));
  if (unrun.length > 0) verdict(unrun.join(', '), false, `did not run; the program ended with code ${end.code}`);
  const code = await server.stop();
  if (code !== 0) verdict('wharf serve', false, `exit code ${code}`);
  const requests = readFileSync(access, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  const handshakes = requests.filter((line) => line.mcp_method === 'initialize' && line.status === 200).length;
  const why = `it initialized ${handshakes} times, not ${expected}`;
  verdict('handshakes', handshakes === expected, why);
  if (count.failed > failed) {
    for (const line of [...end.stderr, ...server.lines()].slice(-30)) console.log(`      | ${line}`);
  }
  rmSync(place.folder, { recursive: true, force: true });
  return undefined;
}

const folder = mkdtempSync(join(tmpdir(), 'wharf-restarts-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const env = surroundings(folder);

const chosen = CASES.filter((one) => `${clientOf(one).name} ${versionOf(clientOf(one))}, http`.includes(options.only));
if (chosen.length === 0) {
  // The option may name a client that is only in the matrix.
  if (!options.only) complain('there are no clients');
  process.exit(0);
}
for (const one of chosen) await goesOn(one);
console.log(`${count.passed} checks passed, ${count.failed} failed`);
process.exit(count.failed === 0 ? 0 : 1);
