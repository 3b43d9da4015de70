// Finds two habits of servers that work differently in a plugin, whose calls each begin with a new instance: state that outlives a call, and
// work before a question. And what a plugin cannot do at all.

import { calledName, isFunction, treeOf, walk } from "./tree.js";
import { ASKS } from "./wants.js";
import { WHY } from "../../lib/mcp/lacking.js";

const MUTATES = /^(set|add|push|unshift|splice|delete|clear|pop|shift)$/;
const SENDS =
  /^(fetch|writeFile|appendFile|unlink|rm|rename|writeFileSync|appendFileSync|unlinkSync|rmSync|renameSync|post|put|patch)$/;
const COLLECTIONS = /^(Map|Set|Array|WeakMap|Object)$/;
const MOST = 5;

/** Returns the warnings, one sentence or two each. `packages`: what the server's own modules import. */
export async function warningsOf({ tail, packages, project }) {
  const { body, fileOf } = await treeOf(tail, project);
  return [...impossible(packages), ...state(body, fileOf), ...questions(body, fileOf)];
}

/** Modules that servers import for what a plugin cannot do. Those for HTTP work in part, and `dns` is asked in passing. */
const IMPOSSIBLE = /^(child_process|cluster|worker_threads|net|tls|dgram)$/;

function impossible(packages) {
  const names = new Set([...packages].map((one) => one.replace(/^node:/, "")).filter((one) => IMPOSSIBLE.test(one)));
  return [...names].map((one) => `the server imports \`${one}\`, and ${WHY[one]}: what uses it fails`);
}

/** Variables of a module, and members of its objects, that a function changes which does not run at the start. */
function state(body, fileOf) {
  const names = new Map();
  const atStart = new Set();
  for (const statement of body) {
    if (statement.type === "VariableDeclaration") {
      for (const { id, init } of statement.declarations) {
        const held =
          init &&
          (init.type === "ArrayExpression" || init.type === "ObjectExpression" || COLLECTIONS.test(init.callee?.name));
        if (id.type === "Identifier" && (statement.kind !== "const" || held)) names.set(id.name, id);
      }
    }
    // `main().catch(…)`: what `main` does belongs to the start.
    if (statement.type === "ExpressionStatement") {
      walk(statement, (node) => {
        if (node.type === "CallExpression" && node.callee.type === "Identifier") atStart.add(node.callee.name);
        return !isFunction(node);
      });
    }
  }
  const changed = new Map();
  for (const statement of body) {
    if (isFunction(statement) && atStart.has(statement.id?.name)) continue;
    walk(statement, (node, parents) => {
      const within =
        parents.some(isFunction) &&
        !parents.some((one) => one.type === "MethodDefinition" && one.kind === "constructor");
      if (!within) return;
      const target =
        node.type === "AssignmentExpression"
          ? node.left
          : node.type === "UpdateExpression"
            ? node.argument
            : node.type === "CallExpression" &&
                node.callee.type === "MemberExpression" &&
                MUTATES.test(calledName(node))
              ? node.callee.object
              : undefined;
      const name = target && held(target, names);
      if (name && !changed.has(name)) changed.set(name, fileOf(node));
    });
  }
  if (!changed.size) return [];
  const shown = [...changed].slice(0, MOST).map(([name, file]) => `\`${name}\` (${file})`);
  const more = changed.size > MOST ? ` and ${changed.size - MOST} more` : "";
  return [
    `tools change ${shown.join(", ")}${more}, and each call begins with a new instance, in which this is as at the start; ` +
      `if later calls need it, the operator can set \`instances = "reused"\` for the plugin`,
  ];
}

function held(node, names) {
  if (node.type === "Identifier") return names.has(node.name) ? node.name : undefined;
  if (node.type !== "MemberExpression") return undefined;
  if (node.object.type === "ThisExpression") return `this.${node.property.name}`;
  return held(node.object, names);
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
          `${fileOf(inner)}: \`${name}\` asks after \`${sent}\`. When the client has answered, the tool runs again from its start, so \`${sent}\` happens twice: ask first`,
        );
        sent = undefined;
      }
      return undefined;
    });
  };
  for (const statement of body) look(statement);
  return [...new Set(found)].slice(0, MOST);
}
