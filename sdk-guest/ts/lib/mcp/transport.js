// The transport for stdio of the official SDK, without bytes: messages are passed as objects.

import { attach, take } from "./wire.js";

export class StdioServerTransport {
  async start() {
    attach(this);
  }
  async send(message) {
    take(message);
  }
  async close() {
    this.onclose?.();
  }
}
