// `@langchain/mcp-adapters`: LangChain tools out of its `MultiServerMCPClient`.

import { drive, event, job, named, require, stdio } from './shared.mjs';

const { MultiServerMCPClient } = require('@langchain/mcp-adapters');

async function connect({ server = job }) {
  let changed = event();
  let stale = false;
  const client = new MultiServerMCPClient({
    mcpServers: {
      wharf: stdio
        ? { transport: 'stdio', command: server.command, args: server.args }
        : { transport: job.transport, url: server.url },
    },
    onToolsListChanged: () => {
      stale = true;
      changed.happen();
    },
  });
  await client.initializeConnections();
  return {
    heard: () => (changed = event()),
    tools: async () => {
      // What it once listed it keeps as long as it is connected.
      if (stale) await client.close();
      stale = false;
      return named(await client.getTools());
    },
    call: (tool, args) => tool.invoke(args),
    close: () => client.close(),
  };
}

await drive(connect, { approval: { canAsk: false } });
