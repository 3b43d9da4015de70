// Asks the reference servers and wharf's plugins the same, on the same files, and compares the answers.
//
//   node differential.mjs --bin WHARF --plugins DIR --modules DIR [--python PROGRAM] [--python-1 PROGRAM] [--only NAME]
//     [--brief] [--timing] [--figures [--table FILE]] [--show N] [--folder DIR]
//
// `--only` compares one plugin, `--brief` those whose reference servers answer in a moment. `--python` is an interpreter that has the
// reference servers for time, fetch and git, `--python-1` one that has that for SQLite. Fails if fewer than 97 of 100 answers are
// identical or equivalent, if another differs for no reason that `intended.mjs` or the plugin's own file names, or if nothing differs any
// more where one is named.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { cases } from './cases.mjs';
import { compare, missing } from './compare.mjs';
import { fetch } from './fetch.mjs';
import { figures } from './figures.mjs';
import { git } from './git.mjs';
import { INTENDED } from './intended.mjs';
import { memory } from './memory.mjs';
import { Server } from './server.mjs';
import { sqlite } from './sqlite.mjs';
import { thinking } from './thinking.mjs';
import { time } from './time.mjs';
import { timing } from './timing.mjs';
import { look, make } from './tree.mjs';

const AT_LEAST = 0.97;

const options = parseArgs({
  options: {
    bin: { type: 'string' },
    plugins: { type: 'string' },
    modules: { type: 'string' },
    python: { type: 'string' },
    'python-1': { type: 'string' },
    only: { type: 'string' },
    brief: { type: 'boolean', default: false },
    timing: { type: 'boolean', default: false },
    figures: { type: 'boolean', default: false },
    table: { type: 'string' },
    show: { type: 'string', default: '20' },
  },
}).values;
for (const name of ['bin', 'plugins', 'modules']) {
  if (options[name] === undefined) throw new Error(`--${name} is missing`);
  options[name] = resolve(options[name]);
}

const home = mkdtempSync(join(tmpdir(), 'wharf-dropin-'));
process.on('exit', () => rmSync(home, { recursive: true, force: true }));
const folders = { P: join(home, 'first'), Q: join(home, 'second') };
const env = { HOME: home, XDG_CACHE_HOME: join(home, 'cache'), TZ: 'UTC' };

writeFileSync(
  join(home, 'wharf.toml'),
  [
    `[roots]\nfixed = ${JSON.stringify([folders.P, folders.Q])}`,
    `[plugins.files]\npath = ${JSON.stringify(join(options.plugins, 'files.wasm'))}\nprefix = ""`,
    '[plugins.files.grants]\nroots = "read-write"',
    `[plugins.time]\npath = ${JSON.stringify(join(options.plugins, 'time.wasm'))}\nprefix = ""\n`,
  ].join('\n'),
);

/** The servers that are compared. */
const reference = () =>
  Server.start(
    process.execPath,
    [join(options.modules, '@modelcontextprotocol/server-filesystem/dist/index.js'), folders.P, folders.Q],
    { env, cwd: home },
  );
const wharf = () => Server.start(options.bin, ['run', '-c', join(home, 'wharf.toml')], { env, cwd: home });

/** wharf with the fetch plugin, which may go to these URLs. */
function fetcher(urls) {
  const rules = urls.map((url) => `{ url = ${JSON.stringify(url)}, private = true }`);
  const lines = [
    `[plugins.fetch]\npath = ${JSON.stringify(join(options.plugins, 'fetch.wasm'))}\nprefix = ""`,
    `[plugins.fetch.grants]\nhttp = [${rules.join(', ')}]\n`,
  ];
  writeFileSync(join(home, 'fetch.toml'), lines.join('\n'));
  return Server.start(options.bin, ['run', '-c', join(home, 'fetch.toml')], { env, cwd: home });
}

let started = 0;

/** wharf with one plugin, what is granted to it, and more lines of its table. Each has a file of its own, whose changes it would follow. */
function start(id, grants, more = '') {
  const plugin = `path = ${JSON.stringify(join(options.plugins, `${id}.wasm`))}\nprefix = ""`;
  const config = join(home, `${id}-${started++}.toml`);
  writeFileSync(config, `[plugins.${id}]\n${plugin}\n${more}\n[plugins.${id}.grants]\n${grants}\n`);
  return Server.start(options.bin, ['run', '-c', config], { env, cwd: home });
}

