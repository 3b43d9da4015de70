// A model on loopback whose turns are scripted. It speaks the APIs that agents use, keeps what each agent sent, and refuses to be a
// proxy: what an agent wants from elsewhere is noted and not fetched.

import { createServer } from 'node:http';
import { once } from 'node:events';
import { gunzipSync } from 'node:zlib';
import * as anthropic from './dialects/anthropic.mjs';
import * as chat from './dialects/chat.mjs';
import * as gemini from './dialects/gemini.mjs';
import * as responses from './dialects/responses.mjs';

const DIALECTS = [anthropic, responses, chat, gemini];

/** What the model says when an agent asks for something that is not part of the script, such as a title. */
const ASIDE = { text: 'Reading a file' };

/**
 * Starts a model. `script.isMine(request)` says whether a request is part of the conversation, and `script.turn(request)` what the
 * model says to it: a text, or a call of a tool. `transcript` has everything that was asked for, in order.
 */
export async function startModel(script) {
  const transcript = [];
  const server = createServer((request, response) => {
    handle(request, response, script, transcript).catch((error) => {
      transcript.push({ what: 'error', error: error.stack });
      if (!response.headersSent) response.writeHead(500, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { type: 'scripted', message: error.message } }));
    });
  });
  // A proxy is asked with CONNECT for a tunnel.
  server.on('connect', (request, socket) => {
    transcript.push({ what: 'elsewhere', url: request.url });
    // A client that is refused may hang up at once.
    socket.on('error', () => {});
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    transcript,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function handle(request, response, script, transcript) {
  const bytes = [];
  for await (const chunk of request) bytes.push(chunk);
  const url = request.url;
  if (/^https?:/.test(url) && !url.includes(request.socket.localPort)) {
    transcript.push({ what: 'elsewhere', url });
    response.writeHead(403).end();
    return;
  }
  const path = new URL(url, 'http://model').pathname;
  const dialect = DIALECTS.find(({ isTurn }) => isTurn(request.method, path));
  response.setHeader('content-type', 'application/json');
  if (dialect === undefined) {
    const known = DIALECTS.map(({ other }) => other(request.method, path)).find(Boolean);
    transcript.push({ what: 'other', method: request.method, path: url });
    response.statusCode = known ? 200 : 404;
    response.end(JSON.stringify(known ?? { error: { type: 'not_found_error', message: `no ${path} here` } }));
    return;
  }
  const body = JSON.parse(decoded(Buffer.concat(bytes), request.headers['content-encoding']));
  const asked = { dialect: dialect.name, ...dialect.read(body) };
  const entry = { what: 'turn', path, body, asked };
  transcript.push(entry);
  entry.said = script.isMine(asked) ? await script.turn(asked) : ASIDE;
  dialect.answer(response, body, entry.said, path);
}

function decoded(bytes, encoding) {
  if (encoding === 'gzip') return gunzipSync(bytes);
  return bytes;
}
