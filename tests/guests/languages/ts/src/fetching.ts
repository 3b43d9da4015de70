import * as v from "valibot";
import { tool } from "wharf-sdk";
import { env } from "wharf-sdk/env";

import { object, text } from "./schema.js";

export const fetching = tool("ability_fetch", {
  description: "Asks another server.",
  input: object({ url: text("The URL."), variable: v.optional(text("The variable whose value the header `authorization` has.")) }),
  async run({ url, variable }) {
    const authorization = variable === undefined ? undefined : env(variable);
    const response = await fetch(url, { headers: authorization === undefined ? {} : { authorization } });
    return `${response.status} ${await response.text()}`;
  },
});
