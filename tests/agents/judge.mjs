// What was seen of one agent, held against what should be: one finding for each expectation.

import { basename } from 'node:path';
import { INSTRUCTIONS, MARK } from './place.mjs';
import { LISTED, find } from './script.mjs';

const count = (text, part) => text.split(part).length - 1;

/** How wharf's reason begins. The name alone would not show that a reason was told: it is in the agent's config. */
const failed = (plugin) => `plugin ${plugin} did not load`;

/** What the model gets for a text of a result: how often it is there, whether it is the text itself, and how large all of it is. */
export function measured(texts, text, tokens) {
  const whole = texts.join('\n');
  return {
    times: count(whole, MARK),
    isText: whole.includes(text),
    bytes: Buffer.byteLength(whole),
    tokens: tokens(whole),
    ofText: { bytes: Buffer.byteLength(text), tokens: tokens(text) },
  };
}

/** Findings: `name`, whether it is `ok`, `why` not. Facts for the table are in `facts`. `tokens` counts those of a text. */
export function judge(agent, { place, seen, output, asked }, tokens) {
  const findings = [];
  const expect = (name, ok, why) => findings.push({ name, ok: Boolean(ok), why });
  const facts = {};
  if (seen.first === undefined) {
    expect('start', false, 'it asked the model nothing');
    return { findings, facts };
  }

  const { first, last } = seen;
  facts.lists = LISTED.every((named) => find(first, named));
  expect('lists', facts.lists, 'the first request to the model does not name the tools');

  facts.instructions = [first, last].some(({ said }) => said.some((text) => text.includes(INSTRUCTIONS)));
  same('instructions', facts.instructions, agent.expected.instructions, 'passes instructions on');

  facts.calls = seen.read?.some((text) => text.includes(MARK)) ?? false;
  expect('calls', facts.calls, `the answer lacks the text: ${cut(seen.read)}`);
  if (facts.calls) {
    facts.read = measured(seen.read, place.text.content, tokens);
    expect('once', facts.read.times === 1, `the model gets the text ${facts.read.times} times: ${cut(seen.read)}`);
    // Some agents write every result as JSON, whatever the server sends.
    const isText = facts.read.isText || agent.expected.encodes === true;
    expect('as text', isText, `the model gets it escaped: ${cut(seen.read)}`);
    same('encodes', !facts.read.isText, agent.expected.encodes === true, 'writes results as JSON', isText);
  }

  facts.roots = seen.roots?.some((text) => text.includes(place.project)) ?? false;
  same('roots', facts.roots, agent.expected.roots, 'tells which folder is open');

  facts.hears = seen.late !== undefined;
  same('hears', facts.hears, agent.expected.hears, 'lists again when tools change');

  facts.asks = asked.length > 0;
  same('asks', facts.asks, agent.expected.asks, 'asks its person to approve');
  if (facts.asks) {
    // Some agents ask with words of their own before the server asks.
    const [line] = (asked.find((message) => message.includes('wharf asks')) ?? asked[0]).split('\n');
    const isNamed = ['write_file', basename(place.written)].every((part) => line.includes(part));
    expect('approval', isNamed, `the first line of the question does not name the tool and the file: ${line}`);
    expect('approved', place.isWritten(), `nothing was written after a yes: ${cut(seen.write)}`);
  } else {
    expect('not approved', !place.isWritten(), 'the file was written without an approval');
    // Without anybody to ask, some agents answer no.
    const write = (seen.write ?? []).join('\n');
    facts.declines = write.includes('answered no');
    const told = facts.declines || write.includes('`confirm`');
    expect('why not approved', told, `the model is told neither of the key nor of a no: ${cut(seen.write)}`);
  }

  // A plugin that does not load, next to one that does: the instructions say so, if the agent passes them on.
  const told = [first, last].flatMap(({ said }) => said).join('\n');
  facts.half = told.includes(failed('mast'));
  expect('a plugin that fails', facts.half || !facts.instructions, 'the model is not told that `mast` did not load');
  // A server without any plugin: the reason reaches the model or the person.
  facts.wreck = told.includes(failed('keel')) ? 'model' : output.includes(failed('keel')) ? 'person' : undefined;
  const isTold = facts.wreck || !agent.expected.reasons;
  expect('a server that fails', isTold, 'neither the model nor the person is told that `keel` did not load');
  return { findings, facts };

  /** A fact about the agent, which is in the documents. */
  function same(name, found, wanted, what, isAsked = true) {
    const change = `it ${found ? 'now' : 'no longer'} ${what}; correct \`expected\` in known.mjs`;
    if (isAsked) expect(name, found === (wanted ?? false), change);
  }
}

export const cut = (texts, most = 400) => {
  const whole = (texts ?? ['nothing']).join(' ¶ ');
  return JSON.stringify(whole.length > most ? `${whole.slice(0, most)}…` : whole);
};