/** What a server answers to all of it, and what it leaves behind. */
async function answers(start, asked) {
  make(folders, asked);
  const server = await start();
  const { tools } = await server.request('tools/list', {});
  const results = [];
  for (const { tool, args } of asked) results.push(await server.call(tool, args));
  await server.stop();
  const told = results.map((result, at) => {
    const { files, number } = asked[at];
    return { result, left: files === undefined ? undefined : plain(look(join(folders.P, 'w', String(number)))) };
  });
  return { tools, told };
}

/** Detects additional files that a server leaves behind. */
const plain = (seen) => seen.map((entry) => entry.map(String));

if (options.figures) {
  await figures({ ...options, home, env });
  process.exit(0);
}

let failed = false;
function complain(line) {
  failed = true;
  console.log(`FAIL  ${line}`);
}

async function files() {
  const asked = cases(folders);
  const theirs = await answers(reference, asked);
  const ours = await answers(wharf, asked);
  for (const tool of theirs.tools) {
    const lacks = missing(tool, ours.tools.find(({ name }) => name === tool.name));
    const intended = INTENDED.tools[tool.name] ?? [];
    const unknown = lacks.filter((lack) => !intended.some(({ matches }) => matches.test(lack)));
    if (unknown.length > 0) complain(`${tool.name}: ${unknown.join('; ')}`);
  }
  const count = { identical: 0, equivalent: 0, different: 0 };
  const used = new Map(INTENDED.calls.map(({ id }) => [id, 0]));
  let shown = 0;
  asked.forEach((one, at) => {
    const [theirOwn, own] = [theirs.told[at], ours.told[at]];
    const verdict = compare(one.tool, theirOwn, own);
    count[verdict] += 1;
    if (verdict !== 'different') return;
    const reason = INTENDED.calls.find(({ applies }) => applies(one, theirOwn, own));
    if (reason) {
      used.set(reason.id, used.get(reason.id) + 1);
      return;
    }
    failed = true;
    if (shown++ < Number(options.show)) {
      const brief = ({ result, left }) => {
        const said = `${result.isError ? 'error: ' : ''}${result.content.map((block) => block.text ?? JSON.stringify(block)).join('; ')}`;
        return JSON.stringify([said, left].filter(Boolean)).replaceAll(home, '').slice(0, 400);
      };
      const args = JSON.stringify(one.args).replaceAll(home, '').slice(0, 300);
      console.log(`FAIL  ${one.tool} ${args}\n  reference: ${brief(theirOwn)}\n  wharf:     ${brief(own)}`);
    }
  });
  const alike = (count.identical + count.equivalent) / asked.length;
  console.log(
    `files: ${asked.length} calls, ${count.identical} identical, ${count.equivalent} equivalent, ${count.different} different: ` +
      `${(alike * 100).toFixed(2)} % alike`,
  );
  for (const { id, reason } of INTENDED.calls) {
    console.log(`  ${String(used.get(id)).padStart(4)}  ${id}: ${reason}`);
    if (used.get(id) === 0) complain(`${id}: nothing differs any more`);
  }
  if (shown > Number(options.show)) console.log(`  ${shown} calls in all differ for no reason that is named`);
  if (alike < AT_LEAST) complain(`less than ${AT_LEAST * 100} of 100 are alike`);
}

const shared = { start, modules: options.modules, home, env, complain, show: Number(options.show) };
const { python } = options;
const plugins = {
  files,
  memory: () => memory(shared),
  thinking: () => thinking(shared),
  time: () => python && time({ wharf, python, env, complain }),
  fetch: () => python && fetch({ wharf: fetcher, python, modules: options.modules, env, complain }),
  git: () => python && git({ ...shared, python }),
  sqlite: () => options['python-1'] && sqlite({ ...shared, python: options['python-1'] }),
};
if (options.only && !plugins[options.only]) throw new Error(`--only is one of ${Object.keys(plugins).join(', ')}`);
if (options.only && options.brief) throw new Error('--only names one plugin, and --brief four: write one of them');
const chosen = options.only ? [options.only] : options.brief ? ['files', 'memory', 'thinking', 'time'] : Object.keys(plugins);
for (const name of chosen) await plugins[name]();
if (options.timing) await timing({ reference, wharf, folder: folders.P, complain });
process.exit(failed ? 1 : 0);
