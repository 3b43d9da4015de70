// The two TypeScript libraries, each with its own way to log in. They differ in where they are and in how they finish a login.

import { randomUUID } from 'node:crypto';
import { requireFrom } from '../conformance/clients/arguments.mjs';
import { logIn } from './person.mjs';
import { REDIRECT } from './provider.mjs';

/** How often a login may begin in one step. */
const LOGINS = 2;

/** What the library asks of its application: to keep what it gives, and to send a person to the provider. */
class Login {
  visited = [];
  thrown = [];
  #state = randomUUID();

  /** `client`: one that the provider knows already; without it the library registers one. */
  constructor({ issuer, client, account, tokens }) {
    this.account = account;
    this.kept = tokens && { ...tokens, issuer };
    this.client = client && { ...client, issuer };
    // The library takes an application that can keep a registration for one that registers itself.
    if (!client) this.saveClientInformation = (registered) => (this.client = registered);
  }

  redirectUrl = REDIRECT;
  clientMetadata = {
    client_name: 'login-dance',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
  };
  state = () => this.#state;
  clientInformation = () => this.client;
  tokens = () => this.kept;
  saveTokens = (tokens) => (this.kept = tokens);
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier) => (this.verifier = verifier);
  discoveryState = () => this.discovered;
  saveDiscoveryState = (state) => (this.discovered = state);

  /** The library found that something it was given to keep is worthless. */
  invalidateCredentials(what) {
    this.thrown.push(what);
    if (what === 'all' || what === 'tokens') this.kept = undefined;
    if (what === 'all' || what === 'client') this.client = undefined;
    if (what === 'all' || what === 'discovery') this.discovered = undefined;
  }

  async redirectToAuthorization(url) {
    this.visited.push(url.href);
    this.called = await logIn(url, this.account);
    if (this.called.get('state') !== this.#state) throw new Error('the state came back as another one');
  }
}

/**
 * A client that is not connected yet. `finish(transport, parameters)` ends a login with what the provider called back with.
 */
function dancer(login, makeTransport, client, finish, UnauthorizedError) {
  let transport;
  const code = async (by) => {
    if (!login.called.has('code')) throw new Error(`the provider did not agree: ${login.called}`);
    await finish(by, login.called);
  };
  /** Does `step`, and again after a login if it needs one. */
  async function through(step, by) {
    for (let logins = 0; ; logins += 1) {
      try {
        return await step();
      } catch (error) {
        if (!(error instanceof UnauthorizedError) || logins === LOGINS) throw error;
        await code(by());
      }
    }
  }
  async function call(name, args) {
    const result = await through(
      () => client.callTool({ name, arguments: args }),
      () => transport,
    );
    if (result.isError) throw new Error(JSON.stringify(result.content));
    return JSON.stringify(result.content);
  }
  return {
    tokens: async () => login.kept,
    visited: async () => login.visited,
    thrown: async () => login.thrown,
    connect: () =>
      through(
        () => {
          transport = makeTransport();
          return client.connect(transport);
        },
        () => transport,
      ),
    call,
    together: (count, name, args) => Promise.all(Array.from({ length: count }, () => call(name, args))),
    close: () => client.close(),
  };
}

const info = { name: 'login-dance', version: '1.0.0' };

export function version1(modules, url, options) {
  const require = requireFrom(modules);
  const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
  const { UnauthorizedError } = require('@modelcontextprotocol/sdk/client/auth.js');
  const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const login = new Login(options);
  const transport = () => new StreamableHTTPClientTransport(new URL(url), { authProvider: login });
  const finish = (by, called) => by.finishAuth(called.get('code'));
  return dancer(login, transport, new Client(info), finish, UnauthorizedError);
}

export function version2(modules, url, options) {
  const library = requireFrom(modules)('@modelcontextprotocol/client');
  const { Client, StreamableHTTPClientTransport, UnauthorizedError } = library;
  const login = new Login(options);
  const transport = () => new StreamableHTTPClientTransport(new URL(url), { authProvider: login });
  const client = new Client(info, options.modern ? { versionNegotiation: { mode: 'auto' } } : {});
  return dancer(login, transport, client, (by, called) => by.finishAuth(called), UnauthorizedError);
}
