// The rewriting of regular expressions for an engine without Unicode properties.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import vm from "node:vm";

import { withoutProperties } from "../build/regexp.js";

const project = fileURLToPath(new URL("..", import.meta.url));

/** Runs code after the rewriting, in a context of its own, and returns its last value. */
const run = async (code) => vm.runInNewContext(await withoutProperties(code, project));

test("literals", async () => {
  const code = await withoutProperties(
    String.raw`/^\p{Lu}\P{L}$/u.test("Ä1") && !/^\p{Lu}$/u.test("ä") && /[\p{L}--[a-z]]/v.test("A")`,
    project,
  );
  assert.doesNotMatch(code, /\\p\{/i);
  assert.equal(vm.runInNewContext(code), true);
});

test("patterns in strings", async () => {
  assert.equal(
    await run(
      String.raw`const letters = "^\\p{L}+$"; const found = new RegExp(letters, "u"); [found.test("Ärger"), found.test("1"), found instanceof RegExp].join()`,
    ),
    "true,false,true",
  );
  assert.equal(await run(String.raw`RegExp("\\p{Nd}", "u").exec("a7")[0]`), "7");
});

test("patterns that are made at run time of parts", async () => {
  const tests = String.raw`
    const part = "\\p{Cf}\\P{Lu}";
    const one = new RegExp("^[" + part + "]+$", "u");
    [one.test("a\u200b"), one.test("A\u200b1"), new RegExp("A\u200b", "u").test("A\u200b"), one.source, String(one),
      new RegExp("[\\p{Lu}--[A-M]]", "v").test("A"), new RegExp("[\\p{Lu}--[A-M]]", "v").test("N"),
      one.constructor === RegExp, new RegExp(one).test("A"), /x/ instanceof RegExp, "aB".replace(RegExp("\\P{Lu}", "u"), "")]`;
  assert.deepEqual(JSON.stringify(await run(tests)), JSON.stringify(vm.runInNewContext(tests)));
});

test("a pattern may be made of a name that stands elsewhere", async () => {
  const code = String.raw`["XID_Start", "White_Space", "Lu"].map((name) => new RegExp(`+"`\\\\p{${name}}`"+String.raw`, "u").test("A")).join()`;
  assert.equal(await run(code), "true,false,true");
});

test("a property that no string names is refused in a sentence", async () => {
  const code = 'try { new RegExp("\\\\p{" + ["L", "o"].join("") + "a}", "u") } catch (thrown) { thrown.name + thrown.message }';
  assert.match(vm.runInNewContext(await withoutProperties(code, project, { always: true })), /^SyntaxErrorthe regular expression .* does not work here/);
});

test("a text that is not a pattern stays as it is", async () => {
  assert.equal(await run(String.raw`"(\\p{L}"`), String.raw`(\p{L}`);
});

test("code without properties is not touched", async () => {
  const code = "const a = /x/u;";
  assert.equal(await withoutProperties(code, "/"), code);
});
