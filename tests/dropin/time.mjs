// The time plugin compared with the reference time server.

import { Server } from './server.mjs';

const ZONES = [
  ...['UTC', 'Europe/Lisbon', 'Europe/Dublin', 'America/New_York', 'America/St_Johns', 'Asia/Kolkata', 'Asia/Kathmandu'],
  ...['Australia/Lord_Howe', 'Pacific/Chatham', 'Pacific/Kiritimati', 'Africa/Casablanca', 'America/Sao_Paulo', 'Asia/Tokyo', 'GMT', 'Etc/GMT+5'],
];
const WRONG_ZONES = ['Mars/Base', 'nowhere'];
const TIMES = ['00:00', '09:30', '12:00', '16:45', '23:59'];
const WRONG_TIMES = ['24:00', '9', '12:60', 'noon', '-1:00'];
/** How far apart the two may have been asked. */
const APART_MS = 120_000;

/** Where they differ on purpose. */
const INTENDED = [
  {
    id: 'summer time of Dublin',
    reason: 'Irish law turns summer time round, but people and the data that most programs use do not',
    applies: ({ args }) => Object.values(args).includes('Europe/Dublin'),
  },
];

function cases() {
  const all = [];
  for (const timezone of [...ZONES, ...WRONG_ZONES]) all.push({ tool: 'get_current_time', args: { timezone } });
  for (const source of ZONES) {
    for (const target of ['UTC', 'America/New_York', 'Asia/Kathmandu', 'Pacific/Chatham']) {
      for (const time of TIMES) {
        all.push({ tool: 'convert_time', args: { source_timezone: source, time, target_timezone: target } });
      }
    }
  }
  const zones = { source_timezone: 'UTC', target_timezone: 'Asia/Tokyo' };
  for (const time of WRONG_TIMES) all.push({ tool: 'convert_time', args: { ...zones, time } });
  for (const zone of WRONG_ZONES) {
    all.push({ tool: 'convert_time', args: { ...zones, time: '12:00', source_timezone: zone } });
    all.push({ tool: 'convert_time', args: { ...zones, time: '12:00', target_timezone: zone } });
  }
  all.push({ tool: 'convert_time', args: { time: '12:00' } });
  all.push({ tool: 'get_current_time', args: { timezone: 7 } });
  return all;
}

/** The same time of day on the same day, or the same moment but for the time between the two questions. */
function alike(one, other, exact) {
  if (typeof one !== 'object' || one === null) return one === other;
  return Object.keys(one).every((key) => {
    if (key !== 'datetime' || exact) return alike(one[key], other?.[key], exact);
    return Math.abs(new Date(one[key]) - new Date(other?.[key])) < APART_MS;
  });
}

export async function time({ wharf, python, env, complain }) {
  // Of its own data, not of the machine's, which may be older.
  const own = { ...env, PYTHONTZPATH: '' };
  const theirs = await Server.start(python, ['-m', 'mcp_server_time', '--local-timezone', 'UTC'], { env: own });
  const ours = await wharf();
  const count = { alike: 0, different: 0 };
  const used = new Map(INTENDED.map(({ id }) => [id, 0]));
  const asked = cases();
  for (const { tool, args } of asked) {
    const [one, other] = [await theirs.call(tool, args), await ours.call(tool, args)];
    const errors = [one.isError === true, other.isError === true];
    const read = (result) => JSON.parse(result.content[0].text);
    const same = errors[0] || errors[1] ? errors[0] === errors[1] : alike(read(one), read(other), tool === 'convert_time');
    count[same ? 'alike' : 'different'] += 1;
    if (same) continue;
    const intended = INTENDED.find(({ applies }) => applies({ tool, args }));
    if (intended) used.set(intended.id, used.get(intended.id) + 1);
    else complain(`${tool} ${JSON.stringify(args)}\n  reference: ${JSON.stringify(one)}\n  wharf:     ${JSON.stringify(other)}`);
  }
  await theirs.stop();
  await ours.stop();
  console.log(`time: ${asked.length} calls, ${count.alike} alike, ${count.different} different`);
  for (const { id, reason } of INTENDED) {
    console.log(`  ${String(used.get(id)).padStart(4)}  ${id}: ${reason}`);
    if (used.get(id) === 0) complain(`${id}: nothing differs any more`);
  }
}
