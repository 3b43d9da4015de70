// A provider that goes away, comes back and changes its keys, while tokens are in use.

import { check, expect, expectEqual, expectIn, sleep } from './checks.mjs';
import { told } from './door.mjs';
import { CLIENTS } from './provider.mjs';
import { altered, forged } from './refusals.mjs';
import { call, callIn, open, refreshed, shown, tokensFor } from './requests.mjs';

/** The least time between two attempts of wharf to fetch keys, and what a request may take besides. */
const AGAIN_MS = 30_000;
const SLACK_MS = 2_000;
const POLL_MS = 200;
/** How many calls there are at least before keys change and after, and how many at once. They go on while the keys change. */
const BEFORE = 150;
const AFTER = 350;
const AT_ONCE = 8;
const TOKENS = 10;
const ROTATION_MS = 30_000;

const several = (count, make) => Promise.all(Array.from({ length: count }, (_, at) => make(at)));

/** Keys that are known stay good while their provider is away. */
export async function away(wharf, provider) {
  const resource = wharf.url;
  await check('provider away', 'tokens with known keys are good, in a session and without', async () => {
    const [used, fresh] = await several(2, () => tokensFor(provider, CLIENTS.public, { resource }));
    expectEqual((await call(wharf.near, used.access_token)).status, 200, 'the status before');
    const session = (await open(wharf.near, used.access_token)).headers['mcp-session-id'];
    await provider.stop();
    try {
      for (const { access_token } of [used, fresh]) {
        const answer = await call(wharf.near, access_token);
        expect(answer.status === 200, () => shown(answer));
        const inside = await callIn(wharf.near, access_token, session);
        expect(inside.status === 200, () => shown(inside));
      }
      const bad = await call(wharf.near, altered(used.access_token, { sub: 'ben' }));
      expect([401, 503].includes(bad.status), () => `an altered one: ${shown(bad)}`);
    } finally {
      await provider.start();
    }
  });
}

/** New keys while calls go on: no good token is refused, and no other taken. */
export async function rotation(wharf, provider) {
  const resource = wharf.url;
  const group = 'new keys';
  const login = () => tokensFor(provider, CLIENTS.public, { resource });
  const used = await several(TOKENS, login);
  // Signed with the old keys, and shown to wharf only when there are new ones.
  const unused = await several(TOKENS, login);
  provider.offer(resource, { algorithm: 'ES256' });
  const withdrawn = await login();
  provider.offer(resource);
  // So that the first token with a new key makes wharf fetch it: within this time it would not.
  await sleep(Math.max(0, provider.keysFetched() + AGAIN_MS + 500 - Date.now()));

  const good = used.map(({ access_token }) => access_token);
  const bad = [];
  const count = { good: 0, bad: 0, signedAnew: 0 };
  const wrong = [];
  let signedAnew = new Set();

  async function renew() {
    await provider.rotate(['ES256']);
    const renewed = await Promise.all(used.map((tokens) => refreshed(provider, CLIENTS.public, tokens, resource)));
    provider.offer(resource, { algorithm: 'ES256' });
    renewed.push(await login());
    provider.offer(resource);
    const texts = renewed.map(({ access_token }) => access_token);
    signedAnew = new Set(texts);
    good.push(...texts, ...unused.map(({ access_token }) => access_token));
    // The first with a new key comes before others that name keys nobody has.
    await one(texts[0], true);
    bad.push(forged(texts[0]), forged(texts[0], 'unknown'), altered(texts[1], { sub: 'ben' }), forged(used[0].access_token));
  }

  async function one(token, wanted) {
    const answer = await call(wharf.near, token, 'under load');
    const taken = answer.status === 200 && answer.text.includes('under load');
    count[wanted ? 'good' : 'bad'] += 1;
    if (signedAnew.has(token)) count.signedAnew += 1;
    const invalid = (answer.headers['www-authenticate'] ?? '').includes('invalid_token');
    // Of a bad one nobody may know yet that it is bad, if the provider was asked too often.
    const fits = wanted ? taken : (answer.status === 401 && invalid) || answer.status === 503;
    if (!fits) wrong.push(`${wanted ? 'a good' : 'a bad'} token, call ${count.good + count.bad}: ${shown(answer)}`);
  }

  let next = 0;
  let last = Infinity;
  async function caller() {
    while (next < last) {
      const at = (next += 1);
      if (at === BEFORE) {
        await renew();
        last = next + AFTER;
      } else if (bad.length > 0 && at % 5 === 0) {
        await one(bad[(at / 5) % bad.length], false);
      } else {
        await one(good[at % good.length], true);
      }
    }
  }

  const sound = await check(
    group,
    'calls before, meanwhile and after',
    async () => {
      await several(AT_ONCE, caller);
      expect(wrong.length === 0, () => `${wrong.length} of ${count.good + count.bad} answers were wrong`);
      expect(count.signedAnew > AFTER / 5 && count.bad > AFTER / 10, () => `too few: ${JSON.stringify(count)}`);
      return `${count.good} with good tokens, ${count.signedAnew} of them signed with new keys, ${count.bad} with bad ones`;
    },
    { ms: ROTATION_MS, seen: () => [...wrong.slice(0, 5), ...wharf.log.slice(-5)] },
  );
  // Calls that are still running then are ignored.
  last = 0;
  if (!sound) return;
  await check(group, 'a token of a key that was withdrawn is not taken', async () => {
    const answer = await call(wharf.near, withdrawn.access_token);
    // The provider may have been asked too often to know whether it has that key again.
    expect([401, 503].includes(answer.status), () => shown(answer));
  });
}

