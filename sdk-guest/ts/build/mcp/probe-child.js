// The process that `probe.js` starts: `node probe-child.js BUNDLE OUTPUT`. It asks the server for its lists and writes them to the output.

import { writeFileSync } from "node:fs";

const [bundle, output] = process.argv.slice(2);
const real = { exit: process.exit.bind(process), setTimeout };
const START_MS = 15_000;
/** A start that does nothing for so long waits for a timer. */
const IDLE_MS = 200;
const said = [];

const finish = (found) => {
  writeFileSync(output, JSON.stringify({ ...found, said: said.join("\n").slice(-4000) }));
  real.exit(0);
};
const ended = (thrown) =>
  finish({ ended: String(thrown?.message ?? thrown), stack: String(thrown?.stack ?? ""), used: used() });

let wharf;
let before;
const used = () => [...new Set([...(before ?? []), ...(wharf?.time.touched ?? [])])];

/** What a server writes that does not start without what it fetches or reads, neither of which exists here. */
const LACKS = /ENOENT|nothing can be fetched while the plugin is built/;

/** Whether the server may start where it can fetch and read: it failed for want of that, or ended itself after it had tried. */
const startsLater = (thrown) =>
  ["fetch", "files"].some((one) => used().includes(one)) &&
  (LACKS.test(`${thrown?.message ?? thrown} ${said.join(" ")}`) || /^the server ended itself/.test(thrown?.message));

// A promise that nobody waits for ends Node.js; in a plugin it ends nothing.
process.on("unhandledRejection", (thrown) => said.push(String(thrown?.message ?? thrown)));
process.on("uncaughtException", ended);

// What the engine lacks must be lacking here as well.
for (const name of ["global", "Intl", "WebSocket", "EventSource", "navigator", "localStorage", "sessionStorage"])
  delete globalThis[name];

try {
  const { main } = await import(bundle);
  wharf = globalThis.__wharf;
  // The packages have loaded. What they used is not what the server's own modules use.
  const packages = [...wharf.time.touched];
  wharf.time.touched.clear();
  wharf.server.setMain(main);
  wharf.time.pace.idle = () => new Promise((done) => real.setTimeout(done, IDLE_MS));
  const { client } = wharf.wire;
  const keep = client.said;
  client.said = (text) => {
    said.push(text);
    keep(text);
  };
  const first = await run();
  const again = await run().catch((thrown) => ({ failed: String(thrown?.message ?? thrown) }));
  finish({ ...first, packages, twice: JSON.stringify(again.lists) === JSON.stringify(first.lists) });
} catch (thrown) {
  ended(thrown);
}

/** Starts the server and asks it for its lists. `later` is the error of a server that starts only with what it fetches or reads. */
async function run() {
  let waiting = "it does not read its stdin";
  const late = new Promise((_, reject) =>
    real.setTimeout(() => reject(new Error(`${waiting} within ${START_MS / 1000} seconds`)), START_MS),
  );
  try {
    await Promise.race([wharf.server.start(), late]);
    const atStart = used();
    waiting = "it does not answer `initialize`";
    const about = await Promise.race([wharf.server.greet({ capabilities: wharf.server.EVERYTHING }), late]);
    waiting = "it does not answer with its lists";
    const lists = await Promise.race([wharf.server.lists(about), late]);
    const inLists = used().filter((one) => !atStart.includes(one));
    before = used();
    return { about, lists, used: atStart, usedInLists: inLists };
  } catch (thrown) {
    if (!startsLater(thrown)) throw thrown;
    return { later: String(thrown?.message ?? thrown), used: used(), usedInLists: [] };
  } finally {
    wharf.server.forget();
  }
}
