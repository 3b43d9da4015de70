// Calls that a person has to approve: how a framework asks its person, and what becomes of the call. approval.py does the same.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, expectEqual, expectIn } from '../../conformance/clients/report.mjs';

export const MODERN = '2026-07-28';
const WRITE = 'files_write_file';
const CANNOT =
  `\`${WRITE}\` needs a person's approval, and this client cannot ask for one. ` +
  'The operator can change `confirm` in [plugins.files].';
const NO = 'The client answered no; nothing was run.';

/** The values that the person may choose from, in either form of a choice. */
function choices(schema) {
  const { remember } = schema.properties;
  return remember?.oneOf?.map((choice) => choice.const) ?? remember?.enum ?? [];
}

/** A person who answers as they were last told to, and counts the questions. */
class Person {
  questions = [];

  /** What the framework's handler answers to the parameters of a question. */
  answer({ message, requestedSchema }) {
    expect(this.reply !== undefined, () => `nobody was to be asked: ${message}`);
    this.questions.push({ message, choices: choices(requestedSchema) });
    return this.reply(this.questions.at(-1));
  }
}

const decline = () => ({ action: 'decline' });
const accept = (remember) => (question) => ({
  action: 'accept',
  content: question.choices.includes(remember) ? { remember } : {},
});

/**
 * The checks. `connect({ server, person, roots })` gives a client as `drive` wants it, which also says its `revision`; without a
 * person it does not declare elicitation. What it returns is the revision, if the client can ask.
 */
export async function approval(connect, { server, transport, canAsk = true, canHaveRoots = false }) {
  const path = (name) => join(server.root, name);
  const written = (name) => (existsSync(path(name)) ? readFileSync(path(name), 'utf8') : undefined);
  /** What is said of a call that is refused; some frameworks give the sentence of an error as any other text. */
  const refused = async (client, tool, args) => {
    const tools = await client.tools();
    const answered = await client.call(tools[tool], args).catch((error) => error);
    return answered instanceof Error ? answered.message : JSON.stringify(answered);
  };
  const write = async (client, name, content) => {
    const tools = await client.tools();
    await client.call(tools[WRITE], { path: path(name), content });
    expectEqual(written(name), content, name);
  };

  // One that cannot ask.
  const alone = await connect({ server });
  expectIn(CANNOT, await refused(alone, WRITE, { path: path('alone.txt'), content: 'alone' }), 'the refusal');
  expectEqual(written('alone.txt'), undefined, 'alone.txt');
  const { revision } = alone;
  await alone.close();
  if (!canAsk) return 'cannot';

  const person = new Person();
  const asked = async (count, reply, body) => {
    const before = person.questions.length;
    person.reply = reply;
    await body();
    person.reply = undefined;
    expectEqual(person.questions.length - before, count, 'the number of questions');
  };
  const client = await connect({ server, person });
  expectEqual(client.revision, revision, 'the revision of the second client');
  const name = `${revision}.txt`;
  await asked(1, decline, async () => {
    expectIn(NO, await refused(client, WRITE, { path: path(name), content: 'no' }), 'the refusal');
    expectEqual(written(name), undefined, name);
  });
  const { message } = person.questions[0];
  for (const part of [`run \`${WRITE}\` on `, server.root, '"no"']) expectIn(part, message, 'the question');
  await asked(1, accept('once'), () => write(client, name, 'once'));
  // Without a session, an anonymous client is nobody that can be known again.
  const unknown = revision === MODERN && transport === 'http';
  expectEqual(person.questions[1].choices, unknown ? [] : ['once', 'session'], 'the choices');
  await asked(1, accept('session'), () => write(client, name, 'session'));
  await asked(unknown ? 1 : 0, unknown ? accept('session') : undefined, () => write(client, name, 'again'));
  // Another tool is another kind of call.
  await asked(1, decline, async () => {
    expectIn(NO, await refused(client, 'files_create_directory', { path: path('folder') }), 'the refusal');
    expect(!existsSync(path('folder')), 'the folder is there');
  });
  await client.close();

  if (canHaveRoots) {
    // Over stdio at the modern revision these are two rounds of one call: the roots, and then the person.
    const second = await connect({ server, person, roots: [] });
    await asked(1, accept('once'), () => write(second, name, 'with roots'));
    await second.close();
  }
  return revision;
}
