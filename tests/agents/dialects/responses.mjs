// The Responses API of OpenAI.

import { event, open, strings } from './wire.mjs';

export const name = 'OpenAI responses';

export const isTurn = (method, path) => method === 'POST' && path.endsWith('/responses');

/** What else such an agent asks for: an answer, or undefined. */
export const other = () => undefined;

/** Functions may be grouped by server in namespaces; a call then names both. */
function flat(tools, namespace) {
  return tools.flatMap((tool) => {
    if (tool.type === 'namespace') return flat(tool.tools, tool.name);
    const { name = tool.type, description } = tool;
    return [{ name, namespace, description }];
  });
}

export function read(body) {
  const input = Array.isArray(body.input) ? body.input : [{ content: body.input }];
  const outputs = input.filter(({ type }) => type === 'function_call_output');
  return {
    tools: flat(body.tools ?? []),
    results: outputs.map(({ call_id, output }) => ({ id: call_id, texts: strings(output) })),
    said: [...strings(body.instructions), ...strings(input), ...strings((body.tools ?? []).map(({ description }) => description))],
  };
}

const USAGE = {
  input_tokens: 1000,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 10,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 1010,
};

export function answer(response, body, { text, call }) {
  const item = call
    ? {
        type: 'function_call',
        id: `fc_${call.id}`,
        call_id: call.id,
        name: call.name,
        ...(call.namespace && { namespace: call.namespace }),
        arguments: JSON.stringify(call.arguments),
        status: 'completed',
      }
    : {
        type: 'message',
        id: `item_${Date.now()}`,
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text, annotations: [] }],
      };
  const about = { id: `resp_${Date.now()}`, object: 'response', created_at: 0, model: body.model };
  const whole = { ...about, status: 'completed', output: [item], usage: USAGE };
  if (body.stream !== true) return response.end(JSON.stringify(whole));
  open(response);
  let sequence_number = 0;
  const send = (type, more) => event(response, { type, sequence_number: sequence_number++, ...more }, type);
  const begun = { ...whole, status: 'in_progress', output: [], usage: null };
  send('response.created', { response: begun });
  if (call) {
    send('response.output_item.added', { output_index: 0, item: { ...item, arguments: '', status: 'in_progress' } });
    send('response.function_call_arguments.delta', { item_id: item.id, output_index: 0, delta: item.arguments });
    send('response.function_call_arguments.done', { item_id: item.id, output_index: 0, arguments: item.arguments });
  } else {
    const [part] = item.content;
    const at = { item_id: item.id, output_index: 0, content_index: 0 };
    send('response.output_item.added', { output_index: 0, item: { ...item, content: [], status: 'in_progress' } });
    send('response.content_part.added', { ...at, part: { ...part, text: '' } });
    send('response.output_text.delta', { ...at, delta: text });
    send('response.output_text.done', { ...at, text });
    send('response.content_part.done', { ...at, part });
  }
  send('response.output_item.done', { output_index: 0, item });
  send('response.completed', { response: whole });
  response.end();
}
