// `@modelcontextprotocol/sdk`, in whichever version the job names.

import { drive, event, fine, job, named, require, stdio } from './shared.mjs';

const SDK = job.package === 'mcp-remote' ? '@modelcontextprotocol/sdk' : job.package;
const { Client } = require(`${SDK}/client/index.js`);
const types = require(`${SDK}/types.js`);
// The oldest takes the browser's where there is one.
globalThis.EventSource ??= require('eventsource').EventSource;

function transport() {
  if (stdio) {
    const { StdioClientTransport } = require(`${SDK}/client/stdio.js`);
    return new StdioClientTransport({ command: job.command, args: job.args });
  }
  if (job.transport === 'sse') {
    const { SSEClientTransport } = require(`${SDK}/client/sse.js`);
    return new SSEClientTransport(new URL(job.url));
  }
  const { StreamableHTTPClientTransport } = require(`${SDK}/client/streamableHttp.js`);
  return new StreamableHTTPClientTransport(new URL(job.url));
}

/** A client with the roots it declares, if any. */
export async function connect(roots, by = transport()) {
  const client = new Client({ name: 'matrix', version: '1.0.0' }, { capabilities: roots ? { roots: {} } : {} });
  if (roots) client.setRequestHandler(types.ListRootsRequestSchema, () => ({ roots }));
  let changed = event();
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => changed.happen());
  await client.connect(by);
  return {
    heard: () => (changed = event()),
    tools: async () => named((await client.listTools()).tools),
    call: async (tool, args) => fine(await client.callTool({ name: tool.name, arguments: args })),
    close: () => client.close(),
  };
}

if (process.argv[1].endsWith('sdk_v1.mjs')) await drive(connect, { emptyRoots: true });
