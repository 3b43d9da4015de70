// The answers of a plugin's exports.

import assert from "node:assert/strict";
import { test } from "node:test";

import { toStandardJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import { z } from "zod";

import * as sdk from "../lib/index.js";
import { serve } from "../lib/runtime.js";

const { plugin, prompt, resource, tool } = sdk;

const said = [];
const host = {
  config: () => '{"greeting":"Hi"}',
  directories: () => [{ path: "/w", writable: false }],
  log: (...what) => said.push(what),
  progress: (...what) => said.push(what),
  listChanged: (what) => said.push(what),
  resourceUpdated: (what) => said.push(what),
};

const context = (answers = [], state) => ({
  answers,
  state,
  revision: "2026-07-28",
  client: { name: "c", version: "1" },
  caller: "AbCdEfGhIjKlMnOpQrStUv",
  capabilities: { form: true },
  reports: { progress: true },
  more: '{"meta":{},"capabilities":{}}',
});

const called = async (one, args = {}, given = context()) =>
  serve(host, plugin([one])).tools.callTool("t", JSON.stringify(args), given);

const made = (members) => tool("t", { description: "x", ...members });

test("what a tool returns becomes an outcome", async () => {
  const returns = async (value, members) => called(made({ run: () => value, ...members }));
  const done = (content, rest) => ({
    tag: "done",
    val: { content, structured: undefined, isError: false, more: undefined, ...rest },
  });
  assert.deepEqual(await returns("hello"), { tag: "text", val: "hello" });
  assert.deepEqual(await returns(Promise.resolve("hello")), { tag: "text", val: "hello" });
  assert.deepEqual(await returns(undefined), done([]));
  assert.deepEqual(
    await returns(["a", sdk.text("b")]),
    done([
      { tag: "text", val: "a" },
      { tag: "text", val: "b" },
    ]),
  );
  assert.deepEqual(await returns({ a: 1 }, { output: { type: "object" } }), { tag: "structured", val: '{"a":1}' });
  const whole = sdk.result({ content: ["a"], structured: { b: 1 }, isError: true, meta: { c: 1 } });
  assert.deepEqual(
    await returns(whole),
    done([sdk.text("a")], { structured: '{"b":1}', isError: true, more: '{"_meta":{"c":1}}' }),
  );
});

for (const [library, input] of [
  ["zod", z.object({ day: z.string().refine((day) => day !== "x", "no such day"), n: z.coerce.number().optional() })],
  ["valibot", toStandardJsonSchema(v.object({ day: v.pipe(v.string(), v.minLength(2, "no such day")) }))],
]) {
  test(`arguments are checked by ${library}, and its complaints are words for a model`, async () => {
    const one = made({ input, run: ({ day }) => `on ${day}` });
    assert.deepEqual(await called(one, { day: "Monday" }), { tag: "text", val: "on Monday" });
    await assert.rejects(called(one, { day: "x" }), {
      message: "Invalid arguments: day: no such day",
      kind: { tag: "failed" },
    });
    const [listed] = serve(host, plugin([one])).tools.listTools();
    assert.equal(JSON.parse(listed.inputSchema).properties.day.type, "string");
    assert.equal(JSON.parse(listed.inputSchema).$schema, undefined);
  });
}

test("a schema that is written by hand is published as it is", () => {
  const input = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: {},
    if: {},
    then: {},
  };
  const [listed] = serve(host, plugin([made({ input, run: () => "" })])).tools.listTools();
  assert.deepEqual(JSON.parse(listed.inputSchema), input);
});

test("a question ends the call, and the call is made again with the answer", async () => {
  const ran = [];
  const sure = toStandardJsonSchema(v.object({ really: v.boolean() }));
  const one = made({
    async run(_, call) {
      ran.push("begins");
      call.keep({ step: 1 });
      try {
        const { action, content } = await call.ask("sure", sdk.form("Delete?", sure));
        return `${action} ${content?.really} ${JSON.stringify(call.kept())}`;
      } catch {
        ran.push("caught");
        return "caught";
      } finally {
        ran.push("ends");
      }
    },
  });
  const asked = await called(one);
  assert.equal(asked.tag, "ask");
  const [[key, question]] = asked.val.questions;
  assert.equal(key, "sure");
  assert.deepEqual(JSON.parse(question.val.schema), {
    type: "object",
    properties: { really: { type: "boolean" } },
    required: ["really"],
  });
  assert.deepEqual(ran, ["begins"], "code after a question runs before it is answered");
  const answered = (answer) => called(one, {}, context([["sure", answer]], asked.val.state));
  assert.deepEqual(await answered({ tag: "accepted", val: '{"really":true}' }), {
    tag: "text",
    val: 'accept true {"step":1}',
  });
  assert.deepEqual(await answered({ tag: "declined" }), { tag: "text", val: 'decline undefined {"step":1}' });
});

