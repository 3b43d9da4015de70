// Prints all calls in a Ruby file in their order, each with the source of its arguments. Ruby's own parser reads it.
import { readFileSync } from "node:fs";
import { loadPrism } from "@ruby/prism";
const source = readFileSync(process.argv[1]);
const parsed = (await loadPrism())(source.toString());
if (parsed.errors.length > 0) throw new Error(parsed.errors.map((error) => error.message).join("; "));
const text = ({ startOffset, length }) => source.subarray(startOffset, startOffset + length).toString();
const calls = [];
(function walk(node) {
  if (node.constructor.name === "CallNode") {
    const name = (node.receiver ? text(node.receiver.location) + "." : "") + node.name;
    calls.push([name, ...(node.arguments_?.arguments_ ?? []).map((one) => text(one.location))]);
  }
  node.compactChildNodes().forEach(walk);
})(parsed.value);
console.log(JSON.stringify(calls));
