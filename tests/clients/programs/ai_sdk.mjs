// `@ai-sdk/mcp`: the tool set that it makes for the AI SDK.

import { drive, fine, job, require, stdio } from './shared.mjs';

const { createMCPClient } = require('@ai-sdk/mcp');
const { Experimental_StdioMCPTransport: Stdio } = require('@ai-sdk/mcp/mcp-stdio');

async function connect() {
  const client = await createMCPClient({
    transport: stdio ? new Stdio({ command: job.command, args: job.args }) : { type: job.transport, url: job.url },
  });
  return {
    tools: () => client.tools(),
    call: async (tool, args) => fine(await tool.execute(args, { toolCallId: '1', messages: [] })),
    close: () => client.close(),
  };
}

await drive(connect);
