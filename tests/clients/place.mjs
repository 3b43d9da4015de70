// What one combination of client and transport finds: a folder for the tools, a config, an empty plugin folder, and a plugin
// that is put there later.

import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TARGET = fileURLToPath(new URL('../../target/clients', import.meta.url));

/** A picture of one dot. */
const DOT =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** The file that the program writes in each of these checks. */
const WRITTEN = { roots: 'written.txt', 'empty-roots': 'written-empty.txt' };

const quoted = (text) => JSON.stringify(text);

export function prepare(parent, plugins, transport, protocol = []) {
  const folder = mkdtempSync(join(parent, `${transport}-`));
  const [root, late, dir, asked] = ['root', 'late', 'plugins', 'asked'].map((name) => join(folder, name));
  for (const path of [root, late, dir, asked]) mkdirSync(path);
  const made = `made for ${folder}`;
  writeFileSync(join(root, 'made.txt'), made);
  writeFileSync(join(root, 'dot.png'), Buffer.from(DOT, 'base64'));
  copyFileSync(join(plugins, 'echo.wasm'), join(late, 'late.wasm'));

  const opened = (root, more = []) => [
    '[plugins.files]',
    `path = ${quoted(join(plugins, 'files.wasm'))}`,
    ...more,
    '[plugins.files.grants]',
    'roots = "read-write"',
    '[roots]',
    `fixed = [${quoted(root)}]`,
    'from = "both"',
  ];
  const spoken = ['[protocol]', 'sse = true', ...protocol];
  const lines = [`plugin_dir = ${quoted(dir)}`];
  for (const name of ['time', 'echo']) lines.push(`[plugins.${name}]`, `path = ${quoted(join(plugins, `${name}.wasm`))}`);
  // Over stdio the folder and the plugin for files are on the command line instead, as clients' own configurations have them.
  if (transport !== 'stdio') lines.push(...opened(root));
  const config = join(folder, 'wharf.toml');
  writeFileSync(config, `${[...lines, ...spoken].join('\n')}\n`);
  // A wharf of its own, at which a person approves of what writes.
  const asking = join(folder, 'asking.toml');
  writeFileSync(asking, `${[...opened(asked, ['confirm = "writes"']), ...spoken].join('\n')}\n`);

  const files = ['--root', root, '--allow', 'roots=read-write', join(plugins, 'files.wasm')];
  const endpoint = (url) => (transport === 'sse' && url ? new URL('/sse', url).href : (url ?? ''));
  const job = (bin, url, askingUrl) => ({
    transport,
    command: bin,
    args: ['run', '-c', config, ...files],
    url: endpoint(url),
    asked: { command: bin, args: ['run', '-c', asking], url: endpoint(askingUrl), root: asked },
    root,
    made,
    late: { from: join(late, 'late.wasm'), to: join(dir, 'late.wasm'), tool: 'late_echo' },
  });
  return { folder, config, asking, root, made, job };
}

/** The environment of clients and servers. */
export function surroundings(folder) {
  const env = { ...process.env, HOME: join(folder, 'home'), PYTHONPYCACHEPREFIX: join(TARGET, 'pycache') };
  for (const name of ['XDG_CONFIG_HOME', 'XDG_CACHE_HOME', 'XDG_STATE_HOME', 'RUST_LOG', 'PYTHONPATH', 'PYTHONDONTWRITEBYTECODE']) delete env[name];
  mkdirSync(env.HOME);
  return env;
}

/** What is wrong with the file that a check wrote, if it writes one. */
export function seenOnDisk({ root, made }, check) {
  if (!(check in WRITTEN)) return undefined;
  const path = join(root, WRITTEN[check]);
  if (!existsSync(path)) return `${WRITTEN[check]} is not in the folder`;
  return readFileSync(path, 'utf8') === made ? undefined : `${WRITTEN[check]} does not hold what was written`;
}
