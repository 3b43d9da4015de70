// A wharf that takes the tokens of one provider, behind a door of its own, at whose URL clients find it.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serve } from '../conformance/clients/processes.mjs';
import { openDoor } from './door.mjs';

const READY_MS = 30_000;
const quoted = (text) => JSON.stringify(text);

const GRANTS = ['[plugins.files.grants]', 'roots = "read-write"', '[roots]'];

/** What the config has besides, for tools that need a scope of their own. */
const ROLES = [
  '[roles.reader]',
  'when = "anyone"',
  'plugins = ["files"]',
  'tools = ["read_*"]',
  '[roles.writer]',
  'when = { scope = "files:write" }',
  'step_up = true',
  'plugins = ["files"]',
  'tools = ["write_*", "edit_*"]',
];

/** Everybody who gets in may use everything. */
const EVERYBODY = ['[roles.everybody]', 'when = "anyone"', 'plugins = ["*"]'];

/**
 * `where` has the binary (`bin`), the folder of plugins, the environment and a folder to write to. The URL is offered by the
 * provider, with and without a slash, with tokens as `tokens` says. `roles`: serves files, for which scopes are needed, and
 * nothing else. `before(url)` happens before wharf starts.
 */
export async function place(where, name, provider, { tokens = {}, roles = false, before = async () => {} } = {}) {
  const { bin, plugins, env, folder } = where;
  const door = await openDoor();
  const own = join(folder, name);
  const root = join(own, 'root');
  mkdirSync(root, { recursive: true });
  for (const url of [door.url, `${door.url}/`]) provider.offer(url, tokens);
  const plugin = roles ? 'files' : 'echo';
  const config = [
    '[http]',
    `public_url = ${quoted(door.url)}`,
    '[auth]',
    'scopes = ["mcp"]',
    '[[auth.issuers]]',
    `url = ${quoted(provider.issuer)}`,
    `[plugins.${plugin}]`,
    `path = ${quoted(join(plugins, `${plugin}.wasm`))}`,
    'prefix = ""',
    ...(roles ? [...GRANTS, `fixed = [${quoted(root)}]`, ...ROLES] : EVERYBODY),
  ];
  const path = join(own, 'wharf.toml');
  writeFileSync(path, `${config.join('\n')}\n`);
  await before(door.url);
  const server = await serve(bin, path, { env, ms: READY_MS });
  door.target = new URL(server.url);
  // `near` is where it really listens, for many requests of which nothing has to be noted.
  return {
    url: door.url,
    near: server.url,
    root,
    seen: door.seen,
    refuseTogether: door.refuseTogether,
    log: server.log,
    stop: async () => {
      door.close();
      return server.stop();
    },
  };
}
