// The checks by `@modelcontextprotocol/sdk`, which offers the newest of the handshake revisions.

import { clientArguments, requireFrom } from './arguments.mjs';
import { runChecks } from './checks.mjs';
import { check } from './report.mjs';
import { TypeScript } from './typescript.mjs';

const { modules, revision, url, stdio, command, args } = clientArguments();
const require = requireFrom(modules);
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
const types = require('@modelcontextprotocol/sdk/types.js');

class Adapter extends TypeScript {
  #revision;

  constructor() {
    const capabilities = { elicitation: {}, sampling: {}, roots: { listChanged: true } };
    super(
      new Client({ name: 'typescript-sdk', version: '1.0.0' }, { capabilities }),
      stdio
        ? new StdioClientTransport({ command, args, stderr: 'inherit' })
        : new StreamableHTTPClientTransport(new URL(url)),
    );
    this.client.setRequestHandler(types.ElicitRequestSchema, (request) => this.elicit(request.params));
    this.client.setRequestHandler(types.CreateMessageRequestSchema, (request) => this.sample(request.params));
    this.client.setRequestHandler(types.ListRootsRequestSchema, (request) => this.roots(request.params));
    // The library tells nobody but its transport what was agreed on.
    const tell = this.transport.setProtocolVersion?.bind(this.transport);
    this.transport.setProtocolVersion = (version) => {
      this.#revision = version;
      tell?.(version);
    };
  }

  revision() {
    return this.#revision;
  }

  call(name, args, options) {
    return this.client.callTool({ name, arguments: args }, types.CallToolResultSchema, options);
  }

  /** Calls `heard` at each change of the tools, until what it answers is called. */
  watchTools(heard) {
    this.client.setNotificationHandler(types.ToolListChangedNotificationSchema, heard);
    return () => this.client.removeNotificationHandler('notifications/tools/list_changed');
  }
}

const client = new Adapter();
if (await check('connect', () => client.connect())) await runChecks(client, { revision, stdio });
process.exit(0);
