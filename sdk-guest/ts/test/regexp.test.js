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

test("a text that is not a pattern stays as it is", async () => {
  assert.equal(await run(String.raw`"(\\p{L}"`), String.raw`(\p{L}`);
});

test("code without properties is not touched", async () => {
  const code = "const a = /x/u;";
  assert.equal(await withoutProperties(code, "/"), code);
});
