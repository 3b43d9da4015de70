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
  const [root, late, dir] = ['root', 'late', 'plugins'].map((name) => join(folder, name));
  for (const path of [root, late, dir]) mkdirSync(path);
  const made = `made for ${folder}`;
  writeFileSync(join(root, 'made.txt'), made);
  writeFileSync(join(root, 'dot.png'), Buffer.from(DOT, 'base64'));
  copyFileSync(join(plugins, 'echo.wasm'), join(late, 'late.wasm'));

  const lines = [`plugin_dir = ${quoted(dir)}`];
  for (const name of ['time', 'echo']) lines.push(`[plugins.${name}]`, `path = ${quoted(join(plugins, `${name}.wasm`))}`);
  // Over stdio the folder and the plugin for files are on the command line instead, as clients' own configurations have them.
  if (transport !== 'stdio') {
    lines.push('[plugins.files]', `path = ${quoted(join(plugins, 'files.wasm'))}`);
    lines.push('[plugins.files.grants]', 'roots = "read-write"');
    lines.push('[roots]', `fixed = [${quoted(root)}]`, 'from = "both"');
  }
  lines.push('[protocol]', 'sse = true', ...protocol);
  const config = join(folder, 'wharf.toml');
  writeFileSync(config, `${lines.join('\n')}\n`);

  const files = ['--root', root, '--allow', 'roots=read-write', join(plugins, 'files.wasm')];
  const job = (bin, url) => ({
    transport,
    command: bin,
    args: ['run', '-c', config, ...files],
    url: transport === 'sse' ? new URL('/sse', url).href : (url ?? ''),
    root,
    made,
    late: { from: join(late, 'late.wasm'), to: join(dir, 'late.wasm'), tool: 'late_echo' },
  });
  return { folder, config, root, made, job };
}

/** The environment of clients and servers. */
export function surroundings(folder) {
  const env = { ...process.env, HOME: join(folder, 'home'), PYTHONPYCACHEPREFIX: join(TARGET, 'pycache') };
  for (const name of ['XDG_CONFIG_HOME', 'XDG_CACHE_HOME', 'RUST_LOG', 'PYTHONPATH', 'PYTHONDONTWRITEBYTECODE']) delete env[name];
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
