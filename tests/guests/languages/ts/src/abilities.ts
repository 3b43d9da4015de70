// The abilities of a plugin, the same in each language.
import * as v from "valibot";
import { Failure, tool } from "wharf-sdk";
import { readFile } from "wharf-sdk/files";

import { object, text } from "./schema.js";

export const abilities = [
  tool("ability_config", {
    description: "The plugin's config.",
    run: (_, call) => JSON.stringify(call.config),
  }),

  tool("ability_directories", {
    description: "The directories that are open to this call.",
    run: (_, call) => JSON.stringify(call.directories),
  }),

  tool("ability_read", {
    description: "Reads a file.",
    input: object({ path: text("Which one.") }),
    run: ({ path }) => readFile(path, "utf8"),
  }),

  tool("ability_chance", {
    description: "What differs between calls.",
    run: () =>
      JSON.stringify({
        random: Math.random(),
        secure: [...crypto.getRandomValues(new Uint32Array(2))].join("-"),
        clock_ms: Date.now(),
      }),
  }),

  tool("ability_fails", {
    description: "Fails.",
    input: object({ how: v.picklist(["throws", "returns"]) }),
    run({ how }) {
      if (how === "returns") throw new Failure("The note is locked.");
      const note = JSON.parse("null");
      return note.title;
    },
  }),
];
