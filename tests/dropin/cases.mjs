// What both filesystem servers are asked. A case that writes has files of its own.

import { READ } from './tree.mjs';

const OWN = '@';

/** Every case: the tool, its arguments, and for one that writes the files it begins with. `@` stands for their folder. */
export function cases({ P, Q }) {
  const all = [];
  const ask = (tool, args, files) => all.push({ number: all.length, tool, args, files });
  const r = `${P}/r`;

  const read = Object.keys(READ).filter((name) => !name.startsWith('order/'));
  const names = [...read.map((name) => name.replace(/\/$/, '')), 'dir', 'dir/sub', 'node_modules'];
  const links = ['link-file', 'link-dir', 'link-up', 'link-absolute', 'link-absolute-dir', 'link-root', 'link-dangling'];
  const odd = ['link-outside', 'link-round', 'link-dir/one.rs', 'link-absolute-dir/sub/deep.rs', 'nothing', 'nothing/here'];
  const more = ['a.txt/x', 'dir/', 'dir//one.rs', './dir/one.rs', 'dir/../a.txt', '', '.', 'caf\u00e9.txt', 'A.TXT'];
  const inside = [...names, ...links, ...odd, ...more].map((name) => `${r}/${name}`);
  const elsewhere = [`${Q}/q.txt`, Q, P, `${P}/..`, '/etc/hostname', '/', '~', '~/x', 'C:\\x', 'r/a.txt', 'a.txt', '../x', '', ' '];
  const paths = [...inside, ...elsewhere];
  for (const path of paths) {
    for (const tool of ['read_text_file', 'list_directory', 'list_directory_with_sizes', 'read_media_file']) ask(tool, { path });
  }
  // What is left out unless it is asked for is not compared, but for one case.
  const includeIgnored = true;
  ask('directory_tree', { path: r });
  for (const path of [`${r}/dir`, r, `${r}/empty dir`, `${r}/order`, `${r}/a.txt`, `${r}/link-dir`, `${r}/nothing`, Q]) {
    ask('directory_tree', { path, includeIgnored });
    ask('read_file', { path });
    for (const sortBy of ['name', 'size']) ask('list_directory_with_sizes', { path, sortBy });
  }

  for (const name of ['a.txt', 'dir', 'link-absolute', 'nothing', 'link-outside']) {
    ask('get_file_info', { path: `${r}/${name}` });
  }
  for (const path of ['~', '/etc/hostname', Q, 'a.txt']) ask('get_file_info', { path });

  for (const name of ['a.txt', 'nonl.txt', 'empty.txt', 'blank.txt', 'windows.txt', 'long.txt', 'nö日😀.txt', 'latin1.txt']) {
    for (const lines of [0, 1, 2, 5000]) ask('read_text_file', { path: `${r}/${name}`, head: lines });
    for (const lines of [0, 5000]) ask('read_text_file', { path: `${r}/${name}`, tail: lines });
    ask('read_text_file', { path: `${r}/${name}`, head: 1, tail: 1 });
    ask('read_file', { path: `${r}/${name}`, head: 2 });
  }
  for (const name of names) if (!/\.(png|bin)$/.test(name)) ask('read_text_file', { path: `${r}/${name}`, head: 3 });
  for (const lines of [1, 2, 3]) {
    for (const name of ['a.txt', 'nonl.txt']) ask('read_text_file', { path: `${r}/${name}`, tail: lines });
  }
  ask('read_text_file', { path: `${r}/a.txt`, head: 1.5 });
  ask('read_text_file', { path: `${r}/a.txt`, tail: -1 });

  for (const paths of [
    ...[[], ['a.txt'], ['a.txt', 'nonl.txt'], ['a.txt', 'nothing', 'nonl.txt'], ['dir'], ['nothing'], ['empty.txt', 'empty.txt']],
    ...[['latin1.txt'], ['windows.txt', 'nö日😀.txt'], ['link-file', 'link-absolute', 'link-root'], ['link-outside', 'a.txt']],
  ]) {
    ask('read_multiple_files', { paths: paths.map((name) => `${r}/${name}`) });
  }

  const globs = [
    ...['*', '**', '*.txt', '**/*.rs', '**/*', 'dir/*', 'dir/**', '**/deep.*', 'a.txt', 'deep.rs', '**/deep.rs', '*.{rs,txt}'],
    ...['**/*.{rs,js}', '?.txt', '[a-n]*.txt', '[!a]*.txt', '[^a]*', '{y}.txt', '\\{y\\}.txt', '[z].txt', '\\[z\\].txt', '[[]z].txt'],
    ...['+(a|n)*.txt', '@(a|nonl).txt', '!(a).txt', '**/!(deep).rs', '*.!(txt)', '!*.txt', '!!*.txt', '#a', '', '**/.*', '.*'],
    ...['**/sub/**', '**/pkg', 'node_modules', 'node_modules/**', '**/node_modules/**', 'dir/../a.txt', './a.txt', '/a.txt', 'a.txt/'],
    ...['dir//one.rs', '*/', '**/', '**/**', 'd*/s*/*', '*a*t*', 'sp ace.txt', '*😀*', 'nö??.txt', '[[:alpha:]]*.txt', '[', '{1..3}', '{a,', 'link-*'],
    ...['*.TXT', '**/*.test.js', 'dir/{one,two}.{rs,js}', 'dir/{sub/,}*.rs', '{dir,node_modules}/**/*.js', '\\*', '!bang.txt', '\\!bang.txt'],
  ];
  for (const pattern of globs) {
    ask('search_files', { path: r, pattern, includeIgnored });
    ask('search_files', { path: `${r}/dir`, pattern, includeIgnored });
    ask('search_files', { path: r, pattern: '**/*', excludePatterns: [pattern], includeIgnored });
    ask('directory_tree', { path: r, excludePatterns: [pattern], includeIgnored });
    ask('directory_tree', { path: `${r}/dir`, excludePatterns: [pattern, '*.js'], includeIgnored });
    ask('search_files', { path: `${r}/order`, pattern, includeIgnored });
    ask('search_files', { path: `${r}/order`, pattern: '**/*', excludePatterns: [pattern], includeIgnored });
    ask('directory_tree', { path: `${r}/order`, excludePatterns: [pattern], includeIgnored });
  }
  for (const path of [`${r}/dir`, `${r}/a.txt`, `${r}/nothing`, `${r}/link-dir`, '/etc', 'r']) {
    ask('search_files', { path, pattern: '**/*.rs', includeIgnored });
    ask('search_files', { path, pattern: '*', excludePatterns: ['sub', '*.js'], includeIgnored });
  }
  ask('list_allowed_directories', {});
  ask('list_allowed_directories', { random_string: '' });

  const contents = ['', 'x', 'one\ntwo\n', 'windows\r\nlines\r\n', 'ünï日😀\n', '\u0000\u0001', 'a'.repeat(100_000)];
  for (const content of contents) {
    for (const name of ['new.txt', 'old.txt', 'private.txt', 'link.txt', 'nö日😀.txt', 'no/such/folder.txt']) {
      const files = {
        'old.txt': 'old\n',
        'private.txt': { content: 'secret\n', mode: 0o600 },
        'script.sh': { content: '#!/bin/sh\n', mode: 0o755 },
        'link.txt': { link: 'old.txt' },
      };
      ask('write_file', { path: `${OWN}/${name}`, content }, files);
    }
  }
  for (const name of ['dir', 'script.sh', 'gone', 'outside', '../../../x', `${'n'.repeat(250)}`, `${'n'.repeat(300)}`]) {
    const files = { 'dir/': '', 'script.sh': { content: 'x', mode: 0o755 }, gone: { link: 'missing' }, outside: { link: '/etc/hostname' } };
    ask('write_file', { path: `${OWN}/${name}`, content: 'new' }, files);
  }

  const texts = {
    plain: 'alpha\nbeta\ngamma\ndelta\n',
    'no end': 'alpha\nbeta\ngamma',
    indented: 'def f():\n    if x:\n        y()\n    return z\n',
    windows: 'alpha\r\nbeta\r\ngamma\r\n',
    repeated: 'x\ny\nx\ny\n',
    blank: '\n\n\n',
    fenced: '```js\ncode\n```\n',
    long: `${Array.from({ length: 40 }, (_, at) => `line ${at}`).join('\n')}\n`,
    unicode: 'ünï\n日本\n😀\n',
  };
  const edits = [
    ...[[['beta', 'BETA']], [['alpha\nbeta', 'one']], [['gamma\n', '']], [['alpha', 'beta'], ['beta', 'x']], [['x', 'z']], [['nothing', 'x']]],
    ...[[['if x:\n    y()', 'if w:\n    v()']], [['  return z', '  return q']], [['y()', 'y()\n    more()']], [['\n', '']]],
    ...[[['  \n', 'x']], [['line 5\n', ''], ['line 30', 'LINE']], [['line 2\nline 3', 'a\nb\nc']], [['code', '````']], [['日本', 'nihon']]],
    ...[[['delta\n', 'delta\nepsilon\n']], [['alpha', 'alpha']], [[' beta ', 'x']], [], [['$&', 'x']], [['beta', '$&$1']]],
  ];
  for (const [name, content] of Object.entries(texts)) {
    // Every edit shows how ends of lines differ; a few are enough.
    for (const pairs of name === 'windows' ? [...edits.slice(0, 2), [['alpha\r\nbeta', 'a\r\nb']]] : edits) {
      const list = pairs.map(([oldText, newText]) => ({ oldText, newText }));
      ask('edit_file', { path: `${OWN}/f.txt`, edits: list }, { 'f.txt': content });
    }
  }
  for (const [name, given] of Object.entries({ 'f.txt': { content: 'a\nb\n', mode: 0o600 }, 'x.sh': { content: 'a\n', mode: 0o755 } })) {
    for (const dryRun of [true, false]) {
      ask('edit_file', { path: `${OWN}/${name}`, edits: [{ oldText: 'a', newText: 'z' }], dryRun }, { [name]: given });
    }
  }
  for (const content of ['', 'a\n']) {
    ask('edit_file', { path: `${OWN}/f.txt`, edits: [{ oldText: '', newText: 'x' }] }, { 'f.txt': content });
  }
  ask('edit_file', { path: `${OWN}/nothing`, edits: [] }, {});
  ask('edit_file', { path: `${OWN}/d`, edits: [] }, { 'd/': '' });

  for (const name of ['new', 'a/b/c', 'old', 'f.txt', 'f.txt/x', 'nö日😀', 'link', 'link/in', '../../../x', 'n'.repeat(300)]) {
    ask('create_directory', { path: `${OWN}/${name}` }, { 'old/': '', 'f.txt': 'x', 'old2/': '', link: { link: 'old2' } });
  }
  const moved = { 'f.txt': 'x', 'd/in.txt': 'y', 'other.txt': 'z', 'e/': '', link: { link: 'f.txt' }, p: { content: 's', mode: 0o600 } };
  for (const [source, destination] of [
    ...[['f.txt', 'g.txt'], ['f.txt', 'd/f.txt'], ['d', 'moved'], ['d', 'e/d'], ['f.txt', 'other.txt'], ['f.txt', 'f.txt'], ['d', 'e']],
    ...[['nothing', 'x'], ['f.txt', 'no/such/x'], ['d', 'd/in'], ['link', 'l'], ['p', 'q'], ['f.txt', '../../../x'], ['f.txt', 'e'], ['f.txt', 'link']],
  ]) {
    ask('move_file', { source: `${OWN}/${source}`, destination: `${OWN}/${destination}` }, moved);
  }

  const whole = { path: `${r}/a.txt`, paths: [`${r}/a.txt`], content: 'x', edits: [], source: 'x', destination: 'y', pattern: '*' };
  const needs = {
    ...{ read_file: ['path'], read_text_file: ['path'], read_media_file: ['path'], read_multiple_files: ['paths'], write_file: ['path', 'content'] },
    ...{ edit_file: ['path', 'edits'], create_directory: ['path'], list_directory: ['path'], list_directory_with_sizes: ['path'] },
    ...{ directory_tree: ['path'], move_file: ['source', 'destination'], search_files: ['path', 'pattern'], get_file_info: ['path'] },
  };
  for (const [tool, members] of Object.entries(needs)) {
    ask(tool, {});
    for (const member of members) {
      for (const wrong of [7, null, { a: 1 }]) ask(tool, { ...pick(whole, members), [member]: wrong });
      ask(tool, pick(whole, members.filter((other) => other !== member)));
    }
  }
  for (const wrong of ['x', true, [], null]) ask('read_text_file', { path: `${r}/a.txt`, head: wrong });
  ask('list_directory_with_sizes', { path: r, sortBy: 'age' });
  ask('list_directory', { path: `${r}/dir`, unknown: 1 });

  return all.map((one) => ({ ...one, args: own(one.args, `${P}/w/${one.number}`) }));
}

function pick(from, members) {
  return Object.fromEntries(members.map((name) => [name, from[name]]));
}

function own(args, folder) {
  const place = (value) => (typeof value === 'string' && value.startsWith(`${OWN}/`) ? folder + value.slice(1) : value);
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, place(value)]));
}
