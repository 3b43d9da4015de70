// The Messages API of Anthropic.

import { event, open, strings } from './wire.mjs';

export const name = 'Anthropic messages';

export const isTurn = (method, path) => method === 'POST' && path === '/v1/messages';

/** What else such an agent asks for: an answer, or undefined. */
export function other(method, path) {
  if (method === 'POST' && path === '/v1/messages/count_tokens') return { input_tokens: 1000 };
  return undefined;
}

export function read(body) {
  const blocks = body.messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const outputs = blocks.filter(({ type }) => type === 'tool_result');
  return {
    tools: (body.tools ?? []).map(({ name, description }) => ({ name, description })),
    results: outputs.map(({ tool_use_id, content }) => ({ id: tool_use_id, texts: strings(content) })),
    said: [...strings(body.system), ...strings(body.messages)],
  };
}

const USAGE = { input_tokens: 1000, output_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };

export function answer(response, body, { text, call }) {
  const block = call
    ? { type: 'tool_use', id: call.id, name: call.name, input: call.arguments }
    : { type: 'text', text };
  const stop = call ? 'tool_use' : 'end_turn';
  const message = { id: `msg_${Date.now()}`, type: 'message', role: 'assistant', model: body.model };
  const ended = { stop_reason: stop, stop_sequence: null };
  if (body.stream !== true) return response.end(JSON.stringify({ ...message, content: [block], ...ended, usage: USAGE }));
  open(response);
  const send = (type, more) => event(response, { type, ...more }, type);
  send('message_start', { message: { ...message, content: [], stop_reason: null, stop_sequence: null, usage: USAGE } });
  const empty = call ? { ...block, input: {} } : { type: 'text', text: '' };
  send('content_block_start', { index: 0, content_block: empty });
  const delta = call
    ? { type: 'input_json_delta', partial_json: JSON.stringify(call.arguments) }
    : { type: 'text_delta', text };
  send('content_block_delta', { index: 0, delta });
  send('content_block_stop', { index: 0 });
  send('message_delta', { delta: ended, usage: USAGE });
  send('message_stop', {});
  response.end();
}
