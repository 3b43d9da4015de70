// Runs one agent with the scripted model: its home is made, wharf is put into its config by `wharf install`, and it is asked one
// question.

import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from '../conformance/clients/processes.mjs';
import { modulesOf } from './install.mjs';
import { startModel } from './model.mjs';
import { makePlace } from './place.mjs';
import { conversation } from './script.mjs';

const RUN_MS = 180_000;
const INSTALL_MS = 60_000;
const WARM_MS = 180_000;

/** Where wharf caches what it compiles, below a home. */
const CACHE = '.cache/wharf';

/** Compiles the plugins, once for all agents. */
export async function warm({ bin, plugins, target }) {
  const place = makePlace(join(target, 'run', 'warm'), plugins);
  const env = { PATH: process.env.PATH, HOME: join(target, 'warm') };
  const { code, stdout, stderr } = await run(bin, ['check', ...place.servers.wharf], { env, ms: WARM_MS, cwd: place.project });
  if (code !== 0) throw new Error(['`wharf check` fails:', ...stdout, ...stderr].join('\n'));
}

class NotInstalled extends Error {}

/** What was seen of an agent; only `install`, the reason, if wharf could not be installed. */
export async function drive(agent, { bin, plugins, target }) {
  const modules = modulesOf(target, agent.client);
  const place = makePlace(join(target, 'run', agent.client), plugins);
  cpSync(join(target, 'warm', CACHE), join(place.home, CACHE), { recursive: true });
  chmodSync(join(place.home, CACHE), 0o700);
  const talk = conversation(place, agent.deferred);
  const model = await startModel(talk);
  try {
    const env = surroundings(agent, place, model.url, modules);
    const within = (ms) => ({ env, ms, cwd: place.project });
    for (const [file, text] of Object.entries(agent.files(model.url, place))) {
      const path = join(place.home, file);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
    const program = join(modules, agent.program);
    for (const args of agent.before?.(model.url) ?? []) await run(program, args, within(RUN_MS));
    const install = async (name) => {
      const args = ['install', agent.client, '--name', name, ...place.servers[name]];
      const { code, stdout, stderr } = await run(bin, args, within(INSTALL_MS));
      if (agent.pastes && stdout.some((line) => line.startsWith('mcpServers:'))) {
        const config = join(place.home, agent.pastes);
        const before = readFileSync(config, 'utf8');
        const lines = stdout.filter((line) => !line.startsWith('#') && !(line === 'mcpServers:' && before.includes(line)));
        writeFileSync(config, `${before}${lines.join('\n')}\n`);
        return;
      }
      if (code !== 0) throw new NotInstalled([...stdout, ...stderr].join(' ') || `it took more than ${INSTALL_MS} ms`);
    };
    const ask = async () => {
      const line = agent.person ? [process.execPath, agent.person, program] : [program];
      const { code, stdout, stderr } = await run(line[0], [...line.slice(1), ...agent.args(place)], within(RUN_MS));
      return { code, output: [...stdout, ...stderr].join('\n') };
    };
    const late = agent.stops ? ['wreck'] : [];
    for (const name of Object.keys(place.servers)) if (!late.includes(name)) await install(name);
    const end = await ask();
    for (const name of late) {
      await install(name);
      end.output += (await ask()).output;
    }
    writeFileSync(join(place.folder, 'transcript.json'), JSON.stringify(model.transcript, null, 1));
    writeFileSync(join(place.folder, 'output.txt'), end.output);
    return { place, ...end, seen: talk.seen, asked: questions(place), transcript: model.transcript };
  } catch (error) {
    if (error instanceof NotInstalled) return { install: error.message };
    throw error;
  } finally {
    model.stop();
  }
}

/** What the agent's person was asked. */
function questions({ asked }) {
  if (!existsSync(asked)) return [];
  const lines = readFileSync(asked, 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line));
}

/** The environment: nothing of the person's own, and no way to the network but the model, which refuses. */
function surroundings(agent, { home }, url, modules) {
  const proxies = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].flatMap((name) => [name, name.toLowerCase()]);
  const local = '127.0.0.1,localhost';
  return {
    PATH: `${join(modules, '.bin')}:${process.env.PATH}`,
    HOME: home,
    TERM: 'dumb',
    LANG: 'C.UTF-8',
    NO_COLOR: '1',
    DO_NOT_TRACK: '1',
    ...Object.fromEntries(proxies.map((name) => [name, url])),
    NO_PROXY: local,
    no_proxy: local,
    ...agent.env(url),
  };
}
