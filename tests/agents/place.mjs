// What one agent finds: a home of its own with a project in it, wharf's config, a plugin that does not load, and one that comes late.

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
  const broken = join(folder, 'mast.wasm');
  writeFileSync(broken, 'This is no component.');
  const late = { from: join(folder, 'late.wasm'), to: join(dropped, 'late.wasm') };
  copyFileSync(join(plugins, 'echo.wasm'), late.from);

  const files = quoted(join(plugins, 'files.wasm'));
  const dirs = `dirs = [{ host = ${quoted(project)}, guest = ${quoted(project)}, access = "read-write" }]`;
  const config = join(folder, 'wharf.toml');
  const lines = [
    `plugin_dir = ${quoted(dropped)}`,
    '[server]',
    `instructions = ${quoted(INSTRUCTIONS)}`,
    '[plugins.files]',
    `path = ${files}`,
    '[plugins.files.grants]',
    dirs,
    // What is open here, only the agent can say.
    '[plugins.opened]',
    `path = ${files}`,
    'tools = ["list_allowed_directories"]',
    '[plugins.opened.grants]',
    'roots = "read"',
    '[plugins.asked]',
    `path = ${files}`,
    'tools = ["write_file"]',
    'confirm = "writes"',
    '[plugins.asked.grants]',
    dirs,
    '[plugins.echo]',
    `path = ${quoted(join(plugins, 'echo.wasm'))}`,
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  const servers = {
    // All of the above.
    wharf: ['-c', config],
    // One plugin loads, the other one does not; nothing is tried out for arguments after `--`.
    half: ['--', 'run', broken, join(plugins, 'echo.wasm')],
    // Nothing loads.
    wreck: ['--', 'run', broken],
  };
  const written = join(project, 'written.txt');
  // An agent's person puts what it was asked here, a line for each question.
  const asked = join(folder, 'asked.txt');
  return { folder, home, project, text, late, servers, written, asked, isWritten: () => existsSync(written) };
}
