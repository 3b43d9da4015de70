// Starts the server in the same memory, and greets it as a client does.

import * as time from "./build-time.js";
import { ending, renew } from "./node/process.js";
import { asking, client, connected, fail, hangUp, notify, request } from "./wire.js";

const PATIENCE_MS = 20_000;
const said = [];

/** Keeps the last lines that the server wrote: they say why it ended. */
client.said = (text) => {
  said.push(text);
  if (said.length > 5) said.shift();
};

/** What a client can do for whom all tools are of use. Lists are made for it, because wharf asks for them on behalf of no client. */
export const EVERYTHING = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } };

let main;
let starting;
let ended;

export function setMain(given) {
  main = given;
}

const why = (thrown) => {
  const told = thrown?.name === "Exit" ? thrown.message : `the server stopped: ${thrown?.message ?? thrown}`;
  const last = said.join(" ").slice(0, 500);
  return Object.assign(new Error(last && !told.includes(last) ? `${told}; it wrote: ${last}` : told), {
    ended: true,
    cause: undefined,
  });
};

/** Runs the server's modules until it reads stdin. */
export function start() {
  starting ??= new Promise((resolve, reject) => {
    const stop = (thrown) => {
      ended ??= why(thrown);
      fail(ended);
      reject(ended);
    };
    ending.exit = stop;
    const timer = time.building()
      ? undefined
      : setTimeout(() => stop(new Error("it does not read its stdin")), PATIENCE_MS);
    Promise.resolve().then(main).catch(stop);
    let reads = false;
    if (time.building()) pass(() => reads || ended !== undefined);
    connected().then(() => {
      reads = true;
      clearTimeout(timer);
      resolve();
    });
  });
  return starting;
}

/** Lets the time pass for which a start waits while the plugin is built. */
async function pass(isOver) {
  do await time.pace.idle();
  while (!isOver() && time.advance(PATIENCE_MS));
}

/** Forgets the server that was started. */
export function forget() {
  starting = undefined;
  ended = undefined;
  said.length = 0;
  hangUp();
  renew();
  time.forgetTimers();
}

/** Introduces a client with these capabilities, and returns what the server says of itself. */
export async function greet({
  revision = "2025-06-18",
  capabilities = {},
  info = { name: "wharf", version: "0" },
} = {}) {
  asking.forget();
  const about = await request("initialize", { protocolVersion: revision, capabilities, clientInfo: info });
  notify("notifications/initialized");
  await greeted();
  return about;
}

/** So many turns a server has for what it does when it is initialized before it asks the client something, and after the answer. */
const TURNS = { before: 50, after: 500 };

/** Waits until the server has done what it does when it is initialized, such as asking for the roots. */
async function greeted() {
  let asked = asking();
  await time.turns(TURNS.before);
  while (asking() !== asked || asking.open()) {
    asked = asking();
    await asking.ended();
    await time.turns(TURNS.after);
  }
}

/** Asks for a whole list, page by page. */
async function list(method, member) {
  const all = [];
  let cursor;
  do {
    const page = await request(method, cursor === undefined ? {} : { cursor });
    all.push(...(page[member] ?? []));
    cursor = page.nextCursor;
  } while (cursor !== undefined && all.length < 10_000);
  return all;
}

const METHOD_NOT_FOUND = -32601;

/** Asks for a whole list that a server with the capability may lack, such as that of templates. */
export const optional = (method, member) =>
  list(method, member).catch((thrown) => {
    if (thrown?.code === METHOD_NOT_FOUND) return [];
    throw thrown;
  });

/** Asks for all lists that the server offers. */
export async function lists({ capabilities }) {
  return {
    tools: capabilities.tools ? await optional("tools/list", "tools") : [],
    resources: capabilities.resources ? await optional("resources/list", "resources") : [],
    templates: capabilities.resources ? await optional("resources/templates/list", "resourceTemplates") : [],
    prompts: capabilities.prompts ? await optional("prompts/list", "prompts") : [],
  };
}
