// An identity provider that others wrote, `oidc-provider`, on this machine and with what a test needs to be able to do to it: put
// a new key in place of the old one, go away and come back, and give tokens that end soon.

import { randomBytes, generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The scopes of wharf. The provider has them as its own too, because nobody can register with a scope that it does not know. */
export const SCOPES = ['mcp', 'files:read', 'files:write'];

/** The redirect URI of browsers. There is no server at it: clients that follow redirects stop before it. */
export const REDIRECT = 'http://127.0.0.1/callback';

const ACCOUNTS = ['ann', 'ben'];

const common = { redirect_uris: [REDIRECT], response_types: ['code'], application_type: 'native' };
const grants = { grant_types: ['authorization_code', 'refresh_token'] };

/**
 * Clients that the operator registered: one without a secret, as for programs on people's machines; the same with refresh tokens
 * that can be used again, and without any; and one with a secret.
 */
export const CLIENTS = {
  public: { client_id: 'desktop', token_endpoint_auth_method: 'none', ...common, ...grants },
  brief: { client_id: 'brief', token_endpoint_auth_method: 'none', ...common, grant_types: ['authorization_code'] },
  steady: { client_id: 'steady', token_endpoint_auth_method: 'none', ...common, ...grants },
  confidential: {
    client_id: 'service',
    client_secret: randomBytes(32).toString('hex'),
    token_endpoint_auth_method: 'client_secret_basic',
    ...common,
    ...grants,
  },
};

/** Runs `body` without what the library says on the console: that a test is not how it is meant to be run. */
async function quietly(body) {
  const { warn, info } = console;
  console.warn = console.info = () => {};
  try {
    return await body();
  } finally {
    Object.assign(console, { warn, info });
  }
}

/** A pair of keys as a JSON Web Key, and its name. */
function key(algorithm, number) {
  const pair =
    algorithm === 'RS256'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { ...pair.privateKey.export({ format: 'jwk' }), kid: `${algorithm}-${number}`, alg: algorithm, use: 'sig' };
}

/** What the provider remembers, which outlives a change of its keys. */
function memory() {
  const kept = new Map();
  return class Kept {
    constructor(model) {
      this.model = model;
    }
    place(id) {
      return `${this.model} ${id}`;
    }
    async upsert(id, payload) {
      kept.set(this.place(id), payload);
    }
    async find(id) {
      return kept.get(this.place(id));
    }
    async findByUid(uid) {
      return [...kept].find(([place, { uid: own }]) => place.startsWith(`${this.model} `) && own === uid)?.[1];
    }
    async findByUserCode() {
      return undefined;
    }
    async consume(id) {
      kept.get(this.place(id)).consumed = Math.floor(Date.now() / 1000);
    }
    async destroy(id) {
      kept.delete(this.place(id));
    }
    async revokeByGrantId(grant) {
      for (const [place, { grantId }] of kept) if (grantId === grant) kept.delete(place);
    }
  };
}

/** What tokens for a resource are like if nobody says. */
const USUAL = { lifetime: 600, behind: 0, algorithm: 'RS256', format: 'jwt' };

/**
 * Starts a provider. `modules` is the folder with `oidc-provider`.
 *
 * `resources` of what it gives back has what tokens may be asked for, by URL, and what these tokens are like (`offer` changes
 * that at any time): for how many seconds they are good (`lifetime`), by how many seconds the clock they were made with is late
 * (`behind`), what they are signed with (`algorithm`), and whether they can be read (`format`: 'jwt' or 'opaque'). `requests` has
 * the method, path and status of everything the provider was asked for, and when.
 */
export async function startProvider(modules) {
  // The package is an ES module, and is in no folder above this one.
  const entry = createRequire(join(resolve(modules), 'none.js')).resolve('oidc-provider');
  const { default: Provider, errors } = await quietly(() => import(pathToFileURL(entry).href));
  const storage = memory();
  const cookies = { keys: [randomBytes(32).toString('hex')] };
  const keys = [];
  const self = { resources: new Map(), requests: [], issuer: undefined };
  let port = 0;
  let number = 0;
  let provider;
  let server;

  const configuration = () => ({
    adapter: storage,
    clients: Object.values(CLIENTS),
    cookies,
    jwks: { keys: [...keys] },
    scopes: ['openid', 'offline_access', ...SCOPES],
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    pkce: { required: () => true },
    rotateRefreshToken: ({ oidc }) => oidc.client.clientId !== CLIENTS.steady.client_id,
    // By default it gives refresh tokens only with `offline_access`, which not every client asks for.
    issueRefreshToken: (_context, client) => client.grantTypeAllowed('refresh_token'),
    ttl: {
      // A number here would count more than what a resource says.
      AccessToken: (_context, { resourceServer }) => resourceServer?.accessTokenTTL ?? USUAL.lifetime,
      RefreshToken: 3600,
      Grant: 3600,
      Session: 3600,
      Interaction: 600,
      IdToken: 600,
    },
    findAccount: (_context, sub) => (ACCOUNTS.includes(sub) ? { accountId: sub, claims: () => ({ sub }) } : undefined),
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    features: {
      devInteractions: { enabled: false },
      introspection: { enabled: true, allowedPolicy: (_context, { clientSecret }) => clientSecret !== undefined },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        // Without this a refresh gives a token for no resource unless the client names it again.
        useGrantedResource: () => true,
        getResourceServerInfo(_context, resource) {
          const known = self.resources.get(resource);
          if (known === undefined) throw new errors.InvalidTarget();
          const { lifetime: accessTokenTTL, format: accessTokenFormat, algorithm: alg } = known;
          const { kid } = keys.find((key) => key.alg === alg);
          const jwt = { sign: { alg, kid } };
          return { scope: SCOPES.join(' '), audience: resource, accessTokenTTL, accessTokenFormat, jwt };
        },
      },
    },
    formats: {
      customizers: {
        jwt(_context, _token, { payload }) {
          const { behind } = self.resources.get(payload.aud);
          payload.iat -= behind;
          payload.exp -= behind;
        },
      },
    },
  });

  function renew(withdrawn) {
    number += 1;
    const kept = keys.filter(({ alg }) => !withdrawn.includes(alg));
    // The first key of its kind signs; older ones stay published, because their tokens are still about.
    keys.splice(0, keys.length, key('RS256', number), key('ES256', number), ...kept);
  }

  async function load() {
    provider = await quietly(() => new Provider(self.issuer, configuration()));
    provider.on('server_error', (_context, error) => console.error(`the provider failed: ${error.stack}`));
  }

  /** The two pages a person would see: who they are, and whether they agree. Both are answered with a form of one field. */
  async function interact(request, response) {
    const details = await provider.interactionDetails(request, response);
    const { prompt, params, session } = details;
    if (request.method !== 'POST') {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ prompt: prompt.name, accounts: ACCOUNTS, scope: params.scope }));
      return;
    }
    const form = new URLSearchParams(await read(request));
    let result;
    if (prompt.name === 'login') {
      result = { login: { accountId: form.get('account') } };
    } else {
      const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
      // All that is asked for now: a new grant takes the place of what was granted before.
      const asked = [params.resource].flat().filter(Boolean);
      grant.addOIDCScope(params.scope ?? '');
      for (const resource of asked) grant.addResourceScope(resource, params.scope ?? '');
      result = { consent: { grantId: await grant.save() } };
    }
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: prompt.name !== 'login' });
  }

  async function answer(request, response) {
    const [path] = request.url.split('?');
    const told = { method: request.method, path, status: undefined, at: Date.now() };
    self.requests.push(told);
    response.on('finish', () => (told.status = response.statusCode));
    try {
      if (path.startsWith('/interaction/')) await interact(request, response);
      else await provider.callback()(request, response);
    } catch (error) {
      if (!response.headersSent) response.writeHead(500);
      response.end(`${error.name}: ${error.error_description ?? error.message}`);
    }
  }

  /** Listens, the second time on the port it had. */
  self.start = async () => {
    if (server?.listening) return;
    server = createServer(answer).listen(port, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address());
    if (self.issuer === undefined) {
      self.issuer = `http://127.0.0.1:${port}`;
      renew([]);
      await load();
    }
  };

  /** Goes away: connections are closed, and new ones refused. */
  self.stop = async () => {
    if (!server?.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };

  /** Signs with new keys from now on. Of the old ones, those of the algorithms in `withdrawn` are published no more. */
  self.rotate = async (withdrawn = []) => {
    renew(withdrawn);
    await load();
  };

  /** Lets clients ask for tokens for this URL. */
  self.offer = (url, more = {}) => self.resources.set(url, { ...USUAL, ...more });

  /** When the keys were last asked for, in milliseconds of the epoch. */
  self.keysFetched = () => self.requests.findLast(({ path, status }) => path === '/jwks' && status === 200)?.at;

  await self.start();
  return self;
}

export async function read(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts).toString('utf8');
}
