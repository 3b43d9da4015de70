// Drives wharf with other people's MCP clients, each at each revision it speaks, over stdio and HTTP.
//
//   node run.mjs --bin WHARF --config FILE [--modules DIR] [--venv DIR] [--only TEXT]
//
// One line per combination and check; exit code 1 if any check failed or did not run. `--only` takes the combinations whose
// line contains the text.

import { mkdtempSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { installedVersion } from './arguments.mjs';
import { run, serve } from './processes.mjs';
import { complain, count, needPaths, tell } from './telling.mjs';
import { python } from './python.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const TARGET = resolve(HERE, '../../../target/conformance');
/** How long one combination may take. */
const COMBINATION_MS = 150_000;
const READY_MS = 60_000;

const SIMPLE = ['revision', 'tools', 'resources', 'templates', 'prompts', 'call', 'read', 'read-template', 'prompt'];
const ALL = [
  ...['connect', ...SIMPLE, 'complete', 'progress', 'slow-call', 'elicitation', 'sampling', 'roots'],
  ...['list-changed', 'cancel', 'cancel-frees', 'close'],
];

const HANDSHAKES = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const MODERN = '2026-07-28';

/** One library in one version, driven by one program here, at several revisions or in several modes. */
const CLIENTS = [
  {
    package: '@modelcontextprotocol/client',
    version: '2.4.0',
    program: 'typescript_client.mjs',
    modes: [...HANDSHAKES, MODERN, 'auto'],
    checks: ALL,
  },
  {
    package: '@modelcontextprotocol/sdk',
    version: '1.32.2',
    program: 'typescript_sdk.mjs',
    modes: ['2025-11-25'],
    checks: ALL,
  },
  // requirements.txt says the version as well.
  { package: 'mcp', version: '2.3.0', program: 'python_client.py', modes: ['legacy', 'auto', MODERN], checks: ALL },
  {
    package: '@modelcontextprotocol/inspector',
    version: '2.12.0',
    program: 'inspector.mjs',
    modes: ['2025-11-25', MODERN],
    checks: [...SIMPLE, 'tool-error'],
  },
];

const options = parseArgs({
  options: {
    bin: { type: 'string' },
    config: { type: 'string' },
    modules: { type: 'string', default: join(TARGET, 'node_modules') },
    venv: { type: 'string', default: join(TARGET, 'venv') },
    only: { type: 'string', default: '' },
  },
}).values;

needPaths(options, ['bin', 'config']);

/** The command line of a client program. */
async function commandOf(client, mode, server) {
  const program = join(HERE, client.program);
  if (client.program.endsWith('.py')) return [await interpreter(), [program, mode, ...server]];
  const found = installedVersion(options.modules, client.package);
  if (found !== client.version) {
    throw new Error(`${options.modules} has ${client.package} ${found ?? 'not at all'}, wanted ${client.version}`);
  }
  return [process.execPath, [program, '--modules', options.modules, '--revision', mode, ...server]];
}

/** What a line of a client program tells; undefined if it is something else, which libraries may print. */
function read(line) {
  try {
    const told = JSON.parse(line);
    return typeof told.check === 'string' ? told : undefined;
  } catch {
    return undefined;
  }
}

let made;
const interpreter = () => (made ??= python(resolve(options.venv)));

/** Runs one combination and tells of each of its checks. */
async function combine(client, mode, combination, server, env, log = []) {
  const before = log.length;
  const seen = new Map();
  let end = { code: undefined, stdout: [], stderr: [] };
  let how;
  try {
    const [command, args] = await commandOf(client, mode, server);
    end = await run(command, args, { env, ms: COMBINATION_MS });
    how = end.code === undefined ? 'the program had to be ended' : `the program ended with code ${end.code}`;
  } catch (error) {
    how = error.message;
  }
  for (const line of end.stdout) {
    const told = read(line);
    if (told === undefined) {
      end.stderr.push(line);
      continue;
    }
    seen.set(told.check, told);
    const known = client.checks.includes(told.check);
    tell(combination, told.check, told.ok && known, told.why ?? 'no such check', told.ms);
  }
  for (const name of client.checks.filter((name) => !seen.has(name))) {
    tell(combination, name, false, `did not run; ${how}`);
  }
  if (seen.size > 0 && end.code !== 0) tell(combination, 'end', false, how);
  if (client.checks.some((name) => !seen.get(name)?.ok)) {
    for (const line of [...end.stderr, ...log.slice(before)].slice(-15)) console.log(`      | ${line}`);
  }
}

// What clients and servers keep is kept here, and nothing of the machine's own is read.
const folder = mkdtempSync(join(tmpdir(), 'wharf-clients-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const env = { ...process.env, HOME: join(folder, 'home') };
for (const name of ['XDG_CONFIG_HOME', 'XDG_CACHE_HOME', 'RUST_LOG']) delete env[name];
mkdirSync(env.HOME);

const combinations = CLIENTS.flatMap((client) =>
  client.modes.flatMap((mode) =>
    ['stdio', 'http'].map((transport) => ({
      client,
      mode,
      transport,
      name: `${client.package} ${client.version}, ${mode}, ${transport}`,
    })),
  ),
).filter(({ name }) => name.includes(options.only));

const checked = await run(options.bin, ['check', '-c', options.config], { env, ms: READY_MS });
if (checked.code !== 0) {
  complain(['`wharf check` does not like the config:', ...checked.stdout, ...checked.stderr].join('\n'));
}

let server;
try {
  server = await serve(options.bin, options.config, { env, ms: READY_MS });
} catch (error) {
  complain(error.message);
}
for (const { client, mode, transport, name } of combinations) {
  if (transport === 'http') await combine(client, mode, name, ['--url', server.url], env, server.log);
  else await combine(client, mode, name, ['--bin', options.bin, '--config', options.config], env);
}
const code = await server.stop();
tell('wharf serve', 'ends when asked to', code === 0, `exit code ${code}`);

console.log(`${count.passed} checks passed, ${count.failed} failed`);
process.exit(count.failed === 0 && combinations.length > 0 ? 0 : 1);
