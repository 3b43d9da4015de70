// The exports of the component for a server that was written for Node.js: each call becomes a request to the server in the same memory.

import { form, sampling, url } from "../call.js";
import { Failure, invalidParams, resourceNotFound } from "../errors.js";
import * as host from "../host.js";
import { answered, asked } from "../runtime.js";
import { building, live } from "./build-time.js";
import { promptOf, promptOutcome, readOutcome, resourceOf, templateOf, toolOf, toolOutcome } from "./convert.js";
import { EVERYTHING, greet, optional, setMain, start } from "./server.js";
import { client, request } from "./wire.js";

const INVALID_PARAMS = -32602;
const NOT_FOUND = -32002;
const PROGRESS_TOKEN = 1;

/** The call that is answered now, and the number of questions that it has asked. */
let current;
let questions = 0;

/** A short text that is different for another question, so that no answer is given to a question that changed between two rounds. */
function digest(text) {
  let sum = 5381;
  for (let at = 0; at < text.length; at++) sum = ((sum * 33) ^ text.charCodeAt(at)) >>> 0;
  return sum.toString(36);
}

/**
 * Requests to the server that wait for answers of the client, by what they ask the server for. `waiting`: what takes the call with the answers,
 * by the keys of the questions. The server goes on when they are there, unless they arrive in another instance: there it begins again.
 */
const asking = new Map();
const MOST_ASKING = 16;

/** Puts a question to the client of the current call. */
function put(key, question) {
  const call = current;
  const answer = call.ask(key, question);
  const { sent } = call;
  // Without a request, the server asks while it is initialized; the next instance asks again.
  if (call.hasAnswer(key) || !sent) return answer;
  sent.questions = questions;
  asking.set(sent.what, sent);
  if (asking.size > MOST_ASKING) asking.delete(asking.keys().next().value);
  return new Promise((resolve, reject) => {
    sent.waiting.set(key, (next) => next.ask(key, question).then(resolve, reject));
  });
}

/** Sends a request for a call, or goes on with the one whose questions the call answers. */
function send(call, method, params, meta) {
  const what = JSON.stringify([method, params]);
  const before = asking.get(what);
  asking.delete(what);
  const sent = { what, waiting: new Map() };
  call.sent = sent;
  if (before && [...before.waiting.keys()].every((key) => call.hasAnswer(key))) {
    ({ result: sent.result, questions } = before);
    for (const take of before.waiting.values()) take(call);
  } else sent.result = request(method, { ...params, ...(Object.keys(meta).length && { _meta: meta }) });
  return sent.result;
}

client.request = async (method, params) => {
  // The client's folders that the operator granted are open directories. Others are of no use to the plugin.
  if (method === "roots/list")
    return {
      roots: (building() ? [] : host.directories()).map(({ path }) => ({
        uri: `file://${encodeURI(path)}`,
        name: path,
      })),
    };
  if (method === "ping") return {};
  if (!current) throw new Error("the client can be asked only during a call");
  const key = `${++questions}-${digest(method + JSON.stringify(params))}`;
  if (method === "elicitation/create") {
    const question =
      params.mode === "url" ? url(params.message, params.url) : form(params.message, params.requestedSchema);
    const { action, content } = await put(key, question);
    return content === undefined ? { action } : { action, content };
  }
  if (method === "sampling/createMessage") return put(key, sampling(params));
  throw Object.assign(new Error(`the client does not answer ${method}`), { code: -32601 });
};

client.notification = (method, params) => {
  if (!current) return;
  if (method === "notifications/progress") host.progress(params.progress, params.total, params.message);
  else if (method === "notifications/message") {
    const { level, data } = params;
    host.log(level, typeof data === "string" ? data : JSON.stringify(data), data);
  } else if (method === "notifications/resources/updated") host.resourceUpdated(params.uri);
  else {
    const list = /^notifications\/(tools|resources|prompts)\/list_changed$/.exec(method);
    if (list) host.listChanged(list[1]);
  }
};

