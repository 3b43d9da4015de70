// The fetch plugin compared with the reference fetch server, on test sites on loopback.

import { execFileSync } from 'node:child_process';
import { existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Server } from './server.mjs';
import { PATHS, SITES, start } from './pages.mjs';

const AT_LEAST = 0.95;

/** Where they differ on purpose. */
const INTENDED = [
  {
    id: 'encodings that pages name themselves',
    reason: 'a page without a charset in its header is read as it says itself, or as its bytes suggest; the reference server takes all for UTF-8',
    applies: ({ url }) => url.endsWith('/meta') || url.endsWith('/wrong'),
  },
  {
    id: 'marks of byte order',
    reason: 'the mark is not part of the text',
    applies: ({ url }) => url.endsWith('/marked'),
  },
  {
    id: 'links to parts of other pages',
    reason: 'they stay as they are; the reference server makes them begin with about:blank',
    applies: ({ url }) => url.endsWith('/fragments'),
  },
  {
    id: 'pages whose root has a class of what stands around contents',
    reason: 'the root is never taken away; the reference server gives up telling what belongs to the contents',
    applies: ({ url }) => url.endsWith('/odd-root'),
  },
  {
    id: 'pages that are nested deep',
    reason: 'they are refused with advice before they fill the stack',
    applies: ({ url }) => url.endsWith('/deep'),
  },
  {
    id: 'answers of more than 3 MiB',
    reason: 'what is made of them would not fit into the memory of a call',
    applies: ({ url }) => url.endsWith('/huge'),
  },
  {
    id: 'cookies',
    reason: 'none are kept, not even for the next hop',
    applies: ({ url }) => url.endsWith('/cookie'),
  },
  {
    id: 'names and passwords in URLs',
    reason: 'they would end up in what models read and in logs',
    applies: ({ url }) => url.includes('@localhost'),
  },
];

function cases(urls) {
  const all = [];
  const tool = (url, more = {}) => all.push({ url, args: { url, ...more } });
  const { open } = urls;
  for (const path of PATHS) {
    tool(open + path);
    // Where they differ on purpose, once is enough.
    if (INTENDED.some(({ applies }) => applies({ url: open + path }))) continue;
    tool(open + path, { raw: true, max_length: 700 });
    if (!path.startsWith('/in/')) all.push({ url: open + path, prompt: true });
  }
  tool(`${open.replace('//', '//user:word@')}/short`);
  for (const [start_index, max_length] of [[0, 1], [0, 12_000], [0, 11_999], [1, 11_999], [11_999, 1], [12_000, 1], [12_001, 5], [5000, 5000], [10_000, 5000]]) {
    tool(`${open}/long`, { start_index, max_length });
  }
  for (const max_length of [1, 2, 3, 149, 150, 151]) tool(`${open}/accents`, { max_length, start_index: max_length - 1 });
  for (const site of SITES) {
    for (const path of ['/short', '/secret/page', '/secret/open', '/robots.txt', '/secret?x']) tool(urls[site] + path);
    tool(`${open}/to/${site}`);
    tool(`${urls.rules}/to/${site}`);
    all.push({ url: `${urls[site]}/secret/page`, prompt: true });
  }
  // An address without a server, and URLs that are not those of a page.
  for (const url of ['http://localhost:1/', 'nope', '', 'ftp://localhost/x', 'file:///etc/passwd', 'http://', 'mailto:a@b.example']) {
    tool(url);
    all.push({ url, prompt: true });
  }
  for (const url of [open, `${open}/short?x=1&y=%20a#part`, `${open}/sh%6Frt`, `${open}/a/../short`, `${open}/\u00e9`, `${open}/a b`].map((url) => url.replace('localhost', 'LOCALHOST'))) tool(url);
  for (const more of [{ max_length: 0 }, { max_length: 1_000_000 }, { max_length: '7' }, { start_index: -1 }, { raw: 'yes' }, { max_length: 1.5 }]) tool(`${open}/short`, more);
  all.push({ url: '', args: {} });
  return all;
}

async function ask(server, { args, prompt, url }) {
  if (!prompt) {
    const { isError, content } = await server.call('fetch', args);
    return { failed: isError === true, text: content[0].text };
  }
  const { messages, description } = await server.request('prompts/get', { name: 'fetch', arguments: { url } });
  const { text } = messages[0].content;
  return { failed: text.startsWith('Failed to fetch'), text, role: messages[0].role, description };
}

