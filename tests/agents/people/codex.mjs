// The person at Codex: asks one question over the interface that editors use, says yes to what servers ask, and writes down what the
// question was. What Codex tells is printed as it is.
//
//   node codex.mjs PROGRAM FILE QUESTION

import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [program, file, question] = process.argv.slice(2);
const codex = spawn(program, ['app-server'], { stdio: ['pipe', 'pipe', 'inherit'] });
const send = (message) => codex.stdin.write(`${JSON.stringify(message)}\n`);

/** What is sent once this request of ours was answered. */
const steps = {
  initialize: () => {
    send({ method: 'initialized' });
    ask('thread/start', { cwd: process.cwd() });
  },
  'thread/start': ({ thread }) => ask('turn/start', { threadId: thread.id, input: [{ type: 'text', text: question, text_elements: [] }] }),
};

/** Our requests have their method as the id. */
function ask(method, params) {
  send({ id: method, method, params });
}

createInterface({ input: codex.stdout }).on('line', (line) => {
  console.log(line);
  const { id, method, params, result } = JSON.parse(line);
  if (method === undefined && result) steps[id]?.(result);
  if (method === 'turn/completed') codex.stdin.end();
  if (method === undefined || id === undefined) return;
  if (method !== 'mcpServer/elicitation/request') return send({ id, error: { code: -32601, message: `${method} is not answered` } });
  appendFileSync(file, `${JSON.stringify(params.message)}\n`);
  send({ id, result: { action: 'accept', content: {}, _meta: null } });
});
codex.on('close', (code) => process.exit(code ?? 1));
ask('initialize', { clientInfo: { name: 'scripted', title: 'Scripted', version: '1' }, capabilities: null });
