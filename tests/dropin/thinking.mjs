// The sequentialthinking plugin compared with the reference sequential thinking server.

import { join } from 'node:path';
import { judge, lists } from './judge.mjs';
import { Server } from './server.mjs';

/** Where they differ on purpose. */
const INTENDED = [
  {
    id: 'null',
    reason: 'null stands for what may be left out, since many clients write it',
    applies: ({ args }, theirs, ours) => Object.values(args).includes(null) && theirs.result.isError && !ours.result.isError,
  },
  {
    id: 'numbers of other kinds',
    reason: 'true and hexadecimal digits are not numbers',
    applies: ({ args: { thoughtNumber } }, _, ours) =>
      ours.result.isError && (typeof thoughtNumber === 'boolean' || /x/.test(String(thoughtNumber))),
  },
  {
    id: 'order of branches',
    reason: 'branches stand in the order in which they began: the reference server puts those whose names are numbers first',
    applies: (_, theirs, ours) => !ours.result.isError && unordered(theirs) === unordered(ours),
  },
];

const unordered = ({ result: { content } }) => {
  const told = JSON.parse(content[0].text);
  return JSON.stringify({ ...told, branches: [...told.branches].sort() }, Object.keys(told).sort());
};

/**
 * What both say of a tool: descriptions of tools are our own, strings are taken, so the schema says so, and there is no structured content,
 * which would say the same as the text.
 */
const LISTED = [{ applies: (tool, part) => ['description', 'inputSchema', 'outputSchema'].includes(part) }];

function cases() {
  const all = [];
  const think = (more) => all.push({ tool: 'sequentialthinking', args: { thought: 'a thought', nextThoughtNeeded: true, thoughtNumber: 1, totalThoughts: 5, ...more } });
  for (let number = 1; number <= 40; number++) think({ thoughtNumber: number });
  for (const nextThoughtNeeded of ['true', 'false', 'TRUE', 'False', true, false, 'yes', '', 0, 1, [], undefined]) think({ nextThoughtNeeded });
  for (const isRevision of ['true', 'false', true, false, 'no']) think({ isRevision, revisesThought: 1 });
  for (const needsMoreThoughts of ['true', false, 'maybe', 3]) think({ needsMoreThoughts });
  for (const thoughtNumber of ['1', '7', ' 8 ', '2.0', 2.0, '1e1', 0, -1, 1.5, '0', '-3', '1.5', '', 'x', {}, 2 ** 53, '9007199254740993', 9007199254740991, undefined]) {
    think({ thoughtNumber });
  }
  for (const totalThoughts of ['3', 1, '0', 'many', 100]) think({ totalThoughts, thoughtNumber: 2 });
  for (const revisesThought of ['2', 0, 'x', '3']) think({ isRevision: true, revisesThought });
  for (const branchId of ['try', 'other', 'try', '', 'ünï 😀', 'with "quotes"']) think({ branchFromThought: 2, branchId });
  for (const [branchFromThought, branchId] of [['3', 'by string'], [undefined, 'from nowhere'], [4, undefined], [0, 'zero'], [5, 'last'], [5, 7]]) {
    think({ branchFromThought, branchId });
  }
  for (const thought of ['', 'ünï\n日本\u0001', 'x'.repeat(10_000), 5, undefined]) think({ thought });
  for (let number = 1; number <= 100; number++) {
    think({ thoughtNumber: String(number), totalThoughts: String(1 + (number % 9)), nextThoughtNeeded: String(number < 100), branchFromThought: number, branchId: `branch ${number % 11}` });
  }
  think({ more: 'than there is' });
  for (const branchId of ['2', '1']) think({ branchFromThought: 1, branchId });
  // From here on, the two do not count the same thoughts.
  for (const thoughtNumber of ['0x10', true]) think({ thoughtNumber });
  think({ revisesThought: null });
  return all;
}

export async function thinking({ start, modules, env, complain, show }) {
  const theirs = await Server.start(process.execPath, [join(modules, '@modelcontextprotocol/server-sequential-thinking/dist/index.js')], { env });
  const ours = await start('sequentialthinking', '', 'instances = "reused"');
  await lists('sequentialthinking', theirs, ours, LISTED, complain);
  const asked = cases();
  const told = [];
  for (const server of [theirs, ours]) {
    const results = [];
    for (const { tool, args } of asked) results.push({ result: await server.call(tool, args) });
    told.push(results);
    await server.stop();
  }
  judge('sequentialthinking', asked, ...told, { intended: INTENDED, complain, show });
}
