import * as v from "valibot";
import { tool } from "wharf-sdk";

import { object, text } from "./schema.js";

export const fetching = tool("ability_fetch", {
  description: "Asks another server.",
  input: object({ url: text("The URL."), authorization: v.optional(text("What the header says.")) }),
  async run({ url, authorization }) {
    const response = await fetch(url, { headers: authorization === undefined ? {} : { authorization } });
    return `${response.status} ${await response.text()}`;
  },
});
