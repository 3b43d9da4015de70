// The functions by which an author defines the parts of a plugin.

import { asContent, isContent, more, text, ToolResult } from "./content.js";
import { resourceNotFound, shown } from "./errors.js";
import { readSchema } from "./schema.js";

const NAME = /^[A-Za-z0-9_.-]{1,128}$/;
const NEEDS = ["form", "url", "sampling", "samplingTools", "roots"];
const ASK_BEFORE_TASK = "dev.wharf/ask-before-task";
const TASKS = ["forbidden", "optional", "required"];

/** A tool. `run` gets the arguments, with the schema's type, and the call. */
export const tool = (name, options) => ({ kind: "tool", name, made: placed(toolOf(name, options)) });

/** A resource, or a template if the URI has `{variables}`. `read` gets the variables and the call. */
export function resource(uri, options) {
  const template = typeof uri === "string" && uri.includes("{");
  return template
    ? { kind: "template", made: templateOf(uri, options) }
    : { kind: "resource", name: uri, made: placed(resourceOf(uri, options)) };
}

/** A prompt. `get` gets the arguments and the call. */
export const prompt = (name, options) => ({ kind: "prompt", name, made: placed(promptOf(name, options)) });

/** A plugin with these parts, or with the parts that a function of the operator's config returns. */
export function plugin(parts, options = {}) {
  if (typeof parts !== "function" && !Array.isArray(parts)) {
    throw new TypeError("plugin() takes a list of tools, resources and prompts");
  }
  return { kind: "plugin", parts, options };
}

/** Errors about what a function returned have no line of the author in their stack, so they get the line of the definition. */
function placed(made) {
  const defined = new Error();
  const finish = (value) => {
    try {
      return made.finish(value);
    } catch (thrown) {
      if (thrown instanceof TypeError) thrown.defined = defined;
      throw thrown;
    }
  };
  return { ...made, finish };
}

function need(right, problem) {
  if (!right) throw new TypeError(problem);
}

function named(what, name, options, member) {
  need(typeof name === "string" && NAME.test(name), `${what} ${shown(name)}: a name has 1 to 128 of A-Z a-z 0-9 _ - .`);
  need(typeof options?.[member] === "function", `${what} \`${name}\` needs a function \`${member}\``);
}

/** Returns the parts in the form of the contract's lists, and with their functions. */
export function catalog(parts) {
  const made = { tools: new Map(), resources: new Map(), templates: [], prompts: new Map() };
  for (const part of parts.flat(Infinity)) {
    if (part?.kind === "template") made.templates.push(part.made);
    else if (made[`${part?.kind}s`] instanceof Map) put(made[`${part.kind}s`], part.kind, part);
    else throw new TypeError(`a part of the plugin is not a tool, resource or prompt: ${shown(part)}`);
  }
  return made;
}

function put(map, what, { name, made }) {
  need(!map.has(name), `there are two ${what}s called \`${name}\``);
  map.set(name, made);
}

function toolOf(name, options) {
  named("tool", name, options, "run");
  const { description, title, input, output, hints, needs = [], task = "forbidden", askBeforeTask = false } = options;
  need(typeof description === "string" && description, `tool \`${name}\` needs a description: a model chooses by it`);
  need(TASKS.includes(task), `tool \`${name}\`: \`task\` is one of ${TASKS.join(", ")}`);
  for (const one of needs)
    need(NEEDS.includes(one), `tool \`${name}\`: \`needs\` must be of ${NEEDS.join(", ")}, not ${one}`);
  const given = readSchema(input, "input", `\`input\` of tool \`${name}\``);
  const told = output && readSchema(output, "output", `\`output\` of tool \`${name}\``);
  const meta = askBeforeTask ? { ...options.meta, [ASK_BEFORE_TASK]: true } : options.meta;
  const listed = {
    name,
    description,
    inputSchema: JSON.stringify(given.json),
    details: {
      title,
      outputSchema: told && JSON.stringify(told.json),
      hints,
      needs: Object.fromEntries(NEEDS.map((one) => [one, needs.includes(one)])),
      task,
      more: more({ icons: options.icons, _meta: meta }),
    },
  };
  return {
    listed,
    schema: given,
    validate: given.validate,
    run: options.run,
    finish: (value) => toolOutcome(name, told, value),
  };
}

function toolOutcome(name, structured, value) {
  if (value instanceof ToolResult) {
    const { content, isError, meta } = value;
    const blocks = asContent(content);
    need(blocks, `the tool \`${name}\` returned content that is neither text nor a content block`);
    const data = value.structured === undefined ? undefined : JSON.stringify(value.structured);
    return { tag: "done", val: { content: blocks, structured: data, isError, more: more({ _meta: meta }) } };
  }
  if (structured) {
    need(
      typeof value === "object" && value !== null && !Array.isArray(value),
      returned("tool", name, value, "its `output` says an object"),
    );
    return { tag: "structured", val: JSON.stringify(value) };
  }
  if (typeof value === "string") return { tag: "text", val: value };
  const blocks = value === undefined ? [] : asContent(value);
  need(blocks, returned("tool", name, value, "return a string or content, or declare `output`"));
  return { tag: "done", val: { content: blocks, structured: undefined, isError: false, more: undefined } };
}

