// What a TypeScript client is put through, whichever library carries it.
//
// `client` is what the two adapters offer: list, call, read, prompt, complete, watchTools, close, and the members `elicit`,
// `sample` and `roots`, which answer the server's questions, and `wire`, which sees its messages.

import { readFileSync } from 'node:fs';
import { check, expect, expectEqual, expectIn, sleep, until, within } from './report.mjs';

export const fixture = JSON.parse(readFileSync(new URL('./fixture.json', import.meta.url), 'utf8'));

/** How soon an answer must come that waits for nothing. A busy machine needs some of it. */
const SOON_MS = 5_000;
/** More calls than the plugin may have at once, so that they hold up the next one if they are not cancelled. */
const MANY = 24;

/** The text of a tool's result. */
export function textOf(result) {
  return result.content.filter((block) => block.type === 'text').map((block) => block.text).join('\n');
}

export async function runChecks(client, { revision, stdio }) {
  const modern = revision === '2026-07-28';
  const hasElicitation = revision >= '2025-06-18';

  await check('revision', () => {
    expectEqual(client.revision(), revision, 'the negotiated revision');
    expectEqual(client.serverName(), fixture.server, "the server's name");
  });
  await lists(client);
  await plain(client);
  await check('complete', () => complete(client));
  await check('progress', () => progress(client));
  await check('slow-call', () => slowCall(client));
  await check('elicitation', () =>
    modern ? modernElicitation(client) : hasElicitation ? elicitation(client) : noElicitation(client),
  );
  await check('sampling', () => (modern ? modernSampling(client) : sampling(client)));
  await check('roots', () => roots(client));
  await check('list-changed', () => listChanged(client));
  await check('cancel', () => cancel(client));
  await check('cancel-frees', () => cancelFrees(client));
  await check('close', () => close(client, stdio));
}

/** The four lists. */
export async function lists(client) {
  for (const [kind, key] of [
    ['tools', 'name'],
    ['resources', 'uri'],
    ['templates', 'uriTemplate'],
    ['prompts', 'name'],
  ]) {
    await check(kind, async () => {
      const items = await client.list(kind);
      const names = items.map((item) => item[key]);
      const missing = fixture[kind].filter((name) => !names.includes(name));
      expect(missing.length === 0, () => `missing ${missing.join(', ')} among ${names.join(', ')}`);
      expectEqual(names[0], fixture[kind][0], 'the first one');
      expectEqual([...new Set(names)], names, 'the names without repetition');
      if (kind === 'tools') {
        const bad = items.filter((tool) => !tool.description || tool.inputSchema?.type !== 'object');
        expectEqual(bad.map((tool) => tool.name), [], 'tools without description or object schema');
      }
    });
  }
}

/** What asks for one thing and gets it. */
export async function plain(client) {
  await check('call', async () => {
    const result = await client.call('test_simple_text', {});
    expect(!result.isError, 'the result is an error');
    expectEqual(result.content, [{ type: 'text', text: fixture.simpleText }], 'the content');
  });
  await check('read', async () => {
    const { contents } = await client.read(fixture.staticText.uri);
    expectEqual(contents.length, 1, 'the number of contents');
    const { uri, mimeType, text } = contents[0];
    expectEqual({ uri, mimeType, text }, fixture.staticText, 'the resource');
  });
  await check('read-template', async () => {
    const wanted = fixture.template;
    const { contents } = await client.read(wanted.uri);
    expectEqual(contents.length, 1, 'the number of contents');
    expectEqual(contents[0].uri, wanted.uri, 'the URI');
    expectEqual(contents[0].mimeType, wanted.mimeType, 'the MIME type');
    expectEqual(JSON.parse(contents[0].text).id, wanted.id, 'the id in the text');
  });
  await check('prompt', async () => {
    const { messages } = await client.prompt(fixture.prompt.name, fixture.prompt.arguments);
    expect(messages.length >= 1, 'there are no messages');
    expectEqual(messages[0].role, 'user', 'the first role');
    const text = messages.map((message) => message.content.text ?? '').join('\n');
    for (const value of Object.values(fixture.prompt.arguments)) expectIn(value, text, 'the prompt');
  });
}