/** How the client was introduced to the server, and what the server said then. */
let greeted;

/** Starts the server in the first call of an instance, and introduces the client of this call, unless that was done before. */
async function begin(call) {
  live();
  current = undefined;
  questions = 0;
  client.starting = true;
  await start();
  current = call;
  const introduction = {
    capabilities: call ? { ...call.capabilities, roots: {} } : EVERYTHING,
    info: call?.client,
  };
  const as = JSON.stringify(introduction);
  if (!greeted || (call && greeted.as !== as)) greeted = { as, about: await greet(introduction) };
  client.starting = false;
  return greeted.about;
}

/** Tells wharf that the server has ended, so that the next call has a new instance. */
const ENDED = { "dev.wharf/ended": true };

const failure = (thrown, uri) => {
  if (thrown instanceof Error) return thrown.ended ? new Failure(thrown.message, { data: ENDED }) : thrown;
  if (thrown?.code === NOT_FOUND) return resourceNotFound(uri ?? thrown.data?.uri);
  if (thrown?.code === INVALID_PARAMS) return invalidParams(thrown.message, thrown.data);
  return new Failure(thrown?.message ?? String(thrown), { data: thrown?.data });
};

/** Sends one request for a call, and returns the outcome or the questions that the server asked. */
function ask(context, method, params, finish) {
  return answered(() =>
    asked(
      context,
      async (call) => {
        await begin(call);
        const meta = { ...call.meta, ...(call.can("progress") && { progressToken: PROGRESS_TOKEN }) };
        try {
          return await send(call, method, params, meta);
        } catch (thrown) {
          throw failure(thrown, params.uri);
        }
      },
      finish,
    ),
  );
}

/**
 * Asks the server for a list, with what the operator grants. A server that does not start without more has the list that the build found.
 */
function listed(kind, method, member, convert, found) {
  return answered(async () => {
    if (found && !found.capabilities[kind]) return [];
    let all;
    try {
      const about = await begin(undefined);
      all = about.capabilities[kind] ? await optional(method, member) : [];
    } catch (thrown) {
      if (!found) throw failure(thrown);
      all = found.lists[member === "resourceTemplates" ? "templates" : member];
    }
    return all.map(convert);
  });
}

/** Returns the exports. `found` has what the build found out: the server's capabilities and its lists. */
export function serve(wharf, main, found) {
  host.setHost(wharf);
  setMain(main);
  return {
    tools: {
      listTools: () => listed("tools", "tools/list", "tools", toolOf, found),
      callTool: (name, args, context) => ask(context, "tools/call", { name, arguments: JSON.parse(args) }, toolOutcome),
    },
    resources: {
      listResources: () => listed("resources", "resources/list", "resources", resourceOf, found),
      listTemplates: () => listed("resources", "resources/templates/list", "resourceTemplates", templateOf, found),
      readResource: (uri, context) => ask(context, "resources/read", { uri }, readOutcome),
    },
    prompts: {
      listPrompts: () => listed("prompts", "prompts/list", "prompts", promptOf, found),
      getPrompt: (name, args, context) =>
        ask(context, "prompts/get", { name, arguments: Object.fromEntries(args) }, promptOutcome),
    },
    completions: {
      complete: (target, argument, value, others) =>
        answered(async () => {
          const none = { values: [], total: 0, hasMore: false };
          if (found && !found.capabilities.completions) return none;
          const about = await begin(undefined);
          if (!about.capabilities.completions) return none;
          const ref =
            target.tag === "prompt"
              ? { type: "ref/prompt", name: target.val }
              : { type: "ref/resource", uri: target.val };
          const context = others.length ? { context: { arguments: Object.fromEntries(others) } } : {};
          const { completion } = await request("completion/complete", {
            ref,
            argument: { name: argument, value },
            ...context,
          });
          return {
            values: completion.values.slice(0, 100),
            total: completion.total,
            hasMore: completion.hasMore === true,
          };
        }),
    },
  };
}
