// The exports of the component, which connect the contract with the author's plugin.

import { Call } from "./call.js";
import { catalog, completion } from "./define.js";
import { asFailure, invalidParams, resourceNotFound } from "./errors.js";
import * as host from "./host.js";
import { example } from "./schema.js";

/**
 * Returns the exports for a plugin. Work that does not depend on the operator's config is done here, at the top level, so that its results
 * are in the build's snapshot: the lists, and one warm-up run of each validator except those of the tools in `cold`. `live`: this is not done
 * at build, but in each instance. `settle` waits for a promise if the engine does not.
 */
export function serve(wharf, given, { cold = [], live = false, settle = (promise) => promise } = {}) {
  host.setHost(wharf);
  if (given?.kind !== "plugin") {
    throw new TypeError("the plugin's file must say `export default plugin([…])`, with `plugin` of wharf-sdk");
  }
  const { parts } = given;
  const fixed = typeof parts !== "function" && catalog(parts);
  if (fixed && !live) warm(fixed, cold);
  const now = () => fixed || catalog(parts(host.config()));
  const answer = (work) => settle(answered(work));

  return {
    about: { ...given.options, fixed },
    tools: {
      listTools: () => answer(() => [...now().tools.values()].map(({ listed }) => listed)),
      callTool: (name, given, context) =>
        answer(() => {
          const tool = now().tools.get(name);
          if (!tool) throw invalidParams(`unknown tool: ${name}`);
          const values = JSON.parse(given);
          return asked(
            context,
            (call) => after(tool.validate ? tool.validate(values) : values, (args) => tool.run(args, call)),
            tool.finish,
          );
        }),
    },
    resources: {
      listResources: () => answer(() => [...now().resources.values()].map(({ listed }) => listed)),
      listTemplates: () => answer(() => now().templates.map(({ listed }) => listed)),
      readResource: (uri, context) =>
        answer(() => {
          const { resources, templates } = now();
          const found = resources.get(uri) ?? first(templates, (template) => template.match(uri));
          if (!found) throw resourceNotFound(uri);
          return asked(context, (call) => found.read(call), found.finish);
        }),
    },
    prompts: {
      listPrompts: () => answer(() => [...now().prompts.values()].map(({ listed }) => listed)),
      getPrompt: (name, args, context) =>
        answer(() => {
          const prompt = now().prompts.get(name);
          if (!prompt) throw invalidParams(`unknown prompt: ${name}`);
          return asked(context, (call) => prompt.get(Object.fromEntries(args), call), prompt.finish);
        }),
    },
    completions: {
      complete: (target, argument, value, others) =>
        answer(() => {
          const { prompts, templates } = now();
          const owner =
            target.tag === "prompt"
              ? prompts.get(target.val)
              : templates.find(({ listed }) => listed.uriTemplate === target.val);
          return after(completion(owner?.complete?.[argument], value, others), (values) => {
            return { values: values.slice(0, 100), total: values.length, hasMore: values.length > 100 };
          });
        }),
    },
  };
}

/** Calls `next` with a value, or with the value of a promise once it is fulfilled. */
function after(value, next) {
  return typeof value?.then === "function" ? value.then(next) : next(value);
}

function first(list, find) {
  for (const one of list) {
    const found = find(one);
    if (found) return found;
  }
  return undefined;
}

/** Runs an author's function and returns its result, or the questions that it asked. */
export function asked(context, work, finish) {
  const call = new Call(context);
  const ended = (value) => (call.open.size ? { tag: "ask", val: call.round() } : finish(value));
  const result = work(call);
  if (typeof result?.then !== "function") return ended(result);
  return new Promise((resolve, reject) => {
    // One turn of the event loop later, all questions that are asked at the same time have been asked.
    call.whenAsked(() => setTimeout(() => resolve(ended()), 0));
    result.then(ended).then(resolve, reject);
  });
}

/** Runs `work`, and converts a thrown value to the contract's failure. */
export function answered(work) {
  const failed = (thrown) => {
    throw asFailure(thrown);
  };
  try {
    const result = work();
    return typeof result?.then === "function" ? result.then(undefined, failed) : result;
  } catch (thrown) {
    return failed(thrown);
  }
}

function warm({ tools }, cold) {
  for (const [name, { validate, schema }] of tools) {
    if (!validate || cold.includes(name)) continue;
    const missed = (thrown) => {
      if (!thrown?.atBuild) return;
      schema.cold = true;
      thrown.forgive?.();
    };
    for (const value of [{}, example(schema.json)]) {
      try {
        const made = validate(value);
        if (typeof made?.then === "function") made.then(undefined, missed);
      } catch (thrown) {
        missed(thrown);
      }
    }
  }
}
