// `@modelcontextprotocol/client`, which finds out by itself what the server speaks.

import { drive, event, fine, job, named, require, stdio } from './shared.mjs';

const { Client, SSEClientTransport, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const MODERN = '2026-07-28';

function transport() {
  if (stdio) return new StdioClientTransport({ command: job.command, args: job.args });
  return new (job.transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport)(new URL(job.url));
}

async function connect(roots) {
  const capabilities = roots ? { roots: {} } : {};
  const client = new Client(
    { name: 'matrix', version: '1.0.0' },
    // SSE is of revisions that have a handshake.
    { capabilities, ...(job.transport === 'sse' ? {} : { versionNegotiation: { mode: 'auto' } }) },
  );
  if (roots) client.setRequestHandler('roots/list', () => ({ roots }));
  let changed = event();
  client.setNotificationHandler('notifications/tools/list_changed', () => changed.happen());
  await client.connect(transport());
  const modern = client.getNegotiatedProtocolVersion() === MODERN;
  const subscription = modern ? await client.listen({ toolsListChanged: true }) : undefined;
  return {
    heard: () => (changed = event()),
    tools: async () => named((await client.listTools()).tools),
    call: async (tool, args) => fine(await client.callTool({ name: tool.name, arguments: args })),
    close: async () => {
      await subscription?.close();
      await client.close();
    },
  };
}

await drive(connect, { emptyRoots: true });
