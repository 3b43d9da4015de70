// A server that speaks MCP over its standard streams, asked one request after the other.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const REVISION = '2025-11-25';
const ANSWER_MS = 60_000;

export class Server {
  #child;
  #waiting = new Map();
  #next = 1;
  #stderr = [];

  /** Starts a server and shakes hands with it. */
  static async start(command, args, { env = {}, cwd } = {}) {
    const server = new Server();
    server.#child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: 'pipe' });
    server.#child.on('exit', (code) => server.#end(new Error(`${command} ended with code ${code}`)));
    server.#child.on('error', (error) => server.#end(error));
    // What is written to a server that has ended is seen by its exit.
    server.#child.stdin.on('error', () => {});
    createInterface({ input: server.#child.stderr }).on('line', (line) => server.#stderr.push(line));
    createInterface({ input: server.#child.stdout }).on('line', (line) => server.#take(line));
    await server.request('initialize', {
      protocolVersion: REVISION,
      capabilities: {},
      clientInfo: { name: 'differential', version: '1' },
    });
    server.#send({ method: 'notifications/initialized' });
    return server;
  }

  get pid() {
    return this.#child.pid;
  }

  #send(message) {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  #take(line) {
    const { id, result, error, method } = JSON.parse(line);
    if (method !== undefined) return;
    this.#waiting.get(id)?.resolve({ result, error });
    this.#waiting.delete(id);
  }

  #end(error) {
    const why = new Error([error.message, ...this.#stderr.slice(-5)].join('\n'));
    for (const { reject } of this.#waiting.values()) reject(why);
    this.#waiting.clear();
  }

  /** The result of a request; throws its error. */
  async request(method, params) {
    const { result, error } = await this.#ask(method, params);
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  /** What a tool answers: its result, or an error of the protocol in the form of one. */
  async call(name, args) {
    const { result, error } = await this.#ask('tools/call', { name, arguments: args });
    return result ?? { isError: true, content: [{ type: 'text', text: error.message }] };
  }

  async #ask(method, params) {
    const id = this.#next++;
    const answer = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    const timer = setTimeout(() => this.#end(new Error(`no answer to ${method} within ${ANSWER_MS} ms`)), ANSWER_MS);
    this.#send({ id, method, params });
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
    }
  }

  async stop() {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.stdin.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 5_000);
    await ended;
    clearTimeout(timer);
  }
}