function returned(what, name, value, hint) {
  const kind =
    value === null
      ? "null"
      : Array.isArray(value)
        ? "a list"
        : typeof value === "object"
          ? "an object"
          : `a ${typeof value}`;
  return `the ${what} \`${name}\` returned ${kind}: ${hint}`;
}

function resourceOf(uri, options) {
  need(
    typeof uri === "string" && /^[a-z][a-z0-9+.-]*:/i.test(uri),
    `resource ${shown(uri)}: a URI begins with its scheme`,
  );
  need(typeof options?.read === "function", `resource \`${uri}\` needs a function \`read\``);
  const { name = uri, description, mimeType } = options;
  const { title, size, annotations, icons, meta } = options;
  return {
    listed: { uri, name, description, mimeType, more: more({ title, size, annotations, icons, _meta: meta }) },
    read: (call) => options.read({ uri }, call),
    finish: (value) => readOutcome(uri, mimeType, value),
  };
}

function templateOf(uri, options) {
  const { listed, finish: _, ...rest } = resourceOf(uri, options);
  const { uri: _uri, more: _more, ...members } = listed;
  const { title, annotations, icons, meta, complete = {} } = options;
  const { pattern, names } = matcher(uri);
  for (const one of Object.keys(complete)) need(names.includes(one), `template \`${uri}\` has no variable \`${one}\``);
  return {
    ...rest,
    listed: { uriTemplate: uri, ...members, more: more({ title, annotations, icons, _meta: meta }) },
    complete,
    match(asked) {
      const found = pattern.exec(asked);
      if (!found) return undefined;
      const variables = Object.fromEntries(names.map((name, index) => [name, decoded(found[index + 1])]));
      return {
        read: (call) => options.read({ ...variables, uri: asked }, call),
        finish: (value) => readOutcome(asked, options.mimeType, value),
      };
    },
  };
}

/** Returns the pattern of a URI template, and its variables. `{x}` matches text without slashes, `{+x}` any text. */
function matcher(template) {
  const names = [];
  const pattern = template.replace(/\{(\+?)([A-Za-z0-9_]+)\}|[^{]+|\{/g, (piece, plus, name) => {
    if (name) {
      names.push(name);
      return plus ? "(.+)" : "([^/?#]+)";
    }
    need(piece !== "{", `template \`${template}\`: only {name} and {+name} are known`);
    return piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  });
  return { pattern: new RegExp(`^${pattern}$`), names };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function readOutcome(uri, mimeType, value) {
  if (typeof value === "string") return { tag: "text", val: value };
  if (value === undefined || value === null) throw resourceNotFound(uri);
  if (value instanceof Uint8Array)
    return { tag: "done", val: [{ uri, mimeType, body: { tag: "bytes", val: value }, more: undefined }] };
  const list = Array.isArray(value) ? value : [value];
  need(
    list.every((one) => one?.body?.tag),
    returned("resource", uri, value, "return a string, a Uint8Array or contents()"),
  );
  return { tag: "done", val: list };
}

function promptOf(name, options) {
  named("prompt", name, options, "get");
  const { description, title, args = {}, icons, meta } = options;
  const known = Object.entries(args).map(([key, arg]) => [key, typeof arg === "string" ? { description: arg } : arg]);
  return {
    listed: {
      name,
      description,
      arguments: known.map(([key, { description, required = true }]) => ({ name: key, description, required })),
      more: more({ title, icons, _meta: meta }),
    },
    complete: Object.fromEntries(known.filter(([, arg]) => arg.complete).map(([key, arg]) => [key, arg.complete])),
    get: options.get,
    finish: (value) => promptOutcome(name, value),
  };
}

function promptOutcome(name, value) {
  if (typeof value === "string") return { tag: "text", val: value };
  const { description, messages } = Array.isArray(value) ? { messages: value } : (value ?? {});
  const list = Array.isArray(messages) ? messages : undefined;
  const made = list?.map(({ role, content }) => ({
    role,
    content: typeof content === "string" ? text(content) : content,
  }));
  const right = made?.every(({ role, content }) => (role === "user" || role === "assistant") && isContent(content));
  need(right, returned("prompt", name, value, "return a string, or a list of user(…) and assistant(…)"));
  return { tag: "done", val: { description, messages: made, more: undefined } };
}

/** Returns the suggestions for an argument. A list is filtered by the typed prefix; a function returns the suggestions itself. */
export function completion(complete, value, others) {
  if (Array.isArray(complete)) return complete.filter((one) => one.startsWith(value));
  return complete ? complete(value, Object.fromEntries(others)) : [];
}
