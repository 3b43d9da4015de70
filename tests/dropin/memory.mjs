// The memory plugin compared with the reference memory server.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { judge, lists, random } from './judge.mjs';
import { Server } from './server.mjs';

const URI = 'memory://knowledge-graph';

/** The text goes out once, and not a second time as structured content. */
const LISTED = [{ applies: (_, part) => part === 'outputSchema' }];

/** Where they differ on purpose. */
const INTENDED = [
  {
    id: 'lines of other kinds',
    reason: 'what another program keeps in the file stays there: the reference server drops it',
    applies: (_, theirs, ours) => ['"since"', '"note"'].some((member) => ours.left.includes(member) && !theirs.left.includes(member)),
  },
  {
    id: 'nothing to change',
    reason: 'a call that changes nothing writes nothing: the reference server writes the same once more, or an empty file',
    applies: (_, theirs, ours) => !ours.result.isError && theirs.left !== ours.left && lines(theirs.left) === lines(ours.left),
  },
  {
    id: 'an entity without a type',
    reason: 'a line without all its members is damaged, and named: the reference server gives an answer that its own schema refuses, or drops them',
    applies: (_, __, ours) => ours.result.isError && ours.left.includes('{"type":"entity","name":"Half"}'),
  },
  {
    id: 'bytes that are not UTF-8',
    reason: 'they are damage: the reference server replaces them for good',
    applies: (_, __, ours) => ours.result.isError && ours.left.includes('\xe9'),
  },
];

const lines = (text) => text.split('\n').map((line) => line.trim()).filter(Boolean).join('\n');

const NAMES = ['Ann', 'Bob', 'ann', 'Zoë', 'Straße', 'STRASSE', '日本', '😀', '', 'a b', 'toString', '__proto__', 'quote " and \\ and \u0001'];
const TYPES = ['person', 'Person', 'place', ''];
const SAID = ['is tall', 'likes Straße', 'is TALL', '', 'lives in 日本', 'line\nbreak', '\u007f\u2028', 'x'.repeat(2000)];
const VERBS = ['knows', 'Knows', 'lives in', ''];

