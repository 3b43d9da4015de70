// The files of the published package, and its types.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const run = (program, ...args) =>
  execFileSync(program, args, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

test("the package has what an author needs and nothing else", () => {
  const [{ files }] = JSON.parse(run("npm", "pack", "--dry-run", "--json"));
  const names = files.map(({ path }) => path);
  for (const name of [
    "package.json",
    "README.md",
    "bin/wharf-sdk.js",
    "build/build.js",
    "lib/index.js",
    "lib/index.d.ts",
    "lib/files.d.ts",
    "lib/env.js",
    "wit/deps/wasi-cli.wit",
    "wit/deps/wharf-plugin/tools.wit",
  ]) {
    assert.ok(names.includes(name), `${name} is missing`);
  }
  assert.deepEqual(
    names.filter((name) => !/^(package\.json|README\.md|(bin|build|lib|wit)\/)/.test(name)),
    [],
  );
});

test("the contract is the repository's", { skip: !existsSync(join(ROOT, "../../wit")) }, () => {
  const [here, there] = [join(ROOT, "wit/deps/wharf-plugin"), join(ROOT, "../../wit")];
  assert.deepEqual(readdirSync(here).sort(), readdirSync(there).sort());
  for (const name of readdirSync(there))
    assert.equal(readFileSync(join(here, name), "utf8"), readFileSync(join(there, name), "utf8"), name);
});

test("types hold where they should and fail where they should", () => {
  const options = ["--noEmit", "--strict", "--target", "es2024", "--module", "esnext", "--moduleResolution", "bundler"];
  try {
    run(join(ROOT, "node_modules/.bin/tsc"), ...options, "test/types.ts");
  } catch (failed) {
    assert.fail(failed.stdout);
  }
});
