// An MCP server by the official TypeScript SDK, behind Hono, as jco serves it in a component that exports `wasi:http/incoming-handler`.

import { fire } from '@bytecodealliance/jco-std/wasi/0.2.12/http/adapters/hono/server';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { Hono } from 'hono';
import * as z from 'zod';

const handler = createMcpHandler(() => {
  const server = new McpServer({ name: 'notes', version: '1.0.0' }, { instructions: 'Notes of a town.' });
  server.registerTool(
    'greet',
    { description: 'Greets', inputSchema: z.object({ name: z.string() }) },
    async ({ name }) => ({ content: [{ type: 'text', text: `Hello, ${name}!` }] }),
  );
  server.registerResource('note', 'note:///today', { mimeType: 'text/plain' }, async (uri) => ({
    contents: [{ uri: uri.href, text: 'rain' }],
  }));
  server.registerPrompt(
    'ask',
    { description: 'Asks', argsSchema: z.object({ about: z.string() }) },
    ({ about }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Tell me of ${about}` } }] }),
  );
  return server;
});

const app = new Hono();
app.all('/mcp', (context) => handler.fetch(context.req.raw));
fire(app);

export { incomingHandler } from '@bytecodealliance/jco-std/wasi/0.2.12/http/adapters/hono/server';
