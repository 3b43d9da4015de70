// How long what is large takes wharf, as a ratio of the reference server's time, both asked in turns.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROUNDS = 15;
const ENTRIES = 10_000;
const LOG_BYTES = 50 << 20;

export const median = (times) => times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)];

export async function timing({ reference, wharf, folder, complain }) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'flat'), { recursive: true });
  for (let at = 0; at < ENTRIES; at += 1) {
    writeFileSync(join(folder, 'flat', `file-${at}.txt`), '');
    const deep = join(folder, 'deep', String(at % 100));
    mkdirSync(deep, { recursive: true });
    writeFileSync(join(deep, `file-${at}.txt`), '');
  }
  const line = `${'x'.repeat(99)}\n`;
  writeFileSync(join(folder, 'big.log'), line.repeat(LOG_BYTES / line.length));
  // Each with the ratio that it must not pass: what is measured on a quiet machine, and room for a busy one.
  const asked = [
    ['list of 10,000 entries', 'list_directory', { path: join(folder, 'flat') }, 1.6],
    ['tree of 10,000 entries', 'directory_tree', { path: join(folder, 'deep') }, 1.2],
    ['list of 10,000 with sizes', 'list_directory_with_sizes', { path: join(folder, 'flat') }, 6],
    ['search of 20,000 entries', 'search_files', { path: folder, pattern: '**/*7.txt' }, 0.5],
    ['head of 50 MiB', 'read_text_file', { path: join(folder, 'big.log'), head: 10 }, 1.3],
    ['tail of 50 MiB', 'read_text_file', { path: join(folder, 'big.log'), tail: 10 }, 1.3],
  ];
  const [theirs, ours] = [await reference(), await wharf()];
  for (const [name, tool, args, most] of asked) {
    const times = [[], []];
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [at, server] of [theirs, ours].entries()) {
        const began = performance.now();
        const result = await server.call(tool, args);
        times[at].push(performance.now() - began);
        if (result.isError) throw new Error(`${name}: ${result.content[0].text}`);
      }
    }
    const [their, our] = times.map(median);
    const ratio = our / their;
    console.log(`${name}: ${our.toFixed(2)} ms, the reference ${their.toFixed(2)} ms: ${ratio.toFixed(2)} x`);
    if (ratio > most) complain(`${name}: more than ${most} x`);
  }
  await theirs.stop();
  await ours.stop();
}
