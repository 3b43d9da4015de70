// The checks by `@modelcontextprotocol/client`: a handshake at exactly one revision, or 2026-07-28, pinned or found (`auto`).

import { clientArguments, requireFrom } from './arguments.mjs';
import { runChecks } from './checks.mjs';
import { check, expectEqual } from './report.mjs';
import { TypeScript } from './typescript.mjs';

const { modules, revision, url, stdio, command, args } = clientArguments();
const require = requireFrom(modules);
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const MODERN = '2026-07-28';

/** How this library is told which revision to speak. */
function negotiation() {
  if (revision === 'auto') return { versionNegotiation: { mode: 'auto' } };
  if (revision === MODERN) return { versionNegotiation: { mode: { pin: MODERN } } };
  return { supportedProtocolVersions: [revision] };
}

class Adapter extends TypeScript {
  constructor() {
    const capabilities = { elicitation: {}, sampling: {}, roots: { listChanged: true } };
    super(
      new Client({ name: 'typescript-client', version: '1.0.0' }, { capabilities, ...negotiation() }),
      stdio
        ? new StdioClientTransport({ command, args, stderr: 'inherit' })
        : new StreamableHTTPClientTransport(new URL(url)),
    );
    this.client.setRequestHandler('elicitation/create', (request) => this.elicit(request.params));
    this.client.setRequestHandler('sampling/createMessage', (request) => this.sample(request.params));
    this.client.setRequestHandler('roots/list', (request) => this.roots(request.params));
  }

  revision() {
    return this.client.getNegotiatedProtocolVersion();
  }

  call(name, args, options) {
    return this.client.callTool({ name, arguments: args }, options);
  }

  /** Calls `heard` at each change of the tools, until what it answers is called. */
  async watchTools(heard) {
    this.client.setNotificationHandler('notifications/tools/list_changed', heard);
    if (this.revision() !== MODERN) return () => {};
    const subscription = await this.client.listen({ toolsListChanged: true });
    expectEqual(subscription.honoredFilter, { toolsListChanged: true }, 'what the server agreed to announce');
    return async () => {
      await subscription.close();
      expectEqual(await subscription.closed, 'local', 'who ended the subscription');
    };
  }
}

const client = new Adapter();
if (await check('connect', () => client.connect())) {
  await runChecks(client, { revision: revision === 'auto' ? MODERN : revision, stdio });
}
process.exit(0);
