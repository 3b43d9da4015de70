// Finds a habit of servers that works differently in a plugin, where a tool may run again when its question is answered: work before a question.
// And what a plugin cannot do at all.

import { calledName, isFunction, treeOf, walk } from "./tree.js";
import { ASKS } from "./wants.js";
import { WHY } from "../../lib/mcp/lacking.js";

const SENDS =
  /^(fetch|writeFile|appendFile|unlink|rm|rename|writeFileSync|appendFileSync|unlinkSync|rmSync|renameSync|post|put|patch)$/;
const MOST = 5;

/** Returns the warnings, one sentence or two each. `packages`: what the server's own modules import. */
export async function warningsOf({ tail, packages, project }) {
  const { body, fileOf } = await treeOf(tail, project);
  return [...impossible(packages), ...questions(body, fileOf)];
}

/** Modules that servers import for what a plugin cannot do. Those for HTTP work in part, and `dns` is asked in passing. */
const IMPOSSIBLE = /^(child_process|cluster|worker_threads|net|tls|dgram)$/;

function impossible(packages) {
  const names = new Set([...packages].map((one) => one.replace(/^node:/, "")).filter((one) => IMPOSSIBLE.test(one)));
  return [...names].map((one) => `the server imports \`${one}\`, and ${WHY[one]}: what uses it fails`);
}

/** Functions that ask the client after they sent or wrote something. */
function questions(body, fileOf) {
  const found = [];
  const look = (node) => {
    walk(node, (inner) => {
      if (inner === node || !isFunction(inner)) return undefined;
      look(inner);
      return false;
    });
    if (!isFunction(node)) return;
    let sent;
    walk(node, (inner) => {
      if (inner !== node && isFunction(inner)) return false;
      if (inner.type !== "CallExpression") return undefined;
      const name = calledName(inner);
      if (SENDS.test(name)) sent ??= name;
      if (sent && Object.hasOwn(ASKS, name)) {
        found.push(
          `${fileOf(inner)}: \`${name}\` asks after \`${sent}\`. If the instance is gone when the client has answered, the tool runs again from its start, and \`${sent}\` happens twice: ask first`,
        );
        sent = undefined;
      }
      return undefined;
    });
  };
  for (const statement of body) look(statement);
  return [...new Set(found)].slice(0, MOST);
}
