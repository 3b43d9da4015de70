// The chat completions API of OpenAI, which many services copy.

import { event, open, strings } from './wire.mjs';

export const name = 'OpenAI chat completions';

export const isTurn = (method, path) => method === 'POST' && path.endsWith('/chat/completions');

/** What else such an agent asks for: an answer, or undefined. */
export function other(method, path) {
  if (method === 'GET' && path.endsWith('/models')) return { object: 'list', data: [{ id: 'scripted', object: 'model' }] };
  return undefined;
}

export function read(body) {
  const tools = (body.tools ?? []).map(({ function: { name, description } }) => ({ name, description }));
  const outputs = body.messages.filter(({ role }) => role === 'tool');
  return {
    tools,
    results: outputs.map(({ tool_call_id, content }) => ({ id: tool_call_id, texts: strings(content) })),
    said: strings(body.messages),
  };
}

const USAGE = { prompt_tokens: 1000, completion_tokens: 10, total_tokens: 1010 };

export function answer(response, body, { text, call }) {
  const calls = call && [
    { index: 0, id: call.id, type: 'function', function: { name: call.name, arguments: JSON.stringify(call.arguments) } },
  ];
  const message = { role: 'assistant', content: call ? null : text, ...(calls && { tool_calls: calls }) };
  const finish_reason = call ? 'tool_calls' : 'stop';
  const whole = { id: `chat_${Date.now()}`, created: 0, model: body.model };
  if (body.stream !== true) {
    const choices = [{ index: 0, message, finish_reason }];
    return response.end(JSON.stringify({ ...whole, object: 'chat.completion', choices, usage: USAGE }));
  }
  open(response);
  const send = (choices, more) => event(response, { ...whole, object: 'chat.completion.chunk', choices, ...more });
  send([{ index: 0, delta: message, finish_reason: null }]);
  send([{ index: 0, delta: {}, finish_reason }]);
  send([], { usage: USAGE });
  response.write('data: [DONE]\n\n');
  response.end();
}
