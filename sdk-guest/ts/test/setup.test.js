// Where the packages of a server may come from.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fromRegistries } from "../build/mcp/setup.js";

test("packages come from a registry or from this machine", () => {
  const from = (version) => ({ one: version });
  for (const version of ["^1.2.0", "latest", "1.x || >=2.5", "*", "", "npm:@acme/one@1", "file:../one", "./one", "/one"]) {
    fromRegistries({ dependencies: from(version), overrides: { two: from(version) } });
  }
  const others = ["git+https://git.example/one", "git://git.example/one", "git@git.example:one", "acme/one", "github:acme/one"];
  for (const version of [...others, "https://files.example/one.tgz", "ssh://git.example/one"]) {
    for (const packages of [
      { dependencies: from(version) },
      { devDependencies: from(version) },
      { optionalDependencies: from(version) },
      { overrides: { two: from(version) } },
    ])
      assert.throws(() => fromRegistries(packages), /the package one is to come from/, version);
  }
  const lock = (resolved) => ({ packages: { "": {}, "node_modules/one": { resolved } } });
  fromRegistries({}, lock("https://registry.example/one/-/one-1.0.0.tgz"));
  assert.throws(() => fromRegistries({}, lock("git+ssh://git@git.example/one.git#0f")), /node_modules\/one/);
});
