// Drives real agents against a scripted model on loopback, with wharf put into the config of each by `wharf install`, and checks what
// the model is sent: the tools, the instructions, and the text of a result once and as text.
//
//   node agents.mjs --bin WHARF --plugins DIR --target DIR [--only NAME] [--brief] [--table FILE]
//
// One line per check, and the transcript of an agent of which one failed; exit code 1 if any failed. `--only` takes the agents whose
// name contains the text, `--brief` two. `--table` writes what was seen as Markdown, between the lines `<!-- agents -->` and
// `<!-- end of agents -->` where the file has them.
//
// The packages are installed first. Then this program starts itself again where only loopback can be reached and nothing is left
// running, if the machine can do that. `--cut-off` says that this was done.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { installedVersion, requireFrom } from '../conformance/clients/arguments.mjs';
import { complain, count, needPaths, tell } from '../conformance/clients/telling.mjs';
import { drive, warm } from './drive.mjs';
import { install, modulesOf } from './install.mjs';
import { cut, judge } from './judge.mjs';
import { AGENTS } from './known.mjs';
import { table } from './table.mjs';

/** The packages that count tokens. */
const TOKENIZER = 'tokenizer';

const text = { type: 'string' };
const flag = { type: 'boolean', default: false };
const options = parseArgs({
  options: { bin: text, plugins: text, target: text, only: { ...text, default: '' }, brief: flag, table: text, 'cut-off': flag },
}).values;
if (options.target) mkdirSync(options.target, { recursive: true });
needPaths(options, ['bin', 'plugins', 'target']);

const only = options.only.toLowerCase();
const chosen = AGENTS.filter(({ name, client, brief }) => (brief || !options.brief) && `${name} ${client}`.toLowerCase().includes(only));
if (chosen.length === 0) complain(`no agent is called ${JSON.stringify(options.only)}: ${AGENTS.map(({ name }) => name).join(', ')}`);

if (!options['cut-off']) {
  for (const name of [TOKENIZER, ...chosen.map(({ client }) => client)]) await install(name, options.target);
  const [self, ...args] = [fileURLToPath(import.meta.url), ...process.argv.slice(2), '--cut-off'];
  // Namespaces of its own: there is no network but loopback, and what agents leave running ends with this program.
  const kinds = ['--net', '--pid', '--fork', '--kill-child', '--mount-proc', '--map-root-user'];
  const alone = [...kinds, 'sh', '-c', 'ip link set lo up && "$0" "$@"', process.execPath];
  if (spawnSync('unshare', [...alone, '--version'], { stdio: 'ignore' }).status === 0) {
    const again = spawn('unshare', [...alone, self, ...args], { stdio: 'inherit' });
    process.on('exit', () => again.kill('SIGKILL'));
    const [code] = await once(again, 'exit');
    process.exit(code ?? 1);
  }
  console.log('--    this machine makes no namespaces: only a proxy keeps agents from the network, and they may leave processes');
}

const { countTokens: tokens } = requireFrom(modulesOf(options.target, TOKENIZER))('gpt-tokenizer/encoding/o200k_base');
await warm(options);
const rows = [];
for (const agent of chosen) {
  const start = Date.now();
  const version = installedVersion(modulesOf(options.target, agent.client), agent.package);
  const title = `${agent.name} ${version ?? ''}`.trim();
  const row = { agent, version };
  rows.push(row);
  if (!existsSync(join(modulesOf(options.target, agent.client), agent.program))) {
    tell(title, 'packages', false, `${agent.package} has no program for this machine in the registry that npm uses`);
    row.install = 'not run';
    continue;
  }
  const result = await drive(agent, options);
  const isUnknown = /invalid value|unknown client/i.test(result.install ?? '');
  row.install = result.install === undefined ? `\`${agent.client}\`` : isUnknown ? 'unknown' : 'fails';
  if (!tell(title, 'install', result.install === undefined, result.install)) continue;
  const { findings, facts } = judge(agent, result, tokens);
  row.facts = facts;
  let failed = 0;
  for (const { name, ok, why } of findings) if (!tell(title, name, ok, why)) failed += 1;
  console.log(`--    ${title}: ${Date.now() - start} ms; asked for and refused: ${elsewhere(result.transcript)}`);
  if (failed > 0) tellAll(result);
}

const made = table(rows);
console.log(made);
if (options.table) {
  const old = existsSync(options.table) ? readFileSync(options.table, 'utf8') : '';
  const [before, after] = [old.indexOf('<!-- agents -->\n'), old.indexOf('<!-- end of agents -->')];
  const whole = before < 0 || after < before ? `${made}\n` : `${old.slice(0, before)}<!-- agents -->\n${made}\n${old.slice(after)}`;
  writeFileSync(options.table, whole);
}
console.log(`${count.passed} checks passed, ${count.failed} failed`);
process.exit(count.failed === 0 ? 0 : 1);

function elsewhere(transcript) {
  const urls = new Set(transcript.filter(({ what }) => what === 'elsewhere').map(({ url }) => url));
  return [...urls].join(', ') || 'nothing';
}

/** Prints the conversation, and the end of what the agent printed. All of it is in files next to the agent's home. */
function tellAll({ place, transcript, output, code }) {
  console.log(`      | all of it: ${place.folder}`);
  let last;
  for (const { what, path, url, error, asked, said } of transcript) {
    const { texts } = asked?.results.at(-1) ?? {};
    const result = texts ? `, result ${cut(texts, 200)}` : '';
    const does = said?.call ? `calls ${said.call.name}` : 'ends';
    const turn = what === 'turn' ? `: ${asked.tools.length} tools${result}; the model ${does}` : '';
    const line = `${what} ${path ?? url ?? error}${turn}`;
    // The turns in which it waits for a change.
    const isSame = said?.call !== undefined && said.call.name === last;
    if (!isSame) console.log(`      | ${line}`);
    last = said?.call?.name;
  }
  console.log(`      | it ended with code ${code ?? 'none, because it had to be ended'}`);
  for (const line of output.split('\n').slice(-12)) console.log(`      | ${line.slice(0, 300)}`);
}
