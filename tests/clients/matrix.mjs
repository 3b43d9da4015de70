// Drives wharf with many frameworks that nobody here wrote: each connects, lists, calls and hears of a new plugin over every
// transport it has. It is broad and shallow; ../conformance/clients asks few clients for everything.
//
//   node matrix.mjs --bin WHARF --plugins DIR [--only TEXT] [--brief] [--table FILE]
//
// One line per check; exit code 1 if any failed or did not run. `--only` takes the combinations whose line contains the text,
// `--brief` the fastest clients that tell most. `--table` writes what was seen as Markdown, between the lines `<!-- table -->`
// and `<!-- end of table -->` where the file has them.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { run, serve } from '../conformance/clients/processes.mjs';
import { complain, count, needPaths, tell } from '../conformance/clients/telling.mjs';
import { CLIENTS } from './clients.mjs';
import { commandOf, versionOf } from './environments.mjs';
import { prepare, seenOnDisk, surroundings } from './place.mjs';
import { table } from './table.mjs';

/** How long one combination may take. */
const COMBINATION_MS = 150_000;
const READY_MS = 60_000;

const CHECKS = ['connect', 'list', 'call', 'roots', 'changed', 'close'];

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

/** What a line of a client program tells; undefined if it is something else, which libraries may print. */
function read(line) {
  try {
    const told = JSON.parse(line);
    return typeof told.check === 'string' || typeof told.fact === 'string' ? told : undefined;
  } catch {
    return undefined;
  }
}

/** Runs one client over one transport, tells of each of its checks, and returns what failed and how it heard of the change. */
async function combine(client, transport) {
  const combination = `${client.name} ${versionOf(client)}, ${transport}`;
  const more = [];
  if (client.emptyRoots) more.push('empty-roots');
  if (client.asks) more.push('approval');
  if (client.asks?.includes(transport)) more.push('approval-handshake');
  const wanted = [...CHECKS, ...more].filter((name) => !client.absent?.[name]);
  const result = { failed: [], hears: undefined, asks: [] };
  const verdict = (name, ok, why, ms) => {
    if (!tell(combination, name, ok, why, ms)) result.failed.push(name);
  };

  let program;
  try {
    program = await commandOf(client);
  } catch (error) {
    if (client.optional) console.log(`--    ${combination}: not installed: ${error.message} (optional: ${client.optional})`);
    else verdict('not installed', false, error.message);
    return { ...result, missing: true };
  }

  const place = prepare(folder, options.plugins, transport, client.protocol);
  const servers = [];
  const started = async (config) => {
    if (transport === 'stdio') return undefined;
    servers.push(await serve(options.bin, config, { env, ms: READY_MS }));
    return servers.at(-1).url;
  };
  let end = { code: undefined, stdout: [], stderr: [] };
  const seen = new Map();
  let how;
  try {
    const url = await started(place.config);
    const asking = client.asks ? await started(place.asking) : undefined;
    const job = { ...place.job(options.bin, url, asking), package: client.package };
    end = await run(program[0], [...program.slice(1), JSON.stringify(job)], { env, ms: COMBINATION_MS });
    how = end.code === undefined ? 'the program had to be ended' : `the program ended with code ${end.code}`;
  } catch (error) {
    how = error.message;
  }
  for (const line of end.stdout) {
    const told = read(line);
    if (told?.fact === 'hears') result.hears = told.value;
    else if (told?.fact === 'asks') result.asks.push(told.value);
    else if (told === undefined) end.stderr.push(line);
    else seen.set(told.check, told);
  }
  for (const told of seen.values()) {
    const unseen = told.ok ? seenOnDisk(place, told.check) : undefined;
    const known = wanted.includes(told.check);
    verdict(told.check, told.ok && known && !unseen, told.why ?? unseen ?? 'no such check', told.ms);
  }
  const unrun = wanted.filter((name) => !seen.has(name));
  if (unrun.length > 0) verdict(unrun.join(', '), false, `did not run; ${how}`);
  else if (end.code !== 0) verdict('end', false, how);
  if (client.hears && result.hears !== client.hears) verdict('hears', false, `${result.hears}, wanted ${client.hears}`);
  for (const server of servers) {
    const code = await server.stop();
    if (code !== 0) verdict('wharf serve', false, `exit code ${code}`);
  }
  if (result.failed.length > 0) {
    for (const line of [...end.stderr, ...servers.flatMap(({ log }) => log)].slice(-25)) console.log(`      | ${line}`);
  }
  rmSync(place.folder, { recursive: true, force: true });
  return result;
}

// What clients and servers keep is kept here, and nothing of the machine's own is read. Compiled Python is kept for the next
// time, and never next to the sources.
const folder = mkdtempSync(join(tmpdir(), 'wharf-matrix-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const env = surroundings(folder);

const chosen = CLIENTS.filter(({ brief }) => brief || !options.brief)
  .map((client) => ({
    client,
    transports: client.transports.filter((transport) =>
      `${client.name} ${versionOf(client)}, ${transport}`.includes(options.only),
    ),
  }))
  .filter(({ transports }) => transports.length > 0);
if (chosen.length === 0) complain(`no combination contains ${JSON.stringify(options.only)}`);

// Compiles the plugins once, so that no client waits for that.
const warm = prepare(folder, options.plugins, 'http');
const checked = await run(options.bin, ['check', '-c', warm.config], { env, ms: READY_MS });
if (checked.code !== 0) {
  complain(['`wharf check` does not like the config:', ...checked.stdout, ...checked.stderr].join('\n'));
}

const rows = [];
for (const { client, transports } of chosen) {
  const results = {};
  for (const transport of transports) results[transport] = await combine(client, transport);
  rows.push({ client, version: versionOf(client), results });
}

if (options.table) {
  const text = table(rows);
  const old = existsSync(options.table) ? readFileSync(options.table, 'utf8') : '';
  const [before, after] = [old.indexOf('<!-- table -->\n'), old.indexOf('<!-- end of table -->')];
  const whole = before < 0 || after < before ? text : `${old.slice(0, before)}<!-- table -->\n${text}${old.slice(after)}`;
  writeFileSync(options.table, whole);
}
console.log(`${count.passed} checks passed, ${count.failed} failed`);
process.exit(count.failed === 0 ? 0 : 1);
