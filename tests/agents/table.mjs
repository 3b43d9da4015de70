// What was seen, as Markdown.

const HEAD = ['agent', 'version', '`wharf install`', 'lists', 'instructions', 'calls', 'hears', 'roots', 'asks for approvals', 'told that a plugin fails', 'told that all fail', 'what the model gets', 'for a file of'];

const yes = (fact) => (fact ? 'yes' : 'no');

export function table(rows) {
  const lines = rows.map(({ agent, version, install, facts }) => {
    const start = [agent.name, version ?? '—', install];
    if (!facts || facts.lists === undefined) return [...start, ...HEAD.slice(start.length).map(() => '—')];
    const { lists, instructions, calls, hears, roots, asks, half, wreck, read } = facts;
    return [...start, ...[lists, instructions, calls, hears, roots, asks, half].map(yes), wreck ?? 'no', got(read), size(read)];
  });
  return [HEAD, HEAD.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function got(read) {
  if (!read) return 'not the text';
  const times = read.times === 1 ? 'once' : `${read.times} times`;
  return `${read.isText ? 'the text' : 'the text inside JSON'}, ${times}`;
}

const size = (read) =>
  read ? `${read.ofText.bytes} bytes: ${read.bytes} (${ratio(read.bytes, read.ofText.bytes)}), ${read.tokens} tokens (${ratio(read.tokens, read.ofText.tokens)})` : '—';

const ratio = (a, b) => `× ${(a / b).toFixed(2)}`;
