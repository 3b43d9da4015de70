// Finds what a server would use: hosts in its URLs, environment variables, folders, and questions to the client.

import { calledName, treeOf, walk } from "./tree.js";

const MOST = 32;
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const WRITES =
  /^(writeFile|appendFile|mkdir|unlink|rm|rmdir|rename|copyFile|cp|mkdtemp|createWriteStream|truncate)(Sync)?$/;
export const ASKS = {
  elicitInput: "elicitation",
  createMessage: "sampling",
  requestSampling: "sampling",
  elicit: "elicitation",
};

/** Variables that say how programs in general run. */
const ORDINARY =
  /^(NODE_ENV|NODE_DEBUG|DEBUG|FORCE_COLOR|NO_COLOR|COLORTERM|TERM|TERM_.*|CI|HOME|PATH|PWD|USER|SHELL|LANG|TZ|TMPDIR|TEMP|TMP|npm_.*|NODE_OPTIONS|NODE_V8_COVERAGE|VITEST.*|JEST.*|APPDATA|USERPROFILE|XDG_.*)$/i;
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** Hosts that stand for a namespace, an example or this machine, not for a service. */
const NO_SERVICE =
  /^([\d.]+|localhost|127\..*|0\.0\.0\.0|\[.*|.*\.?example(\.(com|org|net))?|.*\.(local|localhost|test|invalid|internal|lan|home|corp|onion)|json-schema\.org|(www\.)?w3\.org|schemas?\..*|spec\..*|.*\.schemastore\.org)$/i;

/** Returns the wants as JSON, and as lines for the author. */
export async function wantsOf({ tail, found, packages, project }) {
  const { body } = await treeOf(tail, project);
  const [hosts, env, methods, asks] = [new Set(), new Set(), new Set(["GET", "HEAD"]), new Set()];
  let writes = false;
  for (const one of found.used) if (one.startsWith("env ")) env.add(one.slice(4));
  for (const statement of body) {
    walk(statement, (node, parents) => {
      const text = literal(node);
      if (text !== undefined) {
        const host = hostOf(text);
        if (host && !isProse(node, parents)) hosts.add(host);
      }
      for (const name of variables(node)) env.add(name);
      if (node.type === "CallExpression") {
        const name = calledName(node);
        if (WRITES.test(name)) writes = true;
        if (Object.hasOwn(ASKS, name)) asks.add(ASKS[name]);
        const verb = /^(post|put|patch|delete)$/i.exec(name)?.[1];
        if (verb && node.arguments.length && (literal(node.arguments[0]) ?? "/").match(/^(https?:|\/|$)/))
          methods.add(verb.toUpperCase());
      }
      if (node.type === "Property" && node.key.name === "method" && METHODS.includes(node.value.value))
        methods.add(node.value.value);
    });
  }
  const files = [...packages].some((path) => /^(node:)?fs(\/promises)?$/.test(path));
  const named = [...env]
    .filter((name) => NAME.test(name) && !ORDINARY.test(name))
    .sort()
    .slice(0, MOST);
  const http = [...hosts]
    .sort()
    .slice(0, MOST)
    .map((host) => ({
      url: `https://${host}/`,
      ...(methods.size > 2 && { methods: METHODS.filter((one) => methods.has(one)) }),
    }));
  const json = {
    ...(http.length && { http }),
    ...(named.length && { env: named }),
    ...(files && { roots: writes ? "read-write" : "read" }),
    ...(asks.size && { ask: [...asks] }),
  };
  return { json: Object.keys(json).length ? json : undefined, told: told(json, methods) };
}

function told({ http, env, roots, ask }, methods) {
  const lines = [];
  if (http)
    lines.push(
      `wants to reach ${http.map(({ url }) => url).join(", ")} (${METHODS.filter((one) => methods.has(one)).join(", ")})`,
    );
  if (env) lines.push(`wants the environment variables ${env.join(", ")}`);
  if (roots) lines.push(`wants to ${roots === "read" ? "read" : "read and write"} in folders`);
  if (ask) lines.push(`wants to ask the client: ${ask.join(", ")}`);
  if (lines.length) lines.push("nothing of this is granted by the build: the operator grants it");
  return lines;
}

function literal(node) {
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  if (node.type === "TemplateLiteral") return node.quasis[0].value.cooked;
  return undefined;
}

/** Only a text that begins with a URL is one; a URL within a sentence is for a reader. */
function hostOf(text) {
  const host = /^https?:\/\/([a-z0-9-]+(\.[a-z0-9-]+)+)(?::\d+)?(?:[/?#]|$)/i.exec(text ?? "")?.[1].toLowerCase();
  return host && !/\s/.test(text.trim()) && !NO_SERVICE.test(host) ? host : undefined;
}

/** Whether a text is only shown: a description or a title. */
function isProse(node, parents) {
  const parent = parents.at(-1);
  if (parent?.type === "Property" && parent.value === node) {
    return /^(description|title|homepage|websiteUrl|src|icon|example|examples|\$schema|\$id|documentation|docs)$/i.test(
      parent.key.name ?? parent.key.value,
    );
  }
  return parent?.type === "CallExpression" && ["describe", "error", "log", "warn"].includes(calledName(parent));
}

const isEnv = (node) =>
  node?.type === "MemberExpression" &&
  node.property.name === "env" &&
  ["process", "import_process", "process2"].includes(node.object.name ?? node.object.object?.name);

/** The variables that an expression names: `process.env.A`, `process.env["A"]`, `const { A } = process.env`. */
function variables(node) {
  if (node.type === "MemberExpression" && isEnv(node.object)) {
    const name = node.computed ? node.property.value : node.property.name;
    return typeof name === "string" ? [name] : [];
  }
  if (node.type === "VariableDeclarator" && isEnv(node.init) && node.id.type === "ObjectPattern") {
    return node.id.properties.flatMap(({ key }) => (key?.name ? [key.name] : []));
  }
  return [];
}
