// Tokens that a provider gave, and that are not for this or not for whom they are sent by; and those that are.

import { createHmac, createSign, generateKeyPairSync } from 'node:crypto';
import { check, expect, expectAnswer, expectEqual, expectIn } from './checks.mjs';
import { CLIENTS } from './provider.mjs';
import { call, callIn, claims, header, introspected, open, shown, tokensFor } from './requests.mjs';

const GROUP = 'tokens';
const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Somebody else's key, of which the provider knows nothing. */
const rogue = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;

/** The same claims, signed with another key. `kid`: the name the token gives that key. */
export function forged(token, kid = header(token).kid) {
  const text = `${part({ ...header(token), alg: 'RS256', kid })}.${token.split('.')[1]}`;
  return `${text}.${createSign('sha256').update(text).sign(rogue, 'base64url')}`;
}

/** The same signature under other claims. */
export function altered(token, more) {
  const [head, , signature] = token.split('.');
  return `${head}.${part({ ...claims(token), ...more })}.${signature}`;
}

const unsigned = (token) => `${part({ alg: 'none', typ: 'at+jwt' })}.${token.split('.')[1]}.`;

/** Signed with a public key as if that were a shared secret. */
async function confused(token, provider) {
  const response = await fetch(`${provider.issuer}/jwks`);
  const { keys } = await response.json();
  const text = `${part({ alg: 'HS256', typ: 'at+jwt', kid: keys[0].kid })}.${token.split('.')[1]}`;
  return `${text}.${createHmac('sha256', JSON.stringify(keys[0])).update(text).digest('base64url')}`;
}

export async function refusals(wharf, provider) {
  const resource = wharf.url;
  const other = new URL('/other', resource).href;
  provider.offer(other);
  const desktop = (more = {}) => tokensFor(provider, CLIENTS.public, { resource, ...more });
  const set = (more) => provider.offer(resource, more);
  const answers = async (name, token, status, ...parts) =>
    check(GROUP, `${name}: ${status}`, async () => {
      const answer = await call(wharf.near, token);
      expectAnswer(answer, status, parts, shown);
      if (status === 200) expectIn('hello', answer.text, 'the result');
      else expect(!answer.text.includes('"result"'), () => `a refusal with a result: ${shown(answer)}`);
    });
  const invalid = 'error="invalid_token"';

  const ann = await desktop({ scope: 'openid mcp' });
  const ben = await desktop({ account: 'ben' });
  await answers('signed with RS256', ann.access_token, 200);
  set({ algorithm: 'ES256' });
  await answers('signed with ES256', (await desktop()).access_token, 200);
  set({});
  const { access_token: secret } = await tokensFor(provider, CLIENTS.confidential, { resource });
  await answers('of a client with a secret', secret, 200);

  await answers('none', undefined, 401, 'resource_metadata=', 'scope="mcp"');
  await answers('for another resource', (await desktop({ resource: other })).access_token, 401, invalid, 'audience');
  await answers('an ID token', ann.id_token, 401, invalid);
  await answers('a refresh token', ann.refresh_token, 401, invalid);
  const { access_token: narrow } = await desktop({ scope: 'files:read' });
  await answers('without a scope that all need', narrow, 403, 'insufficient_scope', 'scope="mcp files:read"');
  set({ lifetime: 1, behind: 60 });
  await answers('that has ended', (await desktop()).access_token, 401, invalid, 'expired');
  set({ behind: -60 });
  await answers('of a provider whose clock is a minute early', (await desktop()).access_token, 401, invalid, 'future');
  set({ format: 'opaque' });
  const opaque = (await desktop()).access_token;
  await check(GROUP, 'the provider says of an opaque one that it is good', async () => {
    const said = await introspected(provider, CLIENTS.confidential, opaque);
    expectEqual([said.active, said.aud, said.scope, said.sub], [true, resource, 'mcp', 'ann'], 'what it says');
  });
  await answers('an opaque one', opaque, 401, invalid);
  set({});
  await answers('altered', altered(ann.access_token, { sub: 'ben' }), 401, invalid);
  await answers('signed with another key', forged(ann.access_token), 401, invalid);
  await answers('without a signature', unsigned(ann.access_token), 401, invalid);
  await answers('signed with what is public', await confused(ann.access_token, provider), 401, invalid);

  await check(GROUP, "another's token in a session: 404, and the session goes on", async () => {
    const opened = await open(wharf.near, ann.access_token);
    const session = opened.headers['mcp-session-id'];
    expect(opened.status === 200 && session, () => shown(opened));
    const mine = await callIn(wharf.near, ann.access_token, session);
    expectEqual(mine.status, 200, 'the status of the first call of whom it belongs to');
    const theirs = await callIn(wharf.near, ben.access_token, session);
    expectEqual(theirs.status, 404, "the status of the other's call");
    expectEqual((await call(wharf.near, ben.access_token)).status, 200, "the status of the other's call without a session");
    const renewed = await desktop();
    const again = await callIn(wharf.near, renewed.access_token, session);
    expectEqual(again.status, 200, 'the status of a call with another token of whom it belongs to');
  });
}
