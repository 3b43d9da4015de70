// Logs in with each library in each way it has, calls a tool, and goes on with the session when the token has ended.

import { check, expect, expectEqual, expectIn, sleep, until } from './checks.mjs';
import { told } from './door.mjs';
import { CLIENTS } from './provider.mjs';
import { claims, header } from './requests.mjs';

/** Tokens that are over soon: by a clock that is late, because wharf allows that clocks differ by as much as LEEWAY_S. */
const LEEWAY_S = 30;
export const SHORT = { lifetime: 2, behind: LEEWAY_S - 1 };
const BACK_MS = 5_000;

/** The ways: `client` is one that the provider knows, or undefined for one that registers itself. */
const WAYS = [
  { way: 'registered', modern: false, client: CLIENTS.public },
  { way: 'registers itself', modern: false, client: undefined },
  { way: 'with a secret', modern: false, client: CLIENTS.confidential },
  { way: 'registered', modern: true, client: CLIENTS.public },
  { way: 'registers itself', modern: true, client: undefined },
  // Libraries that refresh for each of several calls need refresh tokens that last: otherwise the provider calls it theft.
  { way: 'several calls at once', modern: false, client: CLIENTS.steady, atOnce: 4 },
  { way: 'several calls at once', modern: true, client: CLIENTS.steady, atOnce: 4 },
  { way: 'URL with a slash', modern: false, client: CLIENTS.public, slash: true },
];

/**
 * All ways of one library. `make(url, options)` gives a client; `eras`: whether it speaks 2026-07-28 too; `once`: whether it
 * refreshes once for several calls; `refusedTogether`: whether it works only if calls that are made at once are refused at once.
 */
export async function dances(name, make, { eras, once, refusedTogether }, wharf, provider) {
  for (const way of WAYS) {
    if (way.modern && !eras) continue;
    const era = eras ? (way.modern ? ', 2026-07-28' : ', handshake') : '';
    const client = once && way.client === CLIENTS.steady ? CLIENTS.public : way.client;
    await dance(`${name}${era}, ${way.way}`, make, { ...way, client, refusedTogether }, wharf, provider);
  }
}

async function dance(group, make, { modern, client: known, slash, atOnce = 1, refusedTogether }, wharf, provider) {
  const url = slash ? `${wharf.url}/` : wharf.url;
  const client = make(url, { issuer: provider.issuer, client: known, account: 'ann', modern });
  const from = wharf.seen.length;
  const entries = () => wharf.seen.slice(from);
  const seen = { seen: () => [...told(entries()), ...wharf.log.slice(-5)] };
  let first;
  const begun = await check(
    group,
    'login',
    async () => {
      await client.connect();
      expectIn('first', await client.call('echo', { message: 'first' }), 'the result');
      first = await client.tokens();
      const visited = await client.visited();
      expectEqual(visited.length, 1, 'the number of logins');
      // With a slash or without: that is one resource, and has one name.
      asked(new URL(visited[0]), wharf.url);
      expectEqual(header(first.access_token).typ, 'at+jwt', 'the type of the token');
      expectEqual(claims(first.access_token).aud, wharf.url, 'the audience of the token');
      expect(typeof first.refresh_token === 'string', 'there is no refresh token');
      if (known) expectIn(known.client_id, visited[0], 'where the person was sent');
      const [before] = entries();
      expectEqual(before.status, 401, 'the status of the first answer');
      expectIn('resource_metadata=', before.challenge, 'its challenge');
    },
    seen,
  );
  // It was shown with the other URL that the session goes on.
  if (begun && !slash) {
    if (refusedTogether && atOnce > 1) wharf.refuseTogether(atOnce);
    await check(group, 'refresh', () => goOn(client, first, { modern, atOnce, known }, entries), seen);
    if (!modern) await check(group, 'the stream comes back', () => comeBack(entries), seen);
  }
  await check(group, 'close', () => client.close(), seen);
}

/** What the provider was asked for. */
function asked(url, resource) {
  const given = Object.fromEntries(url.searchParams);
  expectEqual(given.resource, resource, 'the resource');
  expectEqual(given.code_challenge_method, 'S256', 'the method of PKCE');
  const scopes = given.scope.split(' ').filter((scope) => scope !== 'offline_access');
  expectEqual(scopes, ['mcp'], 'the scopes besides offline_access');
}

/** The token ends, and calls go on as if nothing was. */
async function goOn(client, first, { modern, atOnce, known }, entries) {
  const over = (claims(first.access_token).exp + LEEWAY_S) * 1000;
  await sleep(Math.max(0, over - Date.now()) + 100);
  for (const result of await client.together(atOnce, 'echo', { message: 'second' })) expectIn('second', result, 'the result');
  const second = await client.tokens();
  expect(second.access_token !== first.access_token, 'the token is the one that has ended');
  const used = second.refresh_token === first.refresh_token;
  expectEqual(used, known === CLIENTS.steady, 'that the refresh token is the one that was used');
  expectEqual((await client.visited()).length, 1, 'the number of logins');
  expectEqual(await client.thrown(), [], 'what the client threw away');
  const all = entries();
  expectEqual(all.filter(({ status }) => status === 404 || status >= 500).length, 0, 'the number of answers 404 or 5xx');
  const begins = all.filter(({ rpc, status }) => rpc === 'initialize' && status === 200);
  expectEqual(begins.length, modern ? 0 : 1, 'the number of handshakes');
  const sessions = [...new Set(all.flatMap(({ session, given }) => [session, given]).filter(Boolean))];
  expectEqual(sessions.length, modern ? 0 : 1, 'the number of sessions');
  const calls = all.filter(({ rpc, status }) => rpc === 'tools/call' && status === 200);
  expectEqual(calls.length, 1 + atOnce, 'the number of calls that were answered');
  const old = calls.filter(({ token }) => token === calls[0].token);
  expectEqual(old.length, 1, 'the number of calls that were answered with the first token');
}

/** A client listens again, with another token, after the stream ended with its token. */
async function comeBack(entries) {
  const isStream = ({ method, path, status }) => method === 'GET' && path === '/mcp' && status === 200;
  const streams = () => entries().filter(isStream);
  await until(BACK_MS, () => streams().length >= 2, 'the second stream');
  const [first, second] = streams();
  expect(first.ended, 'the first stream did not end');
  expect(first.token !== second.token, 'both streams have the same token');
}
