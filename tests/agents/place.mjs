// What one agent finds: a home of its own with a project in it, wharf's config, plugins that do not load, and one that comes late.

import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A text that shows whether it was escaped: it has indents, quotes, backslashes, and letters beyond ASCII, as source code has. */
export const MARK = 'marked-4711';
const LINES = ['{', '\t"crane": "C:\\\\harbour\\\\étrave",', '\t"lifts": [12, 30], // tonnes, metres: 起重机', '},'];
const TEXT = [`// ${MARK}`, ...Array.from({ length: 40 }, () => LINES).flat(), ''].join('\n');

/** What the config tells the model. */
export const INSTRUCTIONS = 'The harbour master of berth 12 wants whole sentences.';

const quoted = (text) => JSON.stringify(text);

export function makePlace(folder, plugins) {
  rmSync(folder, { recursive: true, force: true });
  const home = join(folder, 'home');
  const project = join(home, 'project');
  const dropped = join(folder, 'dropped');
  for (const path of [project, dropped]) mkdirSync(path, { recursive: true });
  const text = { path: join(project, 'crane.jsonc'), content: TEXT };
  writeFileSync(text.path, TEXT);
  const [mast, keel] = ['mast.wasm', 'keel.wasm'].map((name) => join(folder, name));
  for (const path of [mast, keel]) writeFileSync(path, 'not a component');
  const late = { from: join(folder, 'late.wasm'), to: join(dropped, 'late.wasm') };
  copyFileSync(join(plugins, 'echo.wasm'), late.from);

  const files = `path = ${quoted(join(plugins, 'files.wasm'))}`;
  const echo = `path = ${quoted(join(plugins, 'echo.wasm'))}`;
  const dirs = `dirs = [{ host = ${quoted(project)}, guest = ${quoted(project)}, access = "read-write" }]`;
  const config = (name, lines) => {
    const path = join(folder, `${name}.toml`);
    writeFileSync(path, `${lines.join('\n')}\n`);
    return ['-c', path];
  };
  const servers = {
    wharf: config('wharf', [
      `plugin_dir = ${quoted(dropped)}`,
      '[server]',
      `instructions = ${quoted(INSTRUCTIONS)}`,
      '[plugins.files]',
      files,
      '[plugins.files.grants]',
      dirs,
      '[plugins.echo]',
      echo,
    ]),
    // What is open here, only the agent can say.
    opened: config('opened', ['[plugins.opened]', files, '[plugins.opened.grants]', 'roots = "read"']),
    // A person approves of what writes.
    asked: config('asked', ['[plugins.asked]', files, 'confirm = "writes"', '[plugins.asked.grants]', dirs]),
    // One plugin loads, the other one does not; nothing is tried out for arguments after `--`.
    half: ['--', 'run', mast, join(plugins, 'echo.wasm')],
    // Nothing loads.
    wreck: ['--', 'run', keel],
  };
  const written = join(project, 'written.txt');
  // An agent's person puts what it was asked here, a line for each question.
  const asked = join(folder, 'asked.txt');
  return { folder, home, project, text, late, servers, written, asked, isWritten: () => existsSync(written) };
}
