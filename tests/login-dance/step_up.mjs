// A tool that needs a scope which nobody had to ask for at the login: the client is told, logs in again, and goes on.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { check, expect, expectEqual, expectIn } from './checks.mjs';
import { told } from './door.mjs';

const NEEDED = 'files:write';

/** The scopes that a challenge names. */
const scopesIn = (challenge) => /scope="([^"]*)"/.exec(challenge ?? '')?.[1].split(' ') ?? [];

/** `stepping`: the registered client that the library can do it as. */
export async function stepUp(name, make, { eras, stepping }, wharf, provider) {
  for (const modern of eras ? [false, true] : [false]) {
    const group = `${name}${eras ? (modern ? ', 2026-07-28' : ', handshake') : ''}, step-up`;
    const client = make(wharf.url, { issuer: provider.issuer, client: stepping, account: 'ann', modern });
    const from = wharf.seen.length;
    const entries = () => wharf.seen.slice(from);
    const seen = { seen: () => [...told(entries()), ...wharf.log.slice(-5)] };
    const begun = await check(group, 'login', () => client.connect(), seen);
    if (begun) await check(group, 'a tool that needs more', () => needsMore(client, wharf, entries, modern), seen);
    await check(group, 'close', () => client.close(), seen);
  }
}

async function needsMore(client, wharf, entries, modern) {
  const before = await client.tokens();
  expect(!before.scope.split(' ').includes(NEEDED), () => `the client has ${before.scope} from the start`);
  const path = join(wharf.root, `written-${modern}-${wharf.seen.length}.txt`);
  await client.call('write_file', { path, content: 'written' });
  expectEqual(readFileSync(path, 'utf8'), 'written', 'what is in the file');

  const all = entries();
  const [refused, ...others] = all.filter(({ status }) => status === 403);
  expect(refused !== undefined, 'nothing was answered with 403');
  expectEqual(others.length, 0, 'the number of further answers 403');
  expectEqual([refused.rpc, refused.tool], ['tools/call', 'write_file'], 'what was answered with 403');
  expectIn('error="insufficient_scope"', refused.challenge, 'the challenge');
  expectIn('resource_metadata="', refused.challenge, 'the challenge');
  expect(scopesIn(refused.challenge).includes(NEEDED), () => `the challenge does not name ${NEEDED}: ${refused.challenge}`);

  const visited = await client.visited();
  expectEqual(visited.length, 2, 'the number of logins');
  const asked = new URL(visited[1]).searchParams.get('scope').split(' ');
  const after = await client.tokens();
  for (const scope of ['mcp', NEEDED]) {
    expect(asked.includes(scope), () => `the second login asked for ${asked.join(' ')}, without ${scope}`);
    expect(after.scope.split(' ').includes(scope), () => `the client has ${after.scope} now, without ${scope}`);
  }
  const sessions = new Set(all.flatMap(({ session, given }) => [session, given]).filter(Boolean));
  expectEqual(sessions.size, modern ? 0 : 1, 'the number of sessions');
}