function cases() {
  const next = random(7);
  const one = (list) => list[next(list.length)];
  const some = (make, most) => Array.from({ length: next(most + 1) }, make);
  const entity = () => ({ name: one(NAMES), entityType: one(TYPES), observations: some(() => one(SAID), 3) });
  const relation = () => ({ from: one(NAMES), to: one(NAMES), relationType: one(VERBS) });
  const all = [];
  const ask = (tool, args, before) => all.push({ tool, args, before });
  const look = () => {
    ask('read_graph', {});
    for (const query of ['TALL', 'strasse', 'STRAßE', 'person', '日', '', 'nobody', '\n']) ask('search_nodes', { query });
    ask('open_nodes', { names: some(() => one(NAMES), 4) });
  };

  // Nothing yet.
  look();
  ask('delete_entities', { entityNames: ['Ann'] });
  ask('add_observations', { observations: [{ entityName: 'Ann', contents: ['x'] }] });
  ask('add_observations', { observations: [] });
  for (let round = 0; round < 150; round++) {
    ask('create_entities', { entities: some(entity, 3) });
    ask('create_relations', { relations: some(relation, 3) });
    ask('add_observations', { observations: some(() => ({ entityName: one(NAMES), contents: some(() => one(SAID), 3) }), 2) });
    if (round % 3 === 0) ask('delete_observations', { deletions: some(() => ({ entityName: one(NAMES), observations: some(() => one(SAID), 3) }), 2) });
    if (round % 4 === 0) ask('delete_relations', { relations: some(relation, 3) });
    if (round % 7 === 0) ask('delete_entities', { entityNames: some(() => one(NAMES), 2) });
    if (round % 10 === 0) look();
  }
  // More members than there are, and arguments that do not fit.
  ask('create_entities', { entities: [{ name: 'More', entityType: 't', observations: [], since: 1 }] });
  ask('open_nodes', { names: ['More'], more: 2 });
  ask('create_relations', { relations: [{ from: 'More', to: 'More', relationType: 'is', weight: 1 }] });
  for (const args of [{}, { entities: {} }, { entities: [{}] }, { entities: [{ name: 1, entityType: 't', observations: [] }] }, { entities: null }]) {
    ask('create_entities', args);
  }
  ask('search_nodes', {});
  ask('open_nodes', { names: 'Ann' });
  ask('forget', {});
  // Files as others left them.
  const line = '{"type":"entity","name":"Ann","entityType":"person","observations":["tall"]}';
  const files = [
    `${line}\n`,
    `\n\n  ${line}\r\n\r\n`,
    `${line}\n{"type":"relation","from":"Ann","to":"Gone","relationType":"knows"}`,
    '{"type":"entity","since":2020,"observations":[],"entityType":"t","name":"Ordered"}',
    `${line}\n{"type":"note","text":"mine"}`,
    `${line}\n{"type":"entity"`,
    `${line}\nnot JSON`,
    `${line}\n{"type":"entity","name":"Half"}`,
    Buffer.concat([Buffer.from(line.replace('tall', 'caf')), Buffer.from([0xe9, 0x0a])]),
    Buffer.concat([Buffer.from(line.replace('"tall"', '"')), Buffer.from([0xe9]), Buffer.from('"]}')]),
    '\ufeff' + line,
    '{"type":"entity","name":"Ann","entityType":"person","observations":["a","a","b"]}\n' + line,
    '',
  ];
  for (const before of files) {
    ask('read_graph', {}, before);
    ask('open_nodes', { names: ['Ann'] });
    ask('create_entities', { entities: [{ name: 'Ann', entityType: 'twice', observations: [] }] }, before);
    ask('create_entities', { entities: [{ name: 'New', entityType: 't', observations: ['o'] }] }, before);
    ask('delete_observations', { deletions: [{ entityName: 'Ann', observations: ['a', 'tall'] }] });
  }
  return all;
}

async function answers(server, file, asked) {
  const told = [];
  for (const { tool, args, before } of asked) {
    if (before !== undefined) writeFileSync(file, before);
    const result = await server.call(tool, args);
    // Ours ends with the end of a line, so that others can append to it.
    told.push({ result, left: existsSync(file) ? readFileSync(file, 'latin1').replace(/\n$/, '') : '' });
  }
  return told;
}

export async function memory({ start, modules, home, env, complain, show }) {
  const folders = { theirs: join(home, 'memory-theirs'), ours: join(home, 'memory-ours') };
  for (const folder of Object.values(folders)) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
  }
  const [file, own] = Object.values(folders).map((folder) => join(folder, 'memory.jsonl'));
  const theirs = await Server.start(process.execPath, [join(modules, '@modelcontextprotocol/server-memory/dist/index.js')], {
    env: { ...env, MEMORY_FILE_PATH: file },
  });
  const ours = await start('memory', `dirs = [{ host = ${JSON.stringify(folders.ours)}, guest = "/memory", access = "read-write" }]`);
  await lists('memory', theirs, ours, LISTED, complain);
  const [resource, listed] = [await theirs.request('resources/list', {}), await ours.request('resources/list', {})];
  if (JSON.stringify(told(resource)) !== JSON.stringify(told(listed))) complain(`memory: resources are listed as ${JSON.stringify(listed)}`);
  const asked = cases();
  const answered = [await answers(theirs, file, asked), await answers(ours, own, asked)];
  const [read, given] = [await theirs.request('resources/read', { uri: URI }), await ours.request('resources/read', { uri: URI })];
  if (JSON.stringify(read.contents[0].text) !== JSON.stringify(given.contents[0].text)) complain(`memory: ${URI} is another`);
  await theirs.stop();
  await ours.stop();
  judge('memory', asked, ...answered, { intended: INTENDED, complain, show });
}

// Which plugin it is of, wharf says of every resource.
const told = ({ resources }) => resources.map(({ _meta, ...one }) => Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)));
