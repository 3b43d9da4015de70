// `@modelcontextprotocol/client`, which finds out by itself what the server speaks.

import { MODERN } from './approval.mjs';
import { drive, event, fine, job, named, require, stdio } from './shared.mjs';

const { Client, SSEClientTransport, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

function transport(server) {
  if (stdio) return new StdioClientTransport({ command: server.command, args: server.args });
  return new (job.transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport)(new URL(server.url));
}

// SSE is of revisions that have a handshake.
async function connect({ roots, person, server = job, handshake = job.handshake ?? job.transport === 'sse' }) {
  const capabilities = { ...(roots && { roots: {} }), ...(person && { elicitation: {} }) };
  const client = new Client(
    { name: 'matrix', version: '1.0.0' },
    { capabilities, ...(handshake ? {} : { versionNegotiation: { mode: 'auto' } }) },
  );
  if (roots) client.setRequestHandler('roots/list', () => ({ roots }));
  // At 2026-07-28 the library calls this for the questions in a result, and calls again with the answers.
  if (person) client.setRequestHandler('elicitation/create', ({ params }) => person.answer(params));
  let changed = event();
  client.setNotificationHandler('notifications/tools/list_changed', () => changed.happen());
  await client.connect(transport(server));
  const revision = client.getNegotiatedProtocolVersion();
  const subscription = revision === MODERN ? await client.listen({ toolsListChanged: true }) : undefined;
  return {
    revision,
    heard: () => (changed = event()),
    tools: async () => named((await client.listTools()).tools),
    call: async (tool, args) => fine(await client.callTool({ name: tool.name, arguments: args })),
    close: async () => {
      await subscription?.close();
      await client.close();
    },
  };
}

await drive(connect, { emptyRoots: true, approval: { bothEras: job.transport !== 'sse' } });