test("questions that are asked at once go out at once", async () => {
  const one = made({
    async run(_, call) {
      const helper = async (key) => {
        await Promise.resolve();
        return call.ask(key, sdk.url("Log in", "https://a.example"));
      };
      const [both, { c }] = await Promise.all([
        Promise.all([helper("a"), helper("b")]),
        call.askAll({ c: sdk.roots() }),
      ]);
      return `${both.map(({ action }) => action)} ${c.length}`;
    },
  });
  const { val } = await called(one);
  assert.deepEqual(val.questions.map(([key]) => key).sort(), ["a", "b", "c"]);
  const answers = [
    ["a", { tag: "accepted", val: "{}" }],
    ["b", { tag: "cancelled" }],
  ];
  const again = await called(one, {}, context(answers));
  assert.deepEqual(
    again.val.questions.map(([key]) => key),
    ["c"],
  );
  const last = await called(one, {}, context([...answers, ["c", { tag: "roots", val: [{ uri: "file:///w" }] }]]));
  assert.deepEqual(last, { tag: "text", val: "accept,cancel 1" });
});

test("a question that nobody waited for is put all the same", async () => {
  const one = made({
    run(_, call) {
      call.ask("a", sdk.roots());
      return "too early";
    },
  });
  assert.equal((await called(one)).tag, "ask");
});

test("an error next to a question is the outcome", async () => {
  const one = made({
    run: (_, call) => Promise.all([call.ask("a", sdk.roots()), Promise.reject(new sdk.Failure("no"))]),
  });
  await assert.rejects(called(one), { message: "no" });
});

test("an answer of another kind than the question is a failure", async () => {
  const one = made({ run: async (_, call) => `${await call.sample("a", { messages: [], maxTokens: 1 })}` });
  await assert.rejects(called(one, {}, context([["a", { tag: "declined" }]])), {
    message: "the client did not want to sample",
  });
});

test("failures have a kind", async () => {
  const one = made({ run: () => Promise.reject(new sdk.Failure("gone", { code: -32603, data: { a: 1 } })) });
  await assert.rejects(called(one), {
    kind: { tag: "other", val: -32603 },
    message: "gone",
    data: '{"a":1}',
  });
  const { tools, resources, prompts } = serve(host, plugin([]));
  const thrown = (work) => {
    try {
      return work();
    } catch (failure) {
      return failure.kind.tag;
    }
  };
  assert.equal(
    thrown(() => tools.callTool("x", "{}", context())),
    "invalid-params",
  );
  assert.equal(
    thrown(() => prompts.getPrompt("x", [], context())),
    "invalid-params",
  );
  assert.equal(
    thrown(() => resources.readResource("a:b", context())),
    "not-found",
  );
});

test("resources are found by their URI and by templates", async () => {
  const { resources } = serve(
    host,
    plugin([
      resource("note:///today", { read: () => "today", mimeType: "text/plain" }),
      resource("note:///{day}/raw", { read: ({ day }) => new TextEncoder().encode(day) }),
      resource("file:///{+path}", { read: ({ path, uri }) => (path === "none" ? undefined : sdk.contents(uri, path)) }),
    ]),
  );
  const read = async (uri) => resources.readResource(uri, context());
  assert.deepEqual(
    resources.listResources().map(({ uri }) => uri),
    ["note:///today"],
  );
  assert.deepEqual(
    resources.listTemplates().map(({ uriTemplate }) => uriTemplate),
    ["note:///{day}/raw", "file:///{+path}"],
  );
  assert.deepEqual(await read("note:///today"), { tag: "text", val: "today" });
  const [raw] = (await read("note:///M%C3%BC/raw")).val;
  assert.equal(new TextDecoder().decode(raw.body.val), "Mü");
  assert.deepEqual((await read("file:///a/b")).val[0].body, { tag: "text", val: "a/b" });
  await assert.rejects(read("file:///none"), { kind: { tag: "not-found" } });
  await assert.rejects(read("note:///a/b/raw"), { kind: { tag: "not-found" } });
});

