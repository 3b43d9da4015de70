// The folders that both servers get, made again at the same place for each of them.

import { chmodSync, lstatSync, mkdirSync, readFileSync, readdirSync, readlinkSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** When everything was changed last, as far as anybody can see. */
const CHANGED = new Date('2026-03-04T05:06:07Z');
const LINES = (count) => Array.from({ length: count }, (_, at) => `line ${at + 1} ${'x'.repeat(at % 40)}`).join('\n');

/** What is read. */
export const READ = {
  'a.txt': 'one\ntwo\nthree\n',
  'nonl.txt': 'one\ntwo\nthree',
  'empty.txt': '',
  'blank.txt': '\n\n\n',
  'windows.txt': 'one\r\ntwo\r\nthree\r\n',
  'long.txt': `${LINES(3000)}\n`,
  'nö日😀.txt': 'ünï\n日本\n😀\n',
  'cafe\u0301.txt': 'accent\n',
  'latin1.txt': Buffer.from([0x63, 0x61, 0x66, 0xe9, 0x0a]),
  'data.json': '{"a":1}\n',
  'logo.png': Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]),
  'sound.mp3': Buffer.from([0xff, 0xfb, 0x90]),
  'movie.bin': Buffer.from([0, 1, 2, 3]),
  'noext': 'x\n',
  '.hidden': 'dot\n',
  '{y}.txt': 'braces\n',
  '[z].txt': 'brackets\n',
  'sp ace.txt': 'space\n',
  '!bang.txt': 'bang\n',
  'dir/one.rs': 'fn one() {}\n',
  'dir/two.js': 'two\n',
  'dir/sub/deep.rs': 'fn deep() {}\n',
  'dir/sub/deep.test.js': 'deep\n',
  'dir/.git/config': 'git\n',
  'node_modules/pkg/index.js': 'module\n',
  'node_modules/pkg/README.md': '# pkg\n',
  'empty dir/': '',
};

/** Names whose order is not that of their bytes. */
export const ORDER = [
  ...['_x', '-x', '!bang.txt', '.hidden', '[z].txt', '{y}.txt', '~', '$', '😀', '1', '10', '2', 'a', 'A', 'a b', 'a_b', 'a-b', 'a.txt', 'A.txt'],
  ...['a+b', 'a1', 'ab', 'cafe', 'Cafe', 'caf\u00e9', 'Caf\u00e9', 'cafes', 'caf\u00e9s', 'in/b.rs', 'In/a.rs', 'in.rs', 'n\u00f6.txt', 'zone', '日本'],
];
for (const name of ORDER) READ[`order/${name}`] = 'x'.repeat(name.length % 5);

/** Where links lead, below the first folder or with `Q/` the second. */
const LINKS = {
  'link-file': 'a.txt',
  'link-dir': 'dir',
  'link-up': 'dir/../a.txt',
  'link-absolute': 'P/r/a.txt',
  'link-absolute-dir': 'P/r/dir',
  'link-root': 'Q/q.txt',
  'link-dangling': 'nothing',
  'link-outside': '/etc/hostname',
  'link-round': 'link-round',
};

function write(path, content) {
  mkdirSync(path.endsWith('/') ? path : dirname(path), { recursive: true });
  if (!path.endsWith('/')) writeFileSync(path, content);
}

/** Makes the folders P and Q: what is read in `r`, and for each case that writes what it begins with in `w/NUMBER`. */
export function make({ P, Q }, cases) {
  for (const folder of [P, Q]) rmSync(folder, { recursive: true, force: true });
  for (const [name, content] of Object.entries(READ)) write(join(P, 'r', name), content);
  for (const [name, target] of Object.entries(LINKS)) {
    symlinkSync(target.replace(/^([PQ])\//, (_, which) => `${which === 'P' ? P : Q}/`), join(P, 'r', name));
  }
  write(join(Q, 'q.txt'), 'the second folder\n');
  for (const { number, files } of cases) {
    if (files === undefined) continue;
    mkdirSync(join(P, 'w', String(number)), { recursive: true });
    for (const [name, given] of Object.entries(files)) {
      const path = join(P, 'w', String(number), name);
      const { content, mode, link } = typeof given === 'string' ? { content: given } : given;
      if (link !== undefined) symlinkSync(link, path);
      else write(path, content);
      if (mode !== undefined) chmodSync(path, mode);
    }
  }
  age(P);
  age(Q);
}

/** Gives everything the same times. */
function age(path) {
  const stat = lstatSync(path);
  if (stat.isSymbolicLink()) return;
  if (stat.isDirectory()) for (const name of readdirSync(path)) age(join(path, name));
  utimesSync(path, CHANGED, CHANGED);
}

/** What is in a folder: kinds, modes and contents. */
export function look(folder, below = '') {
  const seen = [];
  for (const name of readdirSync(join(folder, below)).sort()) {
    const path = join(below, name);
    const stat = lstatSync(join(folder, path));
    if (stat.isSymbolicLink()) seen.push([path, 'link', readlinkSync(join(folder, path))]);
    else if (stat.isDirectory()) seen.push([path, 'folder'], ...look(folder, path));
    else seen.push([path, (stat.mode & 0o777).toString(8), readFileSync(join(folder, path), 'latin1')]);
  }
  return seen;
}
