#!/usr/bin/env node
// wharf-sdk build src/plugin.ts -o dist/plugin.wasm [--engine quickjs]

import { parseArgs } from "node:util";

import { build, ENGINES } from "../build/build.js";
import { Problem } from "../build/problem.js";

const USAGE = `usage: wharf-sdk build ENTRY -o OUTPUT [--engine ${Object.keys(ENGINES).join("|")}]`;

function asked() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        output: { type: "string", short: "o" },
        engine: { type: "string" },
        help: { type: "boolean", short: "h" },
      },
    });
    const [command, entry, ...rest] = positionals;
    if (values.help) return { help: true };
    if (command !== "build" || !entry || !values.output || rest.length) throw new Problem(USAGE);
    return { entry, output: values.output, engine: values.engine };
  } catch (wrong) {
    throw wrong instanceof Problem ? wrong : new Problem(`${wrong.message}\n${USAGE}`);
  }
}

try {
  const { help, ...what } = asked();
  if (help) console.log(USAGE);
  else console.log(`${what.output}: ${((await build(what)) / 1e6).toFixed(1)} MB`);
} catch (wrong) {
  if (wrong instanceof Problem) console.error(wrong.message);
  else console.error(wrong);
  process.exitCode = 1;
}