async function complete(client) {
  const { argument, typed } = fixture.completion;
  const { completion } = await client.complete(fixture.prompt.name, argument, typed);
  expect(Array.isArray(completion.values) && completion.values.length > 0, 'there are no values');
  expect(completion.values.length <= 100, 'there are more than 100 values');
  for (const value of completion.values) expectIn(typed, value, 'a value');
}

async function progress(client) {
  // Both libraries drop a report that arrives in one piece with the result, so what was sent counts, and of the reports the
  // caller gets only those before the last one.
  const sent = [];
  const got = [];
  client.wire = ({ method, params }) => method === 'notifications/progress' && sent.push(params);
  const result = await client.call('test_tool_with_progress', {}, { onprogress: (report) => got.push(report) });
  client.wire = undefined;
  expect(!result.isError && textOf(result) !== '', 'the result is an error or has no text');
  const told = JSON.stringify(sent);
  expect(sent.length >= 3, () => `fewer than three reports: ${told}`);
  expect(
    sent.every((report, at) => at === 0 || report.progress > sent[at - 1].progress),
    () => `not increasing: ${told}`,
  );
  expect(sent.every((report) => report.total === 100), () => `total is not 100: ${told}`);
  expectEqual(sent.at(-1).progress, 100, 'the last report');
  expect(got.length >= sent.length - 1, () => `the caller got only ${JSON.stringify(got)} of ${told}`);
  expectEqual(got.map(({ progress }) => progress), sent.slice(0, got.length).map(({ progress }) => progress), 'what came');
}

/** A call that takes long enough for the server to close its stream meanwhile, where it does so: the client comes back. */
async function slowCall(client) {
  const start = Date.now();
  const result = await client.call('slow_compute', { seconds: 1.5, label: 'slowly' });
  expect(Date.now() - start >= 1_500, 'it did not take its time');
  expect(!result.isError, () => `the result is an error: ${textOf(result)}`);
  expectIn('slowly', textOf(result), 'the result');
}

/** Lets `answer` reply to the questions of one kind while `body` runs; what was asked. */
async function asked(client, kind, answer, body) {
  const questions = [];
  client[kind] = (params) => {
    questions.push(params);
    return answer(params);
  };
  try {
    return { result: await body(), questions };
  } finally {
    client[kind] = undefined;
  }
}

const accept = (content) => () => ({ action: 'accept', content });

async function elicitation(client) {
  const { username, email } = fixture.person;
  const { result, questions } = await asked(client, 'elicit', accept({ username, email }), () =>
    client.call('test_elicitation', { message: fixture.question }),
  );
  expectEqual(questions.length, 1, 'the number of questions');
  expectIn(fixture.question, questions[0].message, 'the message');
  const { properties } = questions[0].requestedSchema;
  expectEqual([properties.username?.type, properties.email?.type], ['string', 'string'], 'the types of the fields');
  expect(!result.isError, () => `the result is an error: ${textOf(result)}`);
  for (const part of ['accept', username, email]) expectIn(part, textOf(result), 'the result');
}

async function noElicitation(client) {
  const { result, questions } = await asked(client, 'elicit', accept({ username: 'x', email: 'x' }), () =>
    client.call('test_elicitation', { message: fixture.question }),
  );
  expectEqual(questions, [], 'the list of questions, of a kind this revision does not have,');
  expectEqual(result.isError, true, 'isError');
  expect(/elicitation/i.test(textOf(result)), () => `the text does not say why: ${JSON.stringify(textOf(result))}`);
}

async function modernElicitation(client) {
  const { name } = fixture.person;
  const { result, questions } = await asked(client, 'elicit', accept({ name }), () =>
    client.call('test_input_required_result_elicitation', {}),
  );
  expectEqual(questions.length, 1, 'the number of questions');
  expect(typeof questions[0].message === 'string' && questions[0].message !== '', 'the question has no message');
  expectEqual(questions[0].requestedSchema.properties.name?.type, 'string', 'the type of the field');
  expect(!result.isError, () => `the result is an error: ${textOf(result)}`);
  expectIn(`Hello, ${name}!`, textOf(result), 'the result');
}

const sampled = () => ({
  role: 'assistant',
  model: fixture.model,
  content: { type: 'text', text: fixture.modelAnswer },
  stopReason: 'endTurn',
});

