// Stands before wharf as a proxy that ends TLS would, at the URL that clients use, passes on `Host`, and notes what goes through.
// wharf can take a port of its choice that way, although its config names the URL.

import { once } from 'node:events';
import { createServer, request as send } from 'node:http';
import { read } from './provider.mjs';

/** What a token is called in what is printed: nobody needs more of it than that it is another one. */
export const cut = (token) => token?.replace(/^(Bearer )?(.{6}).*?(.{6})$/s, '$1$2…$3');

/**
 * Opens a door. `seen` has one entry for each request: its method and path, of JSON-RPC the method and the tool, its session and
 * its token, and the status, challenge and session of the answer.
 *
 * `refuseTogether(count)`: as many of the next answers with 401 are passed on at once, when the last of them is there.
 */
export async function openDoor() {
  const self = { seen: [], target: undefined };
  let wanted = 0;
  const gathered = [];
  self.refuseTogether = (count) => (wanted = count);

  /** Passes an answer on, or keeps it until those it goes with are there. */
  function passOn(status, pass) {
    if (status !== 401 || wanted === 0) return pass();
    gathered.push(pass);
    if (gathered.length < wanted) return;
    wanted = 0;
    for (const each of gathered.splice(0)) each();
  }

  const server = createServer(async (request, response) => {
    const body = await read(request).catch(() => '');
    const entry = note(request, body);
    self.seen.push(entry);
    if (self.target === undefined) {
      response.writeHead(502).end();
      return;
    }
    const { hostname, port } = self.target;
    const { connection: _, ...headers } = request.headers;
    const onward = send({ hostname, port, method: request.method, path: request.url, headers, agent: false });
    onward.on('response', (answer) => {
      entry.status = answer.statusCode;
      entry.challenge = answer.headers['www-authenticate'];
      entry.given = answer.headers['mcp-session-id'];
      answer.on('end', () => (entry.ended = true));
      answer.on('error', () => response.destroy());
      passOn(answer.statusCode, () => {
        response.writeHead(answer.statusCode, answer.headers);
        response.flushHeaders();
        answer.pipe(response);
      });
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    onward.end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  self.url = `http://127.0.0.1:${server.address().port}/mcp`;
  self.close = () => {
    server.close();
    server.closeAllConnections();
  };
  return self;
}

function note(request, body) {
  const { authorization, 'mcp-session-id': session } = request.headers;
  let message = {};
  try {
    message = JSON.parse(body);
  } catch {
    // It is not a message.
  }
  const { method: rpc, params } = message ?? {};
  const [path] = request.url.split('?');
  return { at: Date.now(), method: request.method, path, rpc, tool: params?.name, session, token: authorization };
}

/** The entries in a line each. */
export function told(entries) {
  return entries.map(({ method, path, rpc, tool, session, token, status, challenge, given }) => {
    const what = [rpc, tool].filter(Boolean).join(' ');
    const from = `token ${cut(token) ?? 'none'}, session ${cut(session) ?? 'none'}`;
    const more = [challenge && `challenge ${challenge}`, given && `session ${cut(given)}`].filter(Boolean).join(', ');
    return `${method} ${path} ${what} [${from}] → ${status ?? 'no answer'} ${more}`.trimEnd();
  });
}
