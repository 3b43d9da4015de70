// What all dialects have in common: server-sent events, and the texts in what an agent sends.

/** Begins a stream of events. */
export function open(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
}

export function event(response, data, type) {
  response.write(`${type ? `event: ${type}\n` : ''}data: ${JSON.stringify(data)}\n\n`);
}

/** The members that say what a text is, and are not a text for the model. */
const LABELS = new Set(['type', 'role', 'id', 'name', 'mimeType', 'media_type', 'call_id', 'tool_use_id', 'tool_call_id', 'status']);

/** All texts inside a value, in order, without labels and the bytes of pictures. */
export function strings(value) {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(strings);
  if (value === null || typeof value !== 'object') return [];
  if (value.type === 'base64' || value.inlineData) return [];
  return Object.entries(value).flatMap(([key, inner]) => (LABELS.has(key) ? [] : strings(inner)));
}
