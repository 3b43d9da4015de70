// Builds a component from a server that was written for Node.js and the official SDK.

import { relative, resolve } from "node:path";

import { component, sized, write } from "../build.js";
import { put, shown, unlessMade } from "../live.js";
import { Problem } from "../problem.js";
import { bundle, GIVEN, texts, virtual } from "./bundle.js";
import { findEntry } from "./entry.js";
import { probe } from "./probe.js";
import { tablesFor } from "./tables.js";
import { withoutProperties } from "../regexp.js";
import { wantsOf } from "./wants.js";
import { warningsOf } from "./warnings.js";

/** Things whose values differ between build and call. A server that uses one of them before it is connected starts in each instance. */
const VARIES = /^(env |args$|time$|random$|files$|fetch$|cwd$)/;

/** Variables that say how a program runs, and are never set for a plugin. */
const ORDINARY =
  /^(NODE_ENV|NODE_DEBUG|DEBUG|FORCE_COLOR|NO_COLOR|COLORTERM|TERM|CI|HOME|PATH|PWD|USER|SHELL|LANG|TZ|TMPDIR|NODE_OPTIONS|NODE_V8_COVERAGE|\*)$/;

/**
 * Builds the component, prints to stderr what was found, and returns what was made, for the author. With `live`, a folder, the server's own
 * modules are put there, and each instance runs them when it starts: the component holds the packages, and is made again only for others.
 */
export async function buildServer({
  entry: named,
  output,
  live,
  project = process.cwd(),
  args = [],
  say = (text) => console.error(text),
}) {
  const entry = findEntry(named, project);
  const { parts, found, given } = await started({ entry, project, args });
  if (found.lists) say(`${found.about.serverInfo?.name ?? named}: ${counted(found.lists)}`);
  else {
    say(`warning: ${named} does not start while it is built, where it can fetch and read nothing: ${found.later}`);
    say("its lists are known when wharf loads the plugin with what the operator grants");
  }

  const files = Object.keys(texts(entry.root, entry.file)).map((path) => path.slice("/server/".length));
  if (files.length) say(`the plugin contains text files of the server's folder: ${listed(files)}`);
  const wants = await wantsOf({ ...parts, found, given, project });
  for (const line of wants.told) say(line);
  for (const line of await warningsOf({ ...parts, project })) say(`warning: ${line}`);

  const fetches = FETCHES.test(parts.head) || FETCHES.test(parts.tail);
  const about = { instructions: cut(found.about?.instructions), wants: wants.json, keepsState: true };
  const make = async (code) => {
    const made = await component({ code, imports: imports(code), fetches, project }).catch((failed) => {
      throw failed instanceof Problem ? failed : unloadable(relative(project, entry.file), failed);
    });
    return write({ component: made, ...about, project, output });
  };
  if (live === undefined) {
    const ways = waysOf(found, say);
    const made = await make(await assembled(parts, { given, project, last: lastLines(found, ways) }));
    return sized(output, made);
  }
  const folder = resolve(project, live);
  await put({ code: await withoutProperties(`(async () => {${parts.tail}\n})()`, project, { always: true }), folder });
  const code = await assembled({ ...parts, tail: RUN_LIVE }, { given, project, last: lastLines({}, {}) });
  const made = await unlessMade({ code, fetches, about }, { output: resolve(project, output), project }, () =>
    make(code),
  );
  return shown({ folder: live, output, made });
}

/** Evaluates the server's modules in the scope of the packages' names. */
const RUN_LIVE = "return eval(globalThis.__wharf.liveCode());";

/** Returns whether the server is started while it is built, for the calls or only once before. */
function waysOf(found, say) {
  const varies = found.used.filter((one) => VARIES.test(one) && !ORDINARY.test(one.replace(/^env /, "")));
  const ways = { keep: !varies.length && found.twice, rehearse: found.twice };
  say(
    ways.keep
      ? "the server is started while it is built, and each instance begins with the started server"
      : `the server starts in each instance, because at its start it uses ${list(varies.length ? varies : ["a state that cannot be made twice"])}`,
  );
  return ways;
}

/** The engine says what it could not run, between the messages of the programs around it. */
function unloadable(name, failed) {
  const words = String(failed.message).replace(/^Error: .*componentize.*$/gm, "");
  const reason = /^\s*((?:\w*Error|Error while).*)$/m.exec(words)?.[1] ?? failed.message;
  return new Problem(`${name}: the engine could not load the bundled server: ${reason}`);
}

function counted({ tools, resources, templates, prompts }) {
  const shown = Object.entries({ tool: tools, resource: resources, template: templates, prompt: prompts })
    .filter(([, all]) => all.length)
    .map(([word, all]) => `${all.length} ${word}${all.length === 1 ? "" : "s"}`);
  return shown.join(", ") || "no tools, resources or prompts";
}

/** The bundle names `fetch` in this way, and only the SDK assigns to it. */
const FETCHES = /globalThis\.fetch(?! =)\b/;

const list = (used) => {
  const words = used.map((one) =>
    one.replace(/^env \*$/, "all environment variables").replace(/^env /, "the environment variable "),
  );
  return words.length > 5 ? `${words.slice(0, 5).join(", ")} and ${words.length - 5} more` : words.join(", ");
};

const listed = (names) =>
  names.length > 8 ? `${names.slice(0, 8).join(", ")} and ${names.length - 8} more` : names.join(", ");

