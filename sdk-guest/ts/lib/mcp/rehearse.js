// Runs the server while the plugin is built, so that the engine has compiled its functions before the snapshot is made.

import { unnoticed } from "./build-time.js";
import { EVERYTHING, forget, greet, lists, start } from "./server.js";
import { request } from "./wire.js";

/** Calls a tool that does not exist, which runs everything that each call runs. */
const nothing = (about) =>
  about.capabilities.tools && request("tools/call", { name: "there is no such tool", arguments: {} }).catch(() => {});

async function once() {
  await start();
  const about = await greet({ capabilities: EVERYTHING });
  await lists(about);
  await nothing(about);
}

/**
 * `ways.rehearse`: starts a server, asks it for its lists, and forgets it. `ways.keep`: starts the server that answers calls. What a server
 * throws here, it throws again in the call, where it is reported.
 */
export async function rehearse(ways) {
  if (ways.rehearse) {
    try {
      await unnoticed(once);
    } catch {
      // Reported in the call.
    }
    forget();
  }
  if (ways.keep) await start();
}
