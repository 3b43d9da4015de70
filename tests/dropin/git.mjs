// The git plugin compared with the reference git server: the same questions in repositories that were made in the same way.

import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, readlinkSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { judge, lists, random } from './judge.mjs';
import { Server } from './server.mjs';

/** Where they differ on purpose. */
const INTENDED = [
  {
    id: 'files in conflict',
    reason: 'they are named: git shows both sides at once',
    applies: ({ tool, name }) => name === 'merging' && ['git_diff_unstaged', 'git_diff'].includes(tool),
  },
  {
    id: 'hooks',
    reason: 'nothing that a repository names is run, and the answer says what was passed over',
    applies: ({ tool, name }) => name === 'hooks' && tool === 'git_commit',
  },
  {
    id: 'ranges',
    reason: 'A..B and A...B are compared as by git diff, and so is a branch with the name of a folder; there they are errors',
    applies: ({ tool, name }, theirs, ours) => name === 'ranges' && tool === 'git_diff' && theirs.result.isError && !ours.result.isError,
  },
  {
    id: 'shallow clones',
    reason: 'the commit at the end of the history is shown, and the history says that it ends; there the one is an error and the other says nothing',
    applies: ({ tool, name }) => name === 'shallow' && ['git_show', 'git_log'].includes(tool),
  },
  {
    id: 'names that are not UTF-8',
    reason: 'they are named as not compared',
    applies: ({ tool, name }) => name === 'latin names' && ['git_status', 'git_diff_unstaged', 'git_diff', 'git_show'].includes(tool),
  },
  {
    id: 'repositories in the work tree',
    reason: 'the answer says that only a commit is staged, or what a submodule is',
    applies: ({ tool, name, args }) => (name === 'embedded' && tool === 'git_add') || (name.startsWith('submodule') && tool === 'git_show' && args.revision === 'HEAD:lib'),
  },
];

/** Commits of the same second have the same ids in both. */
const WHEN = 1_700_000_000;
const WHO = { GIT_AUTHOR_NAME: 'Ann', GIT_AUTHOR_EMAIL: 'ann@a.example', GIT_COMMITTER_NAME: 'Ann', GIT_COMMITTER_EMAIL: 'ann@a.example' };
const LONG = (from, to, mark = '') => Array.from({ length: to - from }, (_, at) => `line ${from + at}${mark}\n`).join('');

/** Makes a repository with some history, branches, tags and files in every state. */
class Repository {
  #second = WHEN;