const MOST_INSTRUCTIONS = 2048;
const cut = (text) => {
  if (!text || Buffer.byteLength(text) <= MOST_INSTRUCTIONS) return text;
  return new TextDecoder().decode(Buffer.from(text).subarray(0, MOST_INSTRUCTIONS - 8)).replace(/\ufffd$/, "") + " …";
};

/**
 * Bundles and probes the server: with the parts of packages that are made for browsers, which need the least, and if it does not start with
 * them, with those for Node.js.
 */
export async function started({ entry, project, args, env }) {
  const attempt = async (forNode) => {
    const bundled = await bundle({ entry, project, forNode });
    const parts = { ...bundled, tables: `globalThis.__wharfTables = ${JSON.stringify(tablesFor(bundled.others))};` };
    return { parts, ...(await probed(parts, { project, args, entry, env })) };
  };
  const outcomes = [];
  for (const forNode of [false, true]) {
    const outcome = await attempt(forNode).catch((failed) => ({ failed }));
    if (outcome.found?.lists) return outcome;
    outcomes.push(outcome);
  }
  // Without lists, it may be one that fetches or reads something before it answers.
  const made = outcomes.find(({ found }) => found);
  if (made) return made;
  throw outcomes[0].failed;
}

/** The most starts of a server in search of the variables without which it does not start. */
const MOST_STARTS = 8;

/** Names of variables without which a server is likely not to start. */
const LIKELY = /KEY|TOKEN|SECRET|PASS|URL|USER|_ID$/;

/** Probes the server; if it ends itself for want of a variable, again with a value for one that it asks for, and so on. */
export async function probed(parts, { project, args, entry, env = {} }) {
  const file = virtual(entry.file, entry);
  const attempt = async (guessed) => {
    const given = { env: { ...env, ...guessed }, args, file };
    const last = "export { __wharfMain as main };";
    return { given, found: await probe({ code: await assembled(parts, { given, project, last, regexps: false }), project }) };
  };
  const guessed = {};
  const useless = new Set();
  // Guessed values may end a server in another way than the one that its author should hear of.
  let first;
  let later;
  for (let start = 0; start < MOST_STARTS; start++) {
    const { given, found } = await attempt(guessed);
    if (found.lists) return { found, given };
    if (found.later) later ??= found;
    first ??= found;
    const words = `${found.ended ?? found.later} ${found.said}`;
    // A value that the server complains of is worse than none.
    for (const name of Object.keys(guessed).filter((name) => mentions(words, name))) {
      delete guessed[name];
      useless.add(name);
    }
    const names = found.used
      .filter((one) => one.startsWith("env "))
      .map((one) => one.slice(4))
      .filter((name) => !ORDINARY.test(name) && [env, guessed].every((all) => all[name] === undefined) && !useless.has(name));
    const named = names.filter((name) => mentions(words, name)).sort((one, other) => LIKELY.test(other) - LIKELY.test(one));
    const likely = names.filter((name) => LIKELY.test(name));
    // What it names may be alternatives, of which it takes one.
    const lacking = named.length ? named.slice(0, 1) : likely.length ? likely : names;
    if (!lacking.length) break;
    for (const name of lacking) guessed[name] = example(name);
  }
  if (later) return { found: later, given: { env: { ...env }, args, file } };
  const shown = relative(project, entry.file);
  const { ended, said, stack } = first;
  throw Object.assign(new Problem(`${shown}: ${ended}${said && !ended.includes(said) ? `\nit wrote:\n${said}` : ""}`), {
    where: stack,
  });
}

/** Whether a text has a name as a word. */
const mentions = (text, name) => new RegExp(`(?<!\\w)${name}(?!\\w)`).test(text);

/** A value with which a server that only checks whether a variable is set goes on. */
function example(name) {
  if (/PORT|TIMEOUT|LIMIT|MAX|MIN|COUNT|SIZE|SECONDS|_MS$/.test(name)) return "1";
  if (/URL|URI|ENDPOINT|HOST|DOMAIN|INSTANCE|SITE/.test(name)) return "https://wharf.example";
  return "wharf-example";
}

/** Joins the parts to one module. */
export async function assembled({ head, tail, tables = "" }, { given, project, last, regexps = true }) {
  const code = [
    tables + head.replace(GIVEN, () => JSON.stringify(given)),
    "async function __wharfMain() {",
    tail,
    "}",
    last,
  ].join("\n");
  return regexps ? withoutProperties(code, project, { always: true }) : code;
}

function lastLines({ about, lists }, ways) {
  const found = lists && { lists, capabilities: about.capabilities };
  return [
    'import { log as __wharfLog } from "wharf:plugin/logging@0.1.0";',
    'import { report as __wharfProgress } from "wharf:plugin/progress@0.1.0";',
    'import { listChanged as __wharfListChanged, resourceUpdated as __wharfResourceUpdated } from "wharf:plugin/announcements@0.1.0";',
    'import { config as __wharfConfig, directories as __wharfDirectories } from "wharf:plugin/environment@0.1.0";',
    "const __wharfHost = { log: __wharfLog, progress: __wharfProgress, listChanged: __wharfListChanged, " +
      "resourceUpdated: __wharfResourceUpdated, config: __wharfConfig, directories: __wharfDirectories };",
    `const __wharfMade = globalThis.__wharf.serve(__wharfHost, __wharfMain, ${JSON.stringify(found) ?? "undefined"});`,
    "export const { tools, resources, prompts, completions } = __wharfMade;",
    `await globalThis.__wharf.rehearse(${JSON.stringify(ways)});`,
  ].join("\n");
}

const imports = (code) => [...new Set([...code.matchAll(/from "(wasi:[^"]+)"/g)].map(([, name]) => name))];
