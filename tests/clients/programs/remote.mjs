// `mcp-remote`: for its client a server over stdio, for wharf a client over HTTP. What is behind it is the official SDK.

import { join } from 'node:path';
import { connect } from './sdk_v1.mjs';
import { drive, job, modules, require } from './shared.mjs';

const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const proxy = join(modules, 'mcp-remote', 'dist', 'proxy.js');
const options = ['--transport', job.transport === 'sse' ? 'sse-only' : 'http-only', '--allow-http'];

function through(how) {
  const args = [proxy, (how.server ?? job).url, ...options];
  return connect(how, new StdioClientTransport({ command: process.execPath, args, stderr: 'inherit' }));
}

await drive(through, { emptyRoots: true, approval: {} });
