// What six reference servers take, and what wharf takes with the six plugins that are in it: tokens of a model, time to start, memory.
//
//   node differential.mjs ... --figures [--table FILE]
//
// Prints a table as Markdown. `--table` writes it between the lines `<!-- figures -->` and `<!-- end of figures -->` of a file.
//
// Tokens are those of o200k. Of a result, an agent that shows structured content passes that on as JSON, and the texts otherwise; a picture
// is a picture for both. Memory is the proportional share (PSS) of all processes, which counts what they share once. The reference servers
// are started without npx and uvx, which would take more.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { crc32, deflateSync } from 'node:zlib';
import { Server } from './server.mjs';
import { median } from './timing.mjs';

const SESSIONS = 15;
const STARTS = 5;
/** How long the allocators of all have to return what they do not need. */
const SETTLE_MS = 4_000;
const MIB = 1024 * 1024;

export async function figures({ bin, modules, python, home, env, table }) {
  const { countTokens } = createRequire(join(modules, 'index.js'))('gpt-tokenizer/encoding/o200k_base');
  const folder = join(home, 'figures');
  mkdirSync(folder, { recursive: true });
  execFileSync('git', ['init', '--quiet', folder]);
  writeFileSync(join(folder, 'screen.png'), picture(155));
  writeFileSync(join(folder, 'source.rs'), source(11_000));

  const node = (name, ...args) => [process.execPath, [join(modules, '@modelcontextprotocol', name, 'dist/index.js'), ...args]];
  const module = (name, ...args) => [python, ['-m', name, ...args]];
  const six = [
    node('server-filesystem', folder),
    module('mcp_server_git', '--repository', folder),
    module('mcp_server_fetch'),
    node('server-memory'),
    module('mcp_server_time'),
    node('server-sequential-thinking'),
  ];
  const start = ([command, args]) => Server.start(command, args, { env, cwd: folder });
  const theirs = () => Promise.all(six.map(start));
  const names = ['files', 'git', 'fetch', 'memory', 'time', 'sequentialthinking'];
  const ours = async () => [await start([bin, ['run', ...names.flatMap((name) => ['--builtin', name]), folder]])];

  const rows = [];
  const both = async (measure) => [await measure(theirs), await measure(ours)];
  const listed = async (servers) => (await Promise.all(servers.map((server) => server.request('tools/list', {})))).flatMap(({ tools }) => tools);
  // Compiled, and read from the disk.
  await both(async (begin) => stop(await timed(begin, listed)));

  for (const [what, file, tool] of [
    ['a picture of 72 KB, where agents pass on structured content: tokens besides it', 'screen.png', 'read_media_file'],
    ['a source file of 11 KB, there: tokens', 'source.rs', 'read_text_file'],
  ]) {
    const of = async (begin) => {
      const servers = await begin();
      const names = (await servers[0].request('tools/list', {})).tools.map(({ name }) => name);
      const result = await servers[0].call(names.find((name) => name.endsWith(tool)), { path: join(folder, file) });
      if (result.isError) throw new Error(JSON.stringify(result.content));
      await stop({ servers });
      const texts = result.content.filter(({ type }) => type === 'text').map(({ text }) => text);
      return countTokens(result.structuredContent ? JSON.stringify(result.structuredContent) : texts.join('\n'));
    };
    rows.push([what, ...(await both(of)).map(number)]);
  }
  const lists = async (begin) => {
    const servers = await begin();
    const tools = await listed(servers);
    await stop({ servers });
    return tools.reduce((sum, { name, description, inputSchema }) => sum + countTokens(JSON.stringify({ name, description, inputSchema })), 0);
  };
  rows.push(['the tools of all six: tokens of each conversation', ...(await both(lists)).map(number)]);
  const starts = async (begin) => {
    const times = [];
    for (let round = 0; round < STARTS; round += 1) {
      const { servers, ms } = await timed(begin, listed);
      times.push(ms);
      await stop({ servers });
    }
    return median(times);
  };
  rows.push(['start of all six at once until listed, compiled before', ...(await both(starts)).map((ms) => `${(ms / 1000).toFixed(2)} s`)]);
  for (const sessions of [1, SESSIONS]) {
    const memory = async (begin) => {
      const servers = [];
      for (let at = 0; at < sessions; at += 1) servers.push(...(await timed(begin, listed)).servers);
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      const bytes = servers.reduce((sum, { pid }) => sum + share(pid), 0);
      await stop({ servers });
      return bytes;
    };
    const what = sessions === 1 ? 'memory of all six, idle' : `memory of all six in ${sessions} sessions at once, idle`;
    rows.push([what, ...(await both(memory)).map((bytes) => `${number(Math.round(bytes / MIB))} MiB`)]);
  }
  const made = [['', 'reference servers', 'wharf'], ['---', '---', '---'], ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  console.log(made);
  if (table) replace(table, made);
}

async function timed(begin, listed) {
  const began = performance.now();
  const servers = await begin();
  await listed(servers);
  return { servers, ms: performance.now() - began };
}

const stop = ({ servers }) => Promise.all(servers.map((server) => server.stop()));

const number = (value) => value.toLocaleString('en');

/** The proportional share of a process and of all that it has started, in bytes. */
function share(pid) {
  const kib = Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))[1]);
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean),
  );
  return children.reduce((sum, child) => sum + share(child), kib * 1024);
}

function replace(file, made) {
  const [head, tail] = ['<!-- figures -->\n', '<!-- end of figures -->'];
  const old = readFileSync(file, 'utf8');
  const [from, to] = [old.indexOf(head), old.indexOf(tail)];
  if (from < 0 || to < from) throw new Error(`${file} has no lines ${head.trim()} and ${tail}`);
  writeFileSync(file, `${old.slice(0, from + head.length)}${made}\n${old.slice(to)}`);
}

/** A picture that does not compress, as a screenshot of photographs does not. */
function picture(side) {
  const noise = (line) => Buffer.concat(Array.from({ length: side * 3 }, (_, at) => createHash('md5').update(`${line} ${at}`).digest().subarray(0, 1)));
  const lines = Array.from({ length: side }, (_, line) => Buffer.concat([Buffer.from([0]), noise(line)]));
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    check.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, check]);
  };
  const header = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0]);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  const parts = [chunk('IHDR', header), chunk('IDAT', deflateSync(Buffer.concat(lines))), chunk('IEND', Buffer.alloc(0))];
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), ...parts]);
}

/** A text with quotes, indents and long lines, as source code has. */
function source(bytes) {
  const lines = [];
  for (let at = 0, length = 0; length < bytes; at += 1) {
    const line = `    let name_${at} = format!("the {} of berth \\"${at % 12}\\"", crane(${at}, "é")); // lifts ${at * 3} tonnes`;
    lines.push(line);
    length += line.length + 1;
  }
  return `${lines.join('\n')}\n`;
}