/** The reference server's toolkit says this before each error. */
const plain = (text) => text.replace('Error executing tool fetch: ', '');

function verdict(theirs, ours) {
  const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
  if (same({ ...theirs, text: plain(theirs.text) }, ours)) return 'identical';
  // Errors of connections and arguments are said in other words.
  return theirs.failed && ours.failed ? 'equivalent' : 'different';
}

/**
 * Gives the reference server what it reads pages with, as the lockfile names it. Without, it would install the newest while it
 * answers.
 */
function provide(python, modules) {
  const where = 'import os, readabilipy; print(os.path.join(os.path.dirname(readabilipy.__file__), "javascript", "node_modules"))';
  const link = execFileSync(python, ['-c', where], { encoding: 'utf8' }).trim();
  if (!existsSync(link)) symlinkSync(modules, link);
}

/** `wharf` starts it with a plugin named fetch, which may ask the sites of these URLs. */
export async function fetch({ wharf, python, modules, env, complain, show = 20 }) {
  provide(python, modules);
  const { urls, asked, stop } = await start();
  const theirs = await Server.start(python, ['-m', 'mcp_server_fetch', '--allow-private-ips'], { env });
  const ours = await wharf([...Object.values(urls), 'http://localhost:1']);
  await lists(theirs, ours, complain);
  const count = { identical: 0, equivalent: 0, different: 0 };
  const used = new Map(INTENDED.map(({ id }) => [id, 0]));
  const all = cases(urls);
  let shown = 0;
  for (const one of all) {
    const told = [];
    for (const server of [theirs, ours]) {
      asked.length = 0;
      told.push({ ...(await ask(server, one)), asked: [...asked] });
    }
    const [requests, own] = told.map(({ asked }) => asked);
    told.forEach((each) => delete each.asked);
    const reached = verdict(...told);
    count[reached] += 1;
    // Where they differ on purpose, they may ask for other things as well.
    const intended = INTENDED.find(({ applies }) => applies(one, ...told));
    if (reached === 'different' && intended) used.set(intended.id, used.get(intended.id) + 1);
    else if (reached === 'different' && shown++ < show) {
      const [reference, plugin] = told.map((each) => JSON.stringify(each).slice(0, 3000));
      complain(`fetch ${JSON.stringify(one)}\n  reference: ${reference}\n  wharf:     ${plugin}`);
    } else if (!intended && JSON.stringify(requests) !== JSON.stringify(own)) {
      complain(`fetch ${JSON.stringify(one)}: other requests\n  reference: ${JSON.stringify(requests)}\n  wharf:     ${JSON.stringify(own)}`);
    }
  }
  await refuses(ours, urls, complain);
  await theirs.stop();
  await ours.stop();
  stop();
  const alike = (count.identical + count.equivalent) / all.length;
  console.log(`fetch: ${all.length} calls, ${count.identical} identical, ${count.equivalent} equivalent, ${count.different} different: ${(alike * 100).toFixed(2)} % alike`);
  for (const { id, reason } of INTENDED) {
    console.log(`  ${String(used.get(id)).padStart(4)}  ${id}: ${reason}`);
    if (used.get(id) === 0) complain(`${id}: nothing differs any more`);
  }
  if (alike < AT_LEAST) complain(`fetch: less than ${AT_LEAST * 100} of 100 are alike`);
}

/** What no rule of the operator allows is refused in words that say whose decision it is. */
async function refuses(ours, { open }, complain) {
  const elsewhere = `${open.replace('localhost', '127.0.0.1')}/short`;
  const { failed, text } = await ask(ours, { args: { url: elsewhere } });
  if (!failed || !text.includes('operator of this server does not allow')) complain(`fetch ${elsewhere}, which no rule allows: ${text}`);
}

/** What both list must be the same: to a client, one is the other. */
async function lists(theirs, ours, complain) {
  for (const [method, key] of [['tools/list', 'tools'], ['prompts/list', 'prompts']]) {
    const [[one], [other]] = [(await theirs.request(method, {}))[key], (await ours.request(method, {}))[key]].map((all) => all.filter(({ name }) => name === 'fetch'));
    for (const part of Object.keys(one)) {
      const [wanted, given] = [one[part], other?.[part]].map((value) => JSON.stringify(sorted(value)));
      if (wanted !== given) complain(`fetch: ${part} in ${method}\n  reference: ${wanted}\n  wharf:     ${given}`);
    }
  }
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}
