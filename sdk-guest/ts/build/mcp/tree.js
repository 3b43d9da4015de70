// The syntax tree of a server's own modules, for what the build finds out without running them.

import { load } from "../packages.js";

/** Returns the tree of the statements that follow the cut, and a function that names the file of a node. */
export async function treeOf(tail, project) {
  const acorn = await load("acorn", project);
  const tree = acorn.parse(`async function server() {${tail}\n}`, {
    ecmaVersion: "latest",
    sourceType: "module",
    allowReturnOutsideFunction: true,
  });
  const lines = tail.split("\n");
  const starts = [];
  let at = "async function server() {".length;
  for (const line of lines) {
    const file = /^(?: {2})?\/\/ (.+\.[cm]?[jt]sx?)$/.exec(line);
    if (file) starts.push([at, file[1].replace(/^.*node_modules\//, "")]);
    at += line.length + 1;
  }
  const fileOf = (node) => starts.findLast(([start]) => start <= node.start)?.[1] ?? "the server";
  return { body: tree.body[0].body.body, fileOf };
}

const FUNCTIONS = ["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"];
export const isFunction = (node) => FUNCTIONS.includes(node.type);

/** Calls `visit(node, parents)` for each node below one, in the order of the source. Nothing below a node for which it returns false. */
export function walk(node, visit, parents = []) {
  if (visit(node, parents) === false) return;
  const inner = [...parents, node];
  for (const key of Object.keys(node)) {
    const value = node[key];
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one && typeof one.type === "string") walk(one, visit, inner);
    }
  }
}

/** Returns the last name of what a call calls: `writeFile` of `fs.promises.writeFile(…)`. */
export function calledName({ callee: called }) {
  const callee = called.type === "SequenceExpression" ? called.expressions.at(-1) : called;
  // Where two modules have the same name, the bundle adds a number to one of them.
  if (callee.type === "Identifier") return callee.name.replace(/\d+$/, "");
  if (callee.type === "MemberExpression") return callee.property.name ?? callee.property.value;
  return undefined;
}
