// What was seen, as Markdown.

import { LEFT_OUT } from './clients.mjs';

const TITLES = { stdio: 'stdio', http: 'HTTP', sse: 'SSE' };

export function table(rows) {
  const notes = [];
  const lines = rows.map(({ client, version, results }) => {
    const remarks = [...Object.entries(client.absent ?? {}).map(absent), client.note];
    const mark = remarks.filter(Boolean).map((text) => {
      if (!notes.includes(text)) notes.push(text);
      return ` [${notes.indexOf(text) + 1}]`;
    });
    const cells = Object.keys(TITLES).map((transport) => cell(client, transport, results[transport]));
    return [`${client.name}${mark.join('')}`, version, ...cells, over(results, ({ hears }) => hears), over(results, asks)];
  });
  const head = ['client', 'version', ...Object.values(TITLES), 'hears of changes', 'asks for approvals'];
  const all = [head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`);
  const list = notes.map((text, index) => `${index + 1}. ${text}`);
  return [...all, '', ...list, '', 'Left out:', '', ...LEFT_OUT.map((text) => `- ${text}`), ''].join('\n');
}

const absent = ([name, why]) => `Without the check \`${name}\`: ${why}.`;

function cell(client, transport, result) {
  if (!client.transports.includes(transport)) return '—';
  if (result === undefined) return 'not run';
  if (result.missing) return 'not installed';
  return result.failed.length === 0 ? 'ok' : `FAIL: ${result.failed.join(', ')}`;
}

/** At which revisions it asks its person for approvals; otherwise it is told which key to change. */
const asks = ({ asks }) => (asks.includes('cannot') ? 'cannot' : asks.join(' and '));

/** What differs between transports, and over which it is what. */
function over(results, way) {
  const seen = Object.entries(results).map(([transport, result]) => [TITLES[transport], way(result) || '—']);
  const ways = [...new Set(seen.map(([, way]) => way))];
  if (ways.length <= 1) return ways[0] ?? '—';
  const titles = (way) => seen.filter(([, one]) => one === way).map(([title]) => title);
  return ways.map((way) => `${way} (${titles(way).join(', ')})`).join('; ');
}
