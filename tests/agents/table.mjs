// What was seen, as Markdown.

const HEAD = [
  'agent',
  'version',
  '`wharf install`',
  'lists',
  'instructions',
  'calls',
  'hears',
  'roots',
  'asks for approvals',
  'told that a plugin fails',
  'told that all fail',
  'what the model gets',
  'bytes',
  'tokens',
];

const yes = (fact) => (fact ? 'yes' : 'no');

export function table(rows) {
  const lines = rows.map(({ agent, version, install, facts }) => {
    const start = [agent.name, version ?? '—', install];
    if (!facts || facts.lists === undefined) return [...start, ...HEAD.slice(start.length).map(() => '—')];
    const { lists, instructions, calls, hears, roots, asks, declines, half, wreck, read } = facts;
    const asking = declines ? 'answers no' : yes(asks);
    const cells = [...[lists, instructions, calls, hears, roots].map(yes), asking, yes(half), wreck ?? 'no'];
    return [...start, ...cells, ...got(read)];
  });
  return [HEAD, HEAD.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function got(read) {
  if (!read) return ['not the text', '—', '—'];
  const times = read.times === 1 ? 'once' : `${read.times} times`;
  const size = (unit) => `${read[unit]} for ${read.ofText[unit]} (× ${(read[unit] / read.ofText[unit]).toFixed(2)})`;
  return [`${read.isText ? 'the text' : 'the text inside JSON'}, ${times}`, size('bytes'), size('tokens')];
}
