#!/usr/bin/env node
// wharf-sdk build src/plugin.ts -o dist/plugin.wasm [--engine quickjs]
// wharf-sdk build src/plugin.ts -o dist/live/plugin.wasm --live dist/live/source
// wharf-sdk setup --mcp server.ts
// wharf-sdk build --mcp server.ts -o dist/plugin.wasm [-- ARGUMENT…]

import { parseArgs } from "node:util";

import { build, ENGINES, sized } from "../build/build.js";
import { Problem } from "../build/problem.js";

const USAGE = `usage: wharf-sdk build ENTRY -o OUTPUT [--engine ${Object.keys(ENGINES).join("|")}] [--live FOLDER]
       wharf-sdk setup --mcp SERVER
       wharf-sdk build --mcp SERVER -o OUTPUT [--live FOLDER] [-- ARGUMENT…]
--live, for \`wharf dev\`, puts the plugin's code into FOLDER, and each instance reads it from there.
SERVER is an MCP server that was written for Node.js: a file, a folder with package.json, or npm:NAME[@VERSION][#PROGRAM]`;

const OPTIONS = {
  output: { type: "string", short: "o" },
  engine: { type: "string" },
  mcp: { type: "string" },
  live: { type: "string" },
  help: { type: "boolean", short: "h" },
};

function asked(given) {
  const end = given.indexOf("--");
  const [own, args] = end < 0 ? [given, []] : [given.slice(0, end), given.slice(end + 1)];
  try {
    const { values, positionals } = parseArgs({ args: own, allowPositionals: true, options: OPTIONS });
    const { output, engine, mcp, live, help } = values;
    if (help) return { command: "help" };
    const [command, entry, ...rest] = positionals;
    const known =
      mcp === undefined
        ? command === "build" && entry && !rest.length
        : ["build", "setup"].includes(command) && !entry && !engine;
    if (!known || (command === "build") !== (output !== undefined)) throw new Problem(USAGE);
    return {
      command: mcp === undefined ? command : `${command} --mcp`,
      entry: mcp ?? entry,
      output,
      engine,
      live,
      args,
    };
  } catch (wrong) {
    throw wrong instanceof Problem ? wrong : new Problem(`${wrong.message}\n${USAGE}`);
  }
}

/** Each command returns what it says at its end. */
const COMMANDS = {
  help: () => USAGE,
  build: async ({ entry, output, engine, live }) =>
    live === undefined
      ? sized(output, await build({ entry, output, engine }))
      : (await import("../build/live.js")).live({ entry, output, live, engine }),
  // These modules are loaded only for servers, because a plugin's build does not need them.
  "build --mcp": async ({ entry, output, args, live }) =>
    (await import("../build/mcp/build.js")).buildServer({ entry, output, args, live }),
  "setup --mcp": async ({ entry }) => (await import("../build/mcp/setup.js")).setup({ entry }),
};

try {
  const { command, ...what } = asked(process.argv.slice(2));
  const said = await COMMANDS[command](what);
  if (said !== undefined) console.log(said);
} catch (wrong) {
  if (wrong instanceof Problem) console.error(wrong.message);
  else console.error(wrong);
  process.exitCode = 1;
}
