// What the scripted model does in a conversation, and what it keeps of what it is sent.

import { copyFileSync } from 'node:fs';

/** What a person asks for; requests without it are the agent's own, such as for a title. */
export const PROMPT = 'Read the text about the crane.';

/** A change is heard of within so many turns, each of which takes so long, or not at all. */
const TURNS = 12;
const TURN_MS = 400;

/** The tools that the model calls, each with its server. */
const READ = ['wharf', 'files_read_text_file'];
const ROOTS = ['opened', 'opened_list_allowed_directories'];
const ECHO = ['wharf', 'echo_echo'];
const WRITE = ['asked', 'asked_write_file'];
const LATE = ['wharf', 'late_echo'];

/** The tools by which a list is recognised. */
export const LISTED = [READ, ECHO];

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * The tool of a server as an agent tells the model of it: each puts the two names together in its own way. Some tell only the name,
 * and the rest when the model asks for it (`isDeferred`).
 */
export function find({ tools, said }, [server, name]) {
  const fits = (tool) => `${tool.namespace ?? ''}/${tool.name}`.includes(server) && tool.name.endsWith(name);
  const declared = tools.find(fits) ?? tools.find((tool) => tool.name === name);
  if (declared) return { ...declared, isDeferred: false };
  const told = new RegExp(`\\b[\\w-]*${server}[\\w-]*${name}\\b`);
  const found = said.map((text) => told.exec(text)?.[0]).find(Boolean);
  return found && { name: found, isDeferred: true };
}

/**
 * A conversation: the model reads a file, asks which folders are open, waits until it hears of a plugin that is put into the
 * folder, and writes a file, which a person has to approve. `seen` has what each step was answered. `deferred` names the tool that
 * tells more of other tools and, if those are not called directly, the one that calls them.
 */
export function conversation(place, deferred) {
  const seen = { first: undefined, last: undefined, read: undefined, roots: undefined, late: undefined, write: undefined };
  const steps = play(place, deferred, seen);
  // Up to where it waits for the first request.
  const begun = steps.next();
  let pending;
  let number = 0;
  let isOver = false;
  return {
    seen,
    isMine: ({ tools, said }) => !isOver && tools.length > 0 && said.some((text) => text.includes(PROMPT)),
    async turn(asked) {
      await begun;
      seen.first ??= asked;
      seen.last = asked;
      const { texts } = asked.results.findLast(({ id }) => id === pending) ?? asked.results.at(-1) ?? {};
      const { value, done } = await steps.next({ asked, texts });
      isOver = done;
      if (done) return { text: 'That is all.' };
      number += 1;
      pending = `call_${number}`;
      return { call: { id: pending, ...value } };
    },
  };
}

async function* play(place, deferred, seen) {
  let { asked, texts } = yield;
  let isReviewed = false;
  async function* call(named, args) {
    const tool = find(asked, named);
    if (tool === undefined) return undefined;
    if (tool.isDeferred && !isReviewed) {
      const all = [READ, ROOTS, ECHO, WRITE].map((named) => find(asked, named)?.name);
      ({ asked, texts } = yield { name: deferred.search, arguments: { query: `select:${all.join(',')}` } });
      isReviewed = true;
    }
    const isThrough = tool.isDeferred && deferred.through;
    ({ asked, texts } = yield isThrough
      ? { name: deferred.through, arguments: { name: tool.name, arguments: args } }
      : { name: tool.name, namespace: tool.namespace, arguments: args });
    return texts;
  }
  seen.read = yield* call(READ, { path: place.text.path });
  seen.roots = yield* call(ROOTS, {});
  copyFileSync(place.late.from, place.late.to);
  for (let turn = 0; turn < TURNS && !seen.late; turn += 1) {
    await sleep(TURN_MS);
    yield* call(ECHO, { message: `turn ${turn}` });
    seen.late = find(asked, LATE)?.name;
  }
  seen.write = yield* call(WRITE, { path: place.written, content: 'Written by the model.\n' });
}