async function sampling(client) {
  const { result, questions } = await asked(client, 'sample', sampled, () =>
    client.call('test_sampling', { prompt: fixture.modelPrompt }),
  );
  expectEqual(questions.length, 1, 'the number of requests');
  const [{ messages, maxTokens }] = questions;
  expectEqual(messages.map((message) => message.role), ['user'], 'the roles');
  expectEqual([messages[0].content].flat()[0].text, fixture.modelPrompt, 'the prompt');
  expectEqual(maxTokens, 100, 'maxTokens');
  expect(!result.isError, () => `the result is an error: ${textOf(result)}`);
  expectIn(fixture.modelAnswer, textOf(result), 'the result');
}

async function modernSampling(client) {
  const { result, questions } = await asked(client, 'sample', sampled, () =>
    client.call('test_input_required_result_sampling', {}),
  );
  expectEqual(questions.length, 1, 'the number of requests');
  expectEqual(questions[0].messages[0].role, 'user', 'the first role');
  expect(questions[0].maxTokens > 0, 'maxTokens is not positive');
  expect(!result.isError, () => `the result is an error: ${textOf(result)}`);
  expectIn(fixture.modelAnswer, textOf(result), 'the result');
}

async function roots(client) {
  const { result, questions } = await asked(
    client,
    'roots',
    () => ({ roots: [fixture.root] }),
    () => client.call('test_input_required_result_list_roots', {}),
  );
  expect(questions.length >= 1, 'the client was not asked');
  expect(!result.isError, () => `the result is an error: ${textOf(result)}`);
  expectIn(fixture.root.uri, textOf(result), 'the result');
}

async function listChanged(client) {
  let heard = 0;
  const stop = await client.watchTools(() => (heard += 1));
  await sleep(300);
  expectEqual(heard, 0, 'the number of announcements before the change');
  const result = await client.call('test_trigger_tool_change', {});
  expect(!result.isError, () => `the result is an error: ${textOf(result)}`);
  await until(SOON_MS, () => heard > 0, 'the announcement');
  await stop();
}

/** A call that would take half a minute, once it has begun; `ended` is its error once it was given up. */
async function begin(client, label) {
  const controller = new AbortController();
  let outcome;
  const ended = client.call('slow_compute', { seconds: 30, label }, { signal: controller.signal }).then(
    (result) => (outcome = { result }),
    (error) => (outcome = { error }),
  );
  return { controller, ended, outcome: () => outcome };
}

const tell = ({ result, error }) => (error === undefined ? textOf(result) : String(error));

async function cancel(client) {
  const call = await begin(client, 'cancelled');
  await sleep(700);
  expect(call.outcome() === undefined, () => `it ended by itself: ${tell(call.outcome())}`);
  call.controller.abort();
  const outcome = await within(SOON_MS, call.ended, 'the rejection');
  expect(outcome.error !== undefined, () => `it was not rejected: ${tell(outcome)}`);
  const after = await within(SOON_MS, client.call('test_simple_text', {}), 'the next call');
  expectEqual(textOf(after), fixture.simpleText, 'the next result');
}

async function cancelFrees(client) {
  const calls = await Promise.all(Array.from({ length: MANY }, (_, at) => begin(client, `cancelled ${at}`)));
  await sleep(1_000);
  const over = calls.filter((call) => call.outcome() !== undefined);
  expect(over.length === 0, () => `${over.length} ended by themselves: ${tell(over[0].outcome())}`);
  let answered = false;
  const next = client.call('test_simple_text', {}).finally(() => (answered = true));
  await sleep(500);
  expect(!answered, `the plugin takes more than ${MANY} calls at once; so this shows nothing`);
  for (const call of calls) call.controller.abort();
  await within(SOON_MS, Promise.all(calls.map((call) => call.ended)), 'the rejections');
  const result = await within(SOON_MS, next, 'the call behind the cancelled ones');
  expectEqual(textOf(result), fixture.simpleText, 'the next result');
}

async function close(client, stdio) {
  const pid = client.pid?.();
  if (stdio) expect(pid > 0, 'the process id of the server is not known');
  // The transports wait two seconds for the end of the server before they use force.
  await within(1_900, client.close(), 'closing');
  if (stdio) await until(1_000, () => !alive(pid), 'the end of the server');
}

function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