test("prompts take text, messages and suggestions", async () => {
  const { prompts, completions } = serve(
    host,
    plugin([
      prompt("p", {
        args: {
          day: { description: "Which", complete: ["Monday", "Tuesday"] },
          at: { required: false, complete: (value, { day }) => [`${value}${day}`] },
        },
        get: ({ day }) => [sdk.user(day), sdk.assistant(sdk.text("ok"))],
      }),
      resource("a://{x}", { read: () => "", complete: { x: Array.from({ length: 120 }, (_, index) => `${index}`) } }),
    ]),
  );
  assert.deepEqual(prompts.listPrompts()[0].arguments, [
    { name: "day", description: "Which", required: true },
    { name: "at", description: undefined, required: false },
  ]);
  const { val } = await prompts.getPrompt("p", [["day", "Monday"]], context());
  assert.deepEqual(val.messages, [
    { role: "user", content: sdk.text("Monday") },
    { role: "assistant", content: sdk.text("ok") },
  ]);
  const complete = (target, argument, value, others = []) => completions.complete(target, argument, value, others);
  const p = { tag: "prompt", val: "p" };
  assert.deepEqual(complete(p, "day", "Mo"), { values: ["Monday"], total: 1, hasMore: false });
  assert.deepEqual(complete(p, "at", "x", [["day", "y"]]).values, ["xy"]);
  assert.deepEqual(complete(p, "other", "x").values, []);
  const many = complete({ tag: "template", val: "a://{x}" }, "x", "");
  assert.deepEqual([many.values.length, many.total, many.hasMore], [100, 120, true]);
});

test("a plugin may depend on its config", () => {
  const { tools } = serve(
    host,
    plugin(({ greeting }) => [made({ description: greeting, run: () => "" })]),
  );
  assert.equal(tools.listTools()[0].description, "Hi");
});

test("a call reports and knows its caller", async () => {
  said.length = 0;
  await called(
    made({
      run(_, call) {
        call.progress(1, 2, "half");
        call.log("info", "hello", { a: 1 });
        sdk.listChanged("tools");
        assert.deepEqual(["form", "roots", "progress", "log"].map((one) => call.can(one)), [true, false, true, false]);
        assert.deepEqual([call.revision, call.config], ["2026-07-28", { greeting: "Hi" }]);
        assert.deepEqual(call.client, { name: "c", version: "1", title: undefined });
        assert.equal(call.caller, "AbCdEfGhIjKlMnOpQrStUv");
        assert.deepEqual(call.directories, [{ path: "/w", writable: false }]);
      },
    }),
  );
  assert.deepEqual(said, [[1, 2, "half"], ["info", "hello", '{"a":1}'], "tools"]);
});

test("when a tool asks is a member of its _meta", () => {
  const one = made({ task: "optional", askBeforeTask: true, meta: { a: 1 }, run: () => "" });
  const [{ details }] = serve(host, plugin([one])).tools.listTools();
  assert.deepEqual(JSON.parse(details.more), { _meta: { a: 1, "dev.wharf/ask-before-task": true } });
});

test("validators are warm before the first call", () => {
  const seen = [];
  const schema = {
    "~standard": {
      version: 1,
      vendor: "x",
      validate: (value) => (seen.push(value), { value }),
      jsonSchema: {
        input: () => ({ type: "object", properties: { a: { type: "string", minLength: 3 }, b: { enum: [7] } } }),
      },
    },
  };
  serve(host, plugin([made({ input: schema, run: () => "" })]));
  assert.deepEqual(seen, [{}, { a: "xxx", b: 7 }]);
  serve(host, plugin([made({ input: schema, run: () => "" })]), { cold: ["t"] });
  assert.equal(seen.length, 2);
});