/**
 * A provider that is away when wharf starts: clients are told to come again, keep their tokens, and need no login once it is
 * there. `start(before)` starts wharf, after `before(url)`; `libraries` has names and what makes a client.
 */
export async function late(start, provider, libraries) {
  const group = 'provider away at the start';
  let tokens;
  const wharf = await start(async (resource) => {
    tokens = await tokensFor(provider, CLIENTS.public, { resource });
    await provider.stop();
  });
  const seen = { seen: () => [...told(wharf.seen), ...wharf.log.slice(-5)] };
  try {
    await check(group, 'a good token: 503 and when to come again', async () => {
      const answer = await call(wharf.near, tokens.access_token);
      const { 'retry-after': again, 'www-authenticate': challenge } = answer.headers;
      expect(answer.status === 503 && Number(again) >= 1 && challenge === null, () => shown(answer));
    });
    await check(group, 'no token: 401', async () => {
      expectEqual((await call(wharf.near, undefined)).status, 401, 'the status');
    });
    const knocked = await Promise.all(
      libraries.map(([name, make]) => check(group, `${name} keeps its token`, () => knock(make, wharf, provider, tokens), seen)),
    );
    await check(group, 'it comes', () => comes(wharf, provider, tokens), { ms: AGAIN_MS + 2 * SLACK_MS, ...seen });
    await Promise.all(
      libraries
        .filter((_, at) => knocked[at])
        .map(([name, make]) => check(group, `${name} needs no login then`, () => enter(make, wharf, provider, tokens), seen)),
    );
    await check(group, 'new keys just after keys were fetched', () => soon(wharf, provider), seen);
  } finally {
    await provider.start();
    const code = await wharf.stop();
    if (code !== 0) await check(group, 'the end of wharf', () => expectEqual(code, 0, 'the exit code'));
  }
}

/** A client that has logged in before. */
function withTokens({ issuer }, tokens) {
  return { issuer, client: CLIENTS.public, account: 'ann', modern: false, tokens };
}

/** A client with a good token is turned away, and takes that for no reason to log in. */
async function knock(make, wharf, provider, tokens) {
  const client = make(wharf.url, withTokens(provider, tokens));
  const failed = await client.connect().then(
    () => undefined,
    (error) => error,
  );
  const [kept, visited, thrown] = [await client.tokens(), await client.visited(), await client.thrown()];
  await client.close();
  expect(failed !== undefined, 'it connected');
  expectEqual(kept?.access_token, tokens.access_token, 'the token it has');
  expectEqual([visited, thrown], [[], []], 'where it sent the person, and what it threw away');
}

/** What the same client does later. */
async function enter(make, wharf, provider, tokens) {
  const client = make(wharf.url, withTokens(provider, tokens));
  await client.connect();
  expectIn('late', await client.call('echo', { message: 'late' }), 'the result');
  expectEqual(await client.visited(), [], 'where it sent the person');
  await client.close();
}

/** The provider comes; until wharf asks it again, tokens are turned away with 503 and never with 401. */
async function comes(wharf, provider, { access_token }) {
  await provider.start();
  const start = Date.now();
  for (;;) {
    const answer = await call(wharf.near, access_token);
    const took = Date.now() - start;
    if (answer.status === 200) return `after ${(took / 1000).toFixed(1)} s`;
    expect(answer.status === 503, () => `after ${took} ms: ${shown(answer)}`);
    expect(took < AGAIN_MS + SLACK_MS, () => `still, after ${took} ms: ${shown(answer)}`);
    await sleep(POLL_MS);
  }
}

/** wharf may not ask for keys again yet, so it cannot know whether the token is good. A 401 would say that it is not. */
async function soon(wharf, provider) {
  await provider.rotate();
  const { access_token } = await tokensFor(provider, CLIENTS.public, { resource: wharf.url });
  const answer = await call(wharf.near, access_token);
  expect(answer.status === 200 || answer.status === 503, () => `a good token: ${shown(answer)}`);
}
