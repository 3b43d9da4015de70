// What both TypeScript libraries offer under the same names; the programs next to this file add what differs.

export class TypeScript {
  /** Sees every message of the server, once connected. */
  wire;

  constructor(client, transport) {
    this.client = client;
    this.transport = transport;
  }

  async connect() {
    await this.client.connect(this.transport);
    const take = this.transport.onmessage;
    this.transport.onmessage = (message, extra) => {
      this.wire?.(message);
      take(message, extra);
    };
  }

  serverName() {
    return this.client.getServerVersion()?.name;
  }

  async list(kind) {
    switch (kind) {
      case 'tools':
        return (await this.client.listTools()).tools;
      case 'resources':
        return (await this.client.listResources()).resources;
      case 'templates':
        return (await this.client.listResourceTemplates()).resourceTemplates;
      case 'prompts':
        return (await this.client.listPrompts()).prompts;
      default:
        throw new Error(`no such list: ${kind}`);
    }
  }

  read(uri) {
    return this.client.readResource({ uri });
  }

  prompt(name, args) {
    return this.client.getPrompt({ name, arguments: args });
  }

  complete(prompt, name, value) {
    return this.client.complete({ ref: { type: 'ref/prompt', name: prompt }, argument: { name, value } });
  }

  /** The process id of a server over stdio. */
  pid() {
    return this.transport.pid;
  }

  async close() {
    // Only HTTP has sessions to end; without one this does nothing.
    await this.transport.terminateSession?.();
    await this.client.close();
  }
}
