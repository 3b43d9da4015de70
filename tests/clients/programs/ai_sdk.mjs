// `@ai-sdk/mcp`: the tool set that it makes for the AI SDK.

import { drive, fine, job, require, stdio } from './shared.mjs';

const { createMCPClient, ElicitationRequestSchema } = require('@ai-sdk/mcp');
const { Experimental_StdioMCPTransport: Stdio } = require('@ai-sdk/mcp/mcp-stdio');

async function connect({ person, server = job, handshake = false }) {
  const client = await createMCPClient({
    transport: stdio ? new Stdio({ command: server.command, args: server.args }) : { type: job.transport, url: server.url },
    capabilities: person ? { elicitation: {} } : {},
    protocolVersionDiscovery: !handshake,
  });
  // At 2026-07-28 the library calls this for the questions in a result, and calls again with the answers.
  if (person) client.onElicitationRequest(ElicitationRequestSchema, ({ params }) => person.answer(params));
  return {
    revision: client.initializeResult.protocolVersion,
    tools: () => client.tools(),
    call: async (tool, args) => fine(await tool.execute(args, { toolCallId: '1', messages: [] })),
    close: () => client.close(),
  };
}

// SSE is of revisions that have a handshake.
await drive(connect, { approval: { bothEras: job.transport !== 'sse' } });