  constructor(at, home) {
    rmSync(at, { recursive: true, force: true });
    mkdirSync(at, { recursive: true });
    this.at = at;
    this.env = { PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C', TZ: 'UTC', ...WHO };
    this.git('init', '-q', '-b', 'main');
    this.git('config', 'user.name', 'Ann');
    this.git('config', 'user.email', 'ann@a.example');
  }

  git(...args) {
    const date = `${this.#second} +0130`;
    return execFileSync('git', args, { cwd: this.at, env: { ...this.env, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date }, encoding: 'utf8', stdio: 'pipe' });
  }

  write(files) {
    for (const [name, content] of Object.entries(files)) {
      const path = join(this.at, name);
      mkdirSync(dirname(path), { recursive: true });
      if (content === null) rmSync(path, { recursive: true, force: true });
      else if (typeof content.link === 'string') {
        rmSync(path, { force: true });
        symlinkSync(content.link, path);
      } else {
        try { if (lstatSync(path).isSymbolicLink()) unlinkSync(path); } catch {}
        writeFileSync(path, content);
      }
    }
  }

  mktree(entries) {
    return execFileSync('git', ['mktree'], { cwd: this.at, env: this.env, input: entries, encoding: 'utf8' }).trim();
  }

  commit(message, files) {
    this.#second += 3600;
    this.write(files);
    this.git('add', '-A');
    this.git('commit', '-q', '-m', message);
  }

  /** Adds a submodule, whose repository is made beside this one. */
  module() {
    const inner = new Repository(`${this.at}-inner`, this.env.HOME);
    inner.commit('inner', { 'a.txt': 'inner\n', 'b.txt': 'b\n' });
    this.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', '../repository-inner', 'lib');
    this.git('-C', 'lib', 'config', 'user.name', 'Ann');
    this.git('-C', 'lib', 'config', 'user.email', 'ann@a.example');
    this.commit('a submodule', {});
  }

  /** Runs git, which stops with a conflict. */
  stop(...args) {
    try { this.git(...args); } catch { return; }
    throw new Error(`git ${args.join(' ')} did not stop`);
  }

  history() {
    this.commit('first\n\nwith a body\n', {
      'a.txt': 'one\ntwo\nthree\n',
      'long.txt': LONG(0, 60),
      'code.c': `#include <x.h>\n\nint main(void)\n{\n${LONG(0, 20, ';')}\treturn 0;\n}\n\nstatic void other(int x)\n{\n${LONG(20, 40, ';')}}\n`,
      'dir/b.txt': 'b\n',
      'dir/sub/c.txt': 'c\nc\n',
      'empty.txt': '',
      'nonl.txt': 'no newline at the end',
      'binary.bin': Buffer.from([0, 1, 2, 3]),
      'sp ace.txt': 'space\n',
      'ünï.txt': 'unicode\n',
      'link': { link: 'a.txt' },
      'latin1.txt': Buffer.from([0x63, 0xe9, 0x0a]),
      '.gitignore': '*.log\n/build/\n',
    });
    this.commit('second', { 'a.txt': 'one\n2\nthree\nfour\n', 'moved.txt': LONG(0, 60), 'long.txt': null, 'empty.txt': 'no more\n' });
    this.git('tag', 'v1');
    this.git('tag', '-a', 'v1-annotated', '-m', 'a tag');
    this.git('branch', 'side', 'HEAD~1');
    this.git('branch', 'feature/x');
    this.commit('third: ünïcode 日本', { 'dir/b.txt': null, 'dir/new.txt': 'new\n', 'moved.txt': `${LONG(0, 30)}changed\n${LONG(31, 60)}`, 'binary.bin': Buffer.from([0, 1, 9]) });
    this.git('checkout', '-q', 'side');
    this.commit('on the side', { 'side.txt': 'side\n' });
    this.git('checkout', '-q', 'main');
    this.git('update-ref', 'refs/remotes/origin/main', 'HEAD~1');
    this.git('symbolic-ref', 'refs/remotes/origin/HEAD', 'refs/remotes/origin/main');
    this.git('config', 'remote.origin.url', '/nowhere');
    this.git('config', 'remote.origin.fetch', '+refs/heads/*:refs/remotes/origin/*');
    this.git('config', 'branch.main.remote', 'origin');
    this.git('config', 'branch.main.merge', 'refs/heads/main');
  }

  /** What can be seen of it from outside. */
  state() {
    const files = [];
    const walk = (folder) => {
      for (const entry of readdirSync(join(this.at, folder), { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
        const name = join(folder, entry.name);
        if (name === '.git') continue;
        if (entry.isDirectory()) walk(name);
        else files.push([name, entry.isSymbolicLink() ? readlinkSync(join(this.at, name)) : readFileSync(join(this.at, name), 'latin1')]);
      }
    };
    walk('');
    const git = (...args) => {
      try { return this.git(...args); } catch (error) { return `fails: ${String(error.stderr).split('\n')[0]}`; }
    };
    // Times of new commits are those of the call, so of them only what they hold is compared.
    const log = git('log', '--all', '--format=%T %P %an <%ae> %s%n%b', '-n', '50').replace(/\b[0-9a-f]{40}\b(?= Ann)/g, '');
    return { files, index: git('ls-files', '--stage'), head: git('symbolic-ref', '-q', 'HEAD'), log: log.replace(/ [0-9a-f]{40}/g, ' parent'), refs: git('for-each-ref', '--format=%(refname) %(tree)'), fsck: git('fsck', '--strict', '--no-dangling') };
  }
}

/** Scenarios: how a repository is made, and what is asked of it. */
function scenarios() {
  const all = [];
  const scenario = (name, make, ...asked) => all.push({ name, make, asked });
  const q = (tool, args = {}) => ({ tool: `git_${tool}`, args });
  const look = [q('status'), q('diff_unstaged'), q('diff_staged'), q('diff', { target: 'HEAD' }), q('diff', { target: 'v1' })];

  scenario('clean', (r) => r.history(), ...look,
    ...[0, 1, 2, 3, 10, -1].map((max_count) => q('log', { max_count })), q('log'),
    ...['2023-11-15', '2023-11-14T23:30:00', '2023-11-15 01:00:00 +0000', 'Nov 15 2023', '1000 weeks ago', '@1700006000', ''].flatMap((moment) => [q('log', { start_timestamp: moment }), q('log', { end_timestamp: moment })]),
    q('log', { start_timestamp: '-1' }), q('log', { start_timestamp: 'yesterday' }), q('log', { end_timestamp: 'yesterday' }),
    ...['HEAD', 'HEAD~1', 'HEAD~2', 'main', 'v1', 'v1-annotated', 'side', 'origin/main', 'feature/x', 'HEAD:a.txt', 'HEAD:dir', 'HEAD:', 'v1:long.txt', 'HEAD^{tree}', 'HEAD:latin1.txt', 'HEAD:link', 'HEAD:ünï.txt', 'nothing', 'HEAD~9', 'HEAD:nothing', '--help', '', 'HEAD^2', '@'].map((revision) => q('show', { revision })),
    ...['side', 'main', 'HEAD~2', 'v1', 'v1-annotated', 'nothing', '--cached', 'HEAD~1', 'origin/main'].map((target) => q('diff', { target })),
    ...[0, 1, 5, 100].map((context_lines) => q('diff', { target: 'HEAD~2', context_lines })),
    ...['local', 'remote', 'all', 'none'].flatMap((branch_type) => [q('branch', { branch_type }), q('branch', { branch_type, contains: 'HEAD~1' }), q('branch', { branch_type, not_contains: 'v1' }), q('branch', { branch_type, contains: 'side', not_contains: 'HEAD' }), q('branch', { branch_type, contains: 'nothing' }), q('branch', { branch_type, contains: '-x' })]),
    q('add', { files: ['.'] }), q('add', { files: [] }), q('commit', { message: 'nothing' }), q('reset'), q('status'), q('status', { repo_path: '/nowhere' }), q('status', { repo_path: 7 }), q('diff', {}), q('nothing'));

  const dirty = (r) => {
    r.history();
    r.write({ 'a.txt': 'zero\none\n2\nthree\n', 'code.c': readFileSync(join(r.at, 'code.c'), 'utf8').replace('line 30;', 'changed;').replace('line 5;\n', ''), 'dir/new.txt': null, 'fresh.txt': 'fresh\n', 'folder/x/y.txt': 'y\n', 'noise.log': 'ignored', 'build/out': 'ignored', 'nonl.txt': 'no newline at the end\nmore', 'sp ace.txt': 'changed\n', 'ünï.txt': 'changed', 'link': { link: 'dir' }, 'binary.bin': Buffer.from([1, 0, 0]), 'empty.txt': '' });
  };
  scenario('dirty', dirty, ...look, ...[0, 1, 30].map((context_lines) => q('diff_unstaged', { context_lines })),
    q('add', { files: ['a.txt', 'fresh.txt'] }), ...look, q('add', { files: ['folder'] }), q('status'), q('add', { files: ['dir/new.txt'] }), q('status'), q('add', { files: ['*.txt'] }), ...look, q('add', { files: ['.'] }), ...look, q('add', { files: ['.'] }),
    q('commit', { message: 'all of it' }), q('status'), q('diff', { target: 'HEAD~1' }), q('log', { max_count: 2 }), q('commit', { message: 'again' }));
  scenario('reset', dirty, q('add', { files: ['.'] }), q('reset'), ...look, q('reset'), q('add', { files: ['nothing.txt'] }), q('add', { files: ['../x'] }), q('add', { files: ['/etc/hostname'] }), q('add', { files: ['noise.log'] }), q('add', { files: ['-A'] }), q('add', { files: ['dir'] }), q('status'), q('commit', { message: 'only dir\n\nand more\n' }), q('show', { revision: 'HEAD:dir' }), q('status'), q('branch', { branch_type: 'local' }));
  scenario('renamed', (r) => { r.history(); r.git('mv', 'moved.txt', 'again.txt'); r.git('mv', 'dir/sub/c.txt', 'c2.txt'); r.write({ 'again.txt': `first\n${LONG(0, 60)}` }); r.git('add', '-A'); }, ...look, q('commit', { message: 'renamed' }), q('show', { revision: 'HEAD^{tree}' }), q('diff', { target: 'HEAD~1' }), q('diff', { target: 'HEAD~3' }));
  scenario('branches', (r) => r.history(), q('create_branch', { branch_name: 'new' }), q('create_branch', { branch_name: 'new' }), q('create_branch', { branch_name: 'from-side', base_branch: 'side' }), q('create_branch', { branch_name: 'from-tag', base_branch: 'v1' }), q('create_branch', { branch_name: 'from-remote', base_branch: 'origin/main' }), q('create_branch', { branch_name: 'x', base_branch: 'nothing' }), q('create_branch', { branch_name: '-x' }), q('create_branch', { branch_name: 'a b' }), q('create_branch', { branch_name: 'a..b' }), q('create_branch', { branch_name: 'deep/er' }), q('branch', { branch_type: 'local' }),
    q('checkout', { branch_name: 'side' }), q('status'), q('checkout', { branch_name: 'main' }), q('status'), q('checkout', { branch_name: 'new' }), q('checkout', { branch_name: 'nothing' }), q('checkout', { branch_name: '-f' }), q('checkout', { branch_name: 'v1' }), q('status'), q('branch', { branch_type: 'local' }), q('create_branch', { branch_name: 'y' }), q('checkout', { branch_name: 'side' }), q('checkout', { branch_name: 'HEAD~1' }), q('status'), q('checkout', { branch_name: 'feature/x' }), q('checkout', { branch_name: 'main' }), q('checkout', { branch_name: 'main' }), q('status'));
  scenario('in the way', (r) => { r.history(); r.write({ 'a.txt': 'mine\n', 'side.txt': 'untracked\n', 'sp ace.txt': 'kept\n' }); }, q('checkout', { branch_name: 'side' }), q('checkout', { branch_name: 'feature/x' }), q('status'), q('checkout', { branch_name: 'new' }), ...look);
  scenario('kept', (r) => { r.history(); r.write({ 'sp ace.txt': 'kept\n', 'other.txt': 'other\n' }); r.git('add', 'other.txt'); }, q('checkout', { branch_name: 'feature/x' }), ...look, q('checkout', { branch_name: 'main' }), ...look, q('commit', { message: 'other' }), q('status'));
  scenario('empty', () => {}, ...look, q('log'), q('show', { revision: 'HEAD' }), q('branch', { branch_type: 'all' }), q('create_branch', { branch_name: 'x' }), q('commit', { message: 'x' }));
  scenario('first', (r) => r.write({ 'a.txt': 'a\n', 'b/c.txt': 'c\n' }), q('status'), q('add', { files: ['.'] }), q('status'), q('diff_staged'), q('commit', { message: 'first' }), q('status'), q('log', { max_count: 0 }), q('checkout', { branch_name: 'main' }));
  scenario('merging', (r) => { r.history(); r.git('checkout', '-q', 'side'); r.commit('theirs', { 'a.txt': 'theirs\n' }); r.git('checkout', '-q', 'main'); try { r.git('merge', '-q', 'side'); } catch {} }, q('status'), q('diff_staged'), q('diff_unstaged'), q('commit', { message: 'too early' }), q('add', { files: ['a.txt'] }), q('status'), q('diff_staged'), q('commit', { message: 'merged' }), q('status'), q('branch', { branch_type: 'local', contains: 'side' }), q('show', { revision: 'HEAD' }));
  scenario('kinds', (r) => { r.history(); r.write({ 'a.txt': null }); r.write({ 'a.txt': { link: 'code.c' }, 'link': 'a file now\n', 'dir': null }); r.write({ 'dir': 'a file\n' }); }, ...look, q('add', { files: ['.'] }), ...look, q('commit', { message: 'kinds' }), q('checkout', { branch_name: 'feature/x' }), q('status'));
  scenario('packed', (r) => { r.history(); r.git('gc', '-q', '--aggressive'); }, ...look, q('log'), q('show', { revision: 'HEAD~1' }), q('show', { revision: 'v1-annotated' }), q('checkout', { branch_name: 'side' }), q('status'), q('branch', { branch_type: 'all' }), q('create_branch', { branch_name: 'packed' }));
  scenario('windows', (r) => { r.git('config', 'core.autocrlf', 'true'); r.history(); r.write({ 'a.txt': 'one\r\n2\r\nthree\r\nfour\r\n', '.gitattributes': '*.c text eol=crlf\n' }); }, q('status'), q('add', { files: ['.'] }), q('status'), q('commit', { message: 'ends' }), q('checkout', { branch_name: 'side' }), q('status'));

  scenario('hooks', (r) => { r.history(); r.write({ '.git/hooks/pre-commit': '#!/bin/sh\nexit 1\n', 'a.txt': 'a\n' }); chmodSync(join(r.at, '.git/hooks/pre-commit'), 0o755); r.git('add', '-A'); }, q('commit', { message: 'hooked' }));

  const modules = [...look, q('add', { files: ['.'] }), ...look, q('reset'), ...look, q('add', { files: ['lib'] }), ...look, q('commit', { message: 'the submodule' }), q('status'), q('show', { revision: 'HEAD' }), q('show', { revision: 'HEAD:lib' }), q('show', { revision: 'HEAD:' })];
  const second = (r) => { r.write({ 'lib/a.txt': 'second\n' }); r.git('-C', 'lib', 'commit', '-q', '-a', '-m', 'second'); };
  scenario('submodule', (r) => { r.history(); r.module(); r.write({ 'a.txt': 'changed\n' }); }, ...modules);
  scenario('submodule moved', (r) => { r.history(); r.module(); second(r); }, ...modules);
  scenario('submodule changed', (r) => { r.history(); r.module(); second(r); r.write({ 'lib/a.txt': 'third\n', 'lib/new.txt': 'new\n' }); }, ...modules);
  scenario('submodule with files', (r) => { r.history(); r.module(); r.write({ 'lib/new.txt': 'new\n' }); }, ...modules, q('add', { files: ['lib/new.txt'] }));
  scenario('submodule without files', (r) => { r.history(); r.module(); r.git('submodule', 'deinit', '-q', '-f', 'lib'); }, ...look, q('add', { files: ['.'] }), ...look);
  scenario('submodule gone', (r) => { r.history(); r.module(); r.write({ lib: null }); }, ...modules.slice(0, -2));
  scenario('submodule replaced', (r) => { r.history(); r.module(); r.write({ lib: null }); r.write({ lib: 'a file\n' }); }, ...modules.slice(0, -2));
  scenario('embedded', (r) => { r.history(); const inner = new Repository(join(r.at, 'inner'), r.env.HOME); inner.commit('inner', { 'x.txt': 'x\n' }); }, q('status'), q('add', { files: ['.'] }), ...look);

  const state = [q('status'), q('branch', { branch_type: 'local' }), q('diff_staged')];
  const conflict = (r) => { r.history(); r.git('checkout', '-q', 'side'); r.commit('theirs', { 'a.txt': 'theirs\n' }); r.commit('more', { 'more.txt': 'more\n' }); };
  const resolved = [q('add', { files: ['a.txt'] }), ...state];
  scenario('rebasing', (r) => { conflict(r); r.stop('rebase', '-q', 'main'); }, ...state, ...resolved);
  scenario('rebasing by patches', (r) => { conflict(r); r.stop('rebase', '-q', '--apply', 'main'); }, ...state, ...resolved);
  scenario('editing', (r) => { conflict(r); r.git('-c', "sequence.editor=sed -i -e '1s/^pick/edit/'", 'rebase', '-q', '-i', 'HEAD~2'); r.write({ 'a.txt': 'edited\n' }); }, ...state, ...resolved);
  scenario('splitting', (r) => { conflict(r); r.git('-c', "sequence.editor=sed -i -e '2s/^pick/edit/'", 'rebase', '-q', '-i', 'HEAD~2'); r.git('reset', '-q', 'HEAD~1'); r.write({ 'a.txt': 'split\n' }); }, ...state, ...resolved);
  scenario('picking', (r) => { conflict(r); r.git('checkout', '-q', 'main'); r.stop('cherry-pick', 'side~1', 'side'); }, ...state, ...resolved);
  scenario('reverting', (r) => { conflict(r); r.commit('again', { 'a.txt': 'again\n' }); r.stop('revert', '--no-edit', 'HEAD~2'); }, ...state, ...resolved);
  scenario('patches', (r) => { conflict(r); r.write({ '.git/patch': r.git('format-patch', '-1', 'HEAD~1', '--stdout') }); r.git('checkout', '-q', 'main'); r.stop('am', '-q', '.git/patch'); }, ...state);
  scenario('bisecting', (r) => { r.history(); r.git('bisect', 'start', 'HEAD', 'HEAD~2'); }, ...state);
  scenario('sparse', (r) => { r.history(); r.git('sparse-checkout', 'set', '--no-cone', '/a.txt', '/dir'); r.write({ 'a.txt': 'changed\n' }); }, ...look, q('add', { files: ['a.txt'] }), ...look);
  scenario('announced', (r) => { r.history(); r.write({ 'new.txt': 'new\n', 'gone.txt': 'gone\n' }); r.git('add', '-N', 'new.txt', 'gone.txt'); r.write({ 'gone.txt': null }); }, ...look.slice(0, 3), q('reset'), ...look);
  scenario('deleted by one', (r) => { r.history(); r.git('checkout', '-q', 'side'); r.git('rm', '-q', 'a.txt'); r.commit('without', {}); r.git('checkout', '-q', 'main'); r.stop('merge', '-q', 'side'); }, q('status'), q('diff_staged'));
  scenario('detached', (r) => { r.history(); r.git('checkout', '-q', 'v1'); r.commit('on no branch', { 'a.txt': 'x\n' }); }, ...state, ...look);
  scenario('work trees', (r) => { r.history(); r.git('worktree', 'prune'); r.git('worktree', 'add', '-q', '.git/second', 'side'); }, ...state, q('checkout', { branch_name: 'side' }), q('branch', { branch_type: 'all' }));
  scenario('ranges', (r) => { r.history(); r.git('branch', 'dir', 'side'); r.write({ 'a.txt': 'uncommitted\n' }); }, ...['main..side', 'side..main', 'main...side', 'side...main', 'side..', '..side', 'HEAD^!', 'dir', 'main..nothing', '^side'].map((target) => q('diff', { target })), q('checkout', { branch_name: 'dir' }), q('status'), q('show', { revision: 'main..side' }), q('show', { revision: 'dir' }));
  scenario('folders of branches', (r) => { r.history(); }, q('create_branch', { branch_name: 'side/x' }), q('create_branch', { branch_name: 'feature' }), q('branch', { branch_type: 'local' }));
  scenario('shallow', (r) => { const full = new Repository(`${r.at}-inner`, r.env.HOME); full.history(); r.git('-c', 'protocol.file.allow=always', 'fetch', '-q', '--depth', '2', `file://${full.at}`, 'main'); r.git('checkout', '-q', '-B', 'main', 'FETCH_HEAD'); }, ...look, q('log'), ...['HEAD', 'HEAD~1', 'HEAD~2'].map((revision) => q('show', { revision })), q('diff', { target: 'HEAD~1' }), q('branch', { branch_type: 'local', contains: 'HEAD~1' }));
  scenario('encodings', (r) => { r.history(); for (const [name, bytes] of [['ISO-8859-1', [0x63, 0x61, 0x66, 0xe9]], ['CP1252', [0x80, 0x20, 0x31]], ['SHIFT-JIS', [0x93, 0xfa]], ['KOI8-R', [0xcd, 0xc9, 0xd2]]]) { r.write({ '.git/message': Buffer.from(bytes), 'a.txt': name }); r.git('add', '-A'); r.git('-c', `i18n.commitEncoding=${name}`, 'commit', '-q', '-F', '.git/message'); } }, q('log', { max_count: 5 }), ...[0, 1, 2, 3].map((at) => q('show', { revision: `HEAD~${at}` })));
  scenario('latin names', (r) => { r.history(); writeFileSync(Buffer.concat([Buffer.from(`${r.at}/caf`), Buffer.from([0xe9])]), 'x\n'); r.git('add', '-A'); r.git('commit', '-q', '-m', 'latin'); r.write({ 'a.txt': 'changed\n' }); }, ...look, q('show', { revision: 'HEAD' }), q('log', { max_count: 1 }));
  scenario('long ids', (r) => { rmSync(join(r.at, '.git'), { recursive: true }); r.git('init', '-q', '-b', 'main', '--object-format=sha256'); r.write({ 'a.txt': 'a\n' }); r.git('add', '-A'); r.git('commit', '-q', '-m', 'first'); r.git('tag', 'v1'); r.write({ 'a.txt': 'b\n', 'c.txt': 'c\n' }); }, ...look.slice(0, 3));

  // Many small changes, each looked at.
  for (const seed of [1, 2, 3]) {
    const next = random(seed);
    const text = (lines) => lines.map((line) => `${line}\n`).join('');
    const lines = Array.from({ length: 120 }, (_, at) => (at % 7 === 0 ? `function f${at}() {` : `  ${['a', 'b', 'c', '}', ''][next(5)]} ${next(9)}`));
    const change = (old) => { const now = [...old]; for (let n = 0; n < 6; n++) { const at = next(now.length); if (next(3) === 0) now.splice(at, 1 + next(3)); else if (next(2)) now.splice(at, 0, ...Array.from({ length: 1 + next(3) }, () => `  new ${next(5)}`)); else now[at] = `  changed ${next(99)}`; } return now; };
    const versions = [lines]; for (let n = 0; n < 8; n++) versions.push(change(versions[n]));
    scenario(`edits ${seed}`, (r) => { versions.slice(0, -1).forEach((version, at) => r.commit(`version ${at}`, { 'f.js': text(version) })); r.git('tag', 'v1', 'HEAD~3'); r.write({ 'f.js': text(versions.at(-1)) }); }, ...look, ...Array.from({ length: 7 }, (_, at) => q('show', { revision: `HEAD~${at}` })), ...Array.from({ length: 7 }, (_, at) => q('diff', { target: `HEAD~${at}`, context_lines: at })));
  }
  return all;
}

/** Commits that were made by a call have ids and times of their own; those of the scenario are of 2023. */
function form({ tool }, text) {
  if (tool === 'git_commit') return text?.replace(/[0-9a-f]{40}/, 'ID');
  if (tool === 'git_log') return text?.replace(/Commit: .*\n(Author: .*\nDate: )(?!2023).*/g, '$1');
  if (tool === 'git_show') return text?.replace(/^commit .*\n(Author: .*\nDate: +)(?!2023).*/, '$1');
  return text;
}

async function answers(server, at, home, all) {
  const told = [];
  for (const { make, asked } of all) {
    const repository = new Repository(at, home);
    make(repository);
    // Times of files before that of the index: nothing has to be looked at twice.
    for (const { tool, args } of asked) {
      const result = await server.call(tool, { repo_path: at, ...args });
      const writes = ['git_add', 'git_commit', 'git_reset', 'git_create_branch', 'git_checkout'].includes(tool);
      told.push({ result, left: writes ? repository.state() : undefined });
    }
  }
  return told;
}

/** What repositories might try. Each call must be refused, and say why, and leave what lies outside alone. */
async function hostile(ours, at, home, open, complain) {
  const elsewhere = join(open, 'elsewhere');
  rmSync(elsewhere, { recursive: true, force: true });
  mkdirSync(elsewhere, { recursive: true });
  const attempts = [
    ['git_status', {}, /which is not open to this server/, (r) => { rmSync(join(r.at, '.git'), { recursive: true }); r.write({ '.git': 'gitdir: /etc/repository\n' }); }],
    ['git_status', {}, /objects lies in \/etc\/objects, which is not open/, (r) => { r.history(); r.write({ '.git/objects/info/alternates': '/etc/objects\n' }); }],
    ['git_checkout', { branch_name: 'side' }, /would be overwritten by checkout:\n\tnew/, (r) => { r.history(); r.git('checkout', '-q', 'side'); r.commit('a folder', { 'new/x.txt': 'x\n' }); r.git('checkout', '-q', 'main'); r.write({ new: { link: elsewhere } }); }],
    ['git_add', { files: ['.'] }, /has to go through the filter touch/, (r) => { r.history(); r.git('config', 'filter.touch.clean', `touch ${elsewhere}/ran`); r.write({ '.gitattributes': '*.dat filter=touch\n', 'x.dat': 'x' }); }],
    ['git_status', { repo_path: home }, /lies outside of what is open/, () => {}],
    ['git_checkout', { branch_name: 'evil' }, /no file may have|invalid|Invalid|disallowed/i, (r) => {
      r.history();
      const blob = r.git('rev-parse', 'HEAD:a.txt').trim();
      const inner = r.mktree(`100755 blob ${blob}\tpre-commit\n`);
      r.git('update-ref', 'refs/heads/evil', r.git('commit-tree', r.mktree(`040000 tree ${r.mktree(`040000 tree ${inner}\thooks\n`)}\t.git\n`), '-m', 'evil').trim());
    }],
  ];
  for (const [tool, args, says, make] of attempts) {
    const repository = new Repository(at, home);
    make(repository);
    const result = await ours.call(tool, { repo_path: at, ...args });
    if (!result.isError || !says.test(result.content[0].text)) complain(`git: ${tool} does not refuse with ${says}: ${JSON.stringify(result)}`);
    if (readdirSync(elsewhere).length > 0 || existsSync(join(at, '.git/hooks/pre-commit'))) complain(`git: ${tool} did what a repository wanted: ${says}`);
  }
  // A link that has a name to which a checkout might write on its way, were that name one that can be known.
  const repository = new Repository(at, home);
  repository.history();
  repository.write({ x: `[core]\n\tfsmonitor = touch ${elsewhere}/ran\n`, y: '.git/config' });
  const [file, link] = ['x', 'y'].map((name) => repository.git('hash-object', '-w', name).trim());
  for (const name of ['x', 'y']) unlinkSync(join(at, name));
  const tree = repository.mktree(`120000 blob ${link}\t.wharf-${file}\n100644 blob ${file}\tx\n`);
  repository.git('update-ref', 'refs/heads/evil', repository.git('commit-tree', tree, '-m', 'evil').trim());
  const config = readFileSync(join(at, '.git/config'), 'utf8');
  const result = await ours.call('git_checkout', { repo_path: at, branch_name: 'evil' });
  if (result.isError || readFileSync(join(at, '.git/config'), 'utf8') !== config) complain(`git: a checkout wrote through a link: ${JSON.stringify(result)}`);
}

export async function git({ start, python, home, env, complain, show }) {
  const open = join(home, 'repositories');
  const at = join(open, 'repository');
  mkdirSync(at, { recursive: true });
  const own = { ...env, ...WHO, GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C' };
  const all = scenarios();
  const theirs = await Server.start(python, ['-m', 'mcp_server_git'], { env: own });
  const ours = await start('git', `dirs = [{ host = ${JSON.stringify(open)}, guest = ${JSON.stringify(open)}, access = "read-write" }]`);
  await lists('git', theirs, ours, [], complain);
  const told = [];
  for (const server of [theirs, ours]) {
    told.push(await answers(server, at, home, all));
    if (server === ours) await hostile(ours, at, home, open, complain);
    await server.stop();
  }
  const asked = all.flatMap(({ name, asked }) => asked.map((one) => ({ ...one, name })));
  judge('git', asked, ...told, { intended: INTENDED, complain, show, form });
}
