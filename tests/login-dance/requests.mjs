// Tokens and calls without any client library: for what no client would send, and for many of them.

import { createHash, randomBytes } from 'node:crypto';
import { logIn } from './person.mjs';
import { REDIRECT } from './provider.mjs';

const ANSWER_MS = 10_000;
const within = () => ({ signal: AbortSignal.timeout(ANSWER_MS) });

/** Asks the token endpoint of a provider as this client. */
async function token(provider, client, parameters) {
  const headers = {};
  const body = new URLSearchParams(parameters);
  if (client.client_secret) headers.Authorization = basic(client);
  else body.set('client_id', client.client_id);
  const response = await fetch(`${provider.issuer}/token`, { method: 'POST', headers, body, ...within() });
  const answer = await response.json();
  if (!response.ok) throw new Error(`the token endpoint answered ${response.status}: ${JSON.stringify(answer)}`);
  return answer;
}

const basic = ({ client_id, client_secret }) => `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`;

/** Logs `account` in and asks for tokens: all that the provider gives. Without `resource` they are for no resource. */
export async function tokensFor(provider, client, { account = 'ann', scope = 'mcp', resource } = {}) {
  const verifier = randomBytes(32).toString('base64url');
  const url = new URL(`${provider.issuer}/auth`);
  const parameters = {
    client_id: client.client_id,
    redirect_uri: REDIRECT,
    response_type: 'code',
    scope,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...(resource && { resource }),
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  const called = await logIn(url, account);
  if (!called.has('code')) throw new Error(`no code: ${called}`);
  return token(provider, client, {
    grant_type: 'authorization_code',
    code: called.get('code'),
    redirect_uri: REDIRECT,
    code_verifier: verifier,
    ...(resource && { resource }),
  });
}

export async function refreshed(provider, client, { refresh_token }, resource) {
  return token(provider, client, { grant_type: 'refresh_token', refresh_token, resource });
}

/** What the provider says of a token to a client with a secret. */
export async function introspected(provider, client, given) {
  const body = new URLSearchParams({ token: given });
  const headers = { Authorization: basic(client) };
  const response = await fetch(`${provider.issuer}/token/introspection`, { method: 'POST', headers, body, ...within() });
  return response.json();
}

/** The claims of a token, unchecked. */
export const claims = (given) => JSON.parse(Buffer.from(given.split('.')[1], 'base64url').toString('utf8'));
export const header = (given) => JSON.parse(Buffer.from(given.split('.')[0], 'base64url').toString('utf8'));

async function post(url, given, message, more = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      ...(given && { Authorization: `Bearer ${given}` }),
      ...more,
    },
    body: JSON.stringify(message),
    ...within(),
  });
  const text = await response.text();
  const headers = Object.fromEntries(
    ['www-authenticate', 'retry-after', 'mcp-session-id'].map((name) => [name, response.headers.get(name)]),
  );
  return { status: response.status, headers, text };
}

const REVISION = '2025-11-25';
const info = { name: 'login-dance', version: '1.0.0' };

/** A call of the modern revision, which needs no session. */
export function call(url, given, message = 'hello') {
  const revision = '2026-07-28';
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': revision,
    'io.modelcontextprotocol/clientInfo': info,
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = { name: 'echo', arguments: { message }, _meta };
  const headers = { 'MCP-Protocol-Version': revision, 'Mcp-Method': 'tools/call', 'Mcp-Name': 'echo' };
  return post(url, given, { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, headers);
}

/** Opens a session, whose id is in the answer. */
export function open(url, given) {
  const params = { protocolVersion: REVISION, capabilities: {}, clientInfo: info };
  return post(url, given, { jsonrpc: '2.0', id: 1, method: 'initialize', params });
}

/** A call in a session. */
export function callIn(url, given, session) {
  const params = { name: 'echo', arguments: { message: 'hello' } };
  const headers = { 'MCP-Protocol-Version': REVISION, 'Mcp-Session-Id': session };
  return post(url, given, { jsonrpc: '2.0', id: 2, method: 'tools/call', params }, headers);
}

/** An answer in a line. */
export function shown({ status, headers, text }) {
  const some = Object.entries(headers).flatMap(([name, value]) => (value === null ? [] : [`${name}: ${value}`]));
  return [`status ${status}`, ...some, text.slice(0, 300)].join('; ');
}
