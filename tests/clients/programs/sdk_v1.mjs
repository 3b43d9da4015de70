// `@modelcontextprotocol/sdk`, in whichever version the job names.

import { drive, event, fine, job, named, require, stdio } from './shared.mjs';

const SDK = job.package === 'mcp-remote' ? '@modelcontextprotocol/sdk' : job.package;
const { Client } = require(`${SDK}/client/index.js`);
const types = require(`${SDK}/types.js`);
// The oldest takes the browser's where there is one.
globalThis.EventSource ??= require('eventsource').EventSource;

function transport(server) {
  if (stdio) {
    const { StdioClientTransport } = require(`${SDK}/client/stdio.js`);
    return new StdioClientTransport({ command: server.command, args: server.args });
  }
  if (job.transport === 'sse') {
    const { SSEClientTransport } = require(`${SDK}/client/sse.js`);
    return new SSEClientTransport(new URL(server.url));
  }
  const { StreamableHTTPClientTransport } = require(`${SDK}/client/streamableHttp.js`);
  return new StreamableHTTPClientTransport(new URL(server.url));
}

/** A client with the roots it declares, if any, and the person it can ask, if there is one. */
export async function connect({ roots, person, server = job }, by = transport(server)) {
  const capabilities = { ...(roots && { roots: {} }), ...(person && { elicitation: {} }) };
  const client = new Client({ name: 'matrix', version: '1.0.0' }, { capabilities });
  if (roots) client.setRequestHandler(types.ListRootsRequestSchema, () => ({ roots }));
  if (person) client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => person.answer(params));
  // The library tells nobody but its transport what was agreed on, and the oldest ones not even that.
  let revision = types.LATEST_PROTOCOL_VERSION;
  const tell = by.setProtocolVersion?.bind(by);
  by.setProtocolVersion = (version) => {
    revision = version;
    tell?.(version);
  };
  let changed = event();
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => changed.happen());
  await client.connect(by);
  return {
    revision,
    heard: () => (changed = event()),
    tools: async () => named((await client.listTools()).tools),
    call: async (tool, args) => fine(await client.callTool({ name: tool.name, arguments: args })),
    close: () => client.close(),
  };
}

if (process.argv[1].endsWith('sdk_v1.mjs')) {
  // The oldest has no questions to a person.
  await drive(connect, { emptyRoots: true, approval: { canAsk: 'ElicitRequestSchema' in types } });
}
