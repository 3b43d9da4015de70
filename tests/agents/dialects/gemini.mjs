// The API of Gemini: `generateContent`, and the same as a stream.

import { event, open, strings } from './wire.mjs';

export const name = 'Gemini generateContent';

export const isTurn = (method, path) => method === 'POST' && /:(streamG|g)enerateContent$/.test(path);

/** What else such an agent asks for: an answer, or undefined. */
export function other(method, path) {
  if (method === 'POST' && path.endsWith(':countTokens')) return { totalTokens: 1000 };
  return undefined;
}

export function read(body) {
  const declared = (body.tools ?? []).flatMap(({ functionDeclarations }) => functionDeclarations ?? []);
  const parts = body.contents.flatMap(({ parts }) => parts ?? []);
  const answered = parts.flatMap(({ functionResponse }) => functionResponse ?? []);
  return {
    tools: declared.map(({ name, description }) => ({ name, description })),
    results: answered.map(({ id, response }) => ({ id, texts: strings(response) })),
    said: [...strings(body.systemInstruction), ...strings(body.contents)],
  };
}

export function answer(response, body, { text, call }, path) {
  const part = call ? { functionCall: { id: call.id, name: call.name, args: call.arguments } } : { text };
  const whole = {
    candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 1000, candidatesTokenCount: 10, totalTokenCount: 1010 },
    modelVersion: 'scripted',
    responseId: `resp_${Date.now()}`,
  };
  if (!path.includes(':stream')) return response.end(JSON.stringify(whole));
  open(response);
  event(response, whole);
  response.end();
}
