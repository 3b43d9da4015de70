// Uses the page of `wharf open` in Chromium, by keyboard only, while two clients call tools:
//   page.mjs --bin WHARF --plugins FOLDER --modules FOLDER --chromium PROGRAM [--libraries FOLDERS] [--pictures FOLDER]
// Each view is checked by axe and at the width of a phone; with --pictures, it is drawn. What the page says is compared with what was done.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const { values: options } = parseArgs({
  options: Object.fromEntries(
    ["bin", "plugins", "modules", "chromium", "libraries", "pictures"].map((name) => [name, { type: "string" }]),
  ),
});
const require = createRequire(join(options.modules, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { default: puppeteer } = await load("puppeteer-core");
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
const { ElicitRequestSchema } = await load("@modelcontextprotocol/sdk/types.js");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const VIEWS = ["Now", "Refused", "Waiting", "Plugins", "Record", "Machine"];
/** How long something may take that has to happen, in milliseconds. */
const PATIENCE = 60_000;

// Pictures show the same paths each time.
const drawn = join(tmpdir(), "wharf-page");
if (options.pictures) mkdirSync(drawn);
const place = realpathSync(options.pictures ? drawn : mkdtempSync(`${drawn}-`));
const home = join(place, "home");
const project = join(home, "project");
mkdirSync(project, { recursive: true });
writeFileSync(join(project, "plan.md"), "# Plan\n\n1. Draft\n");
const config = join(home, "wharf.toml");
writeFileSync(
  config,
  `# Written by hand.
[roots]
fixed = [${JSON.stringify(project)}]

[audit]
file = "audit.jsonl"

[plugins.files]
path = ${JSON.stringify(join(options.plugins, "files.wasm"))}
confirm = "writes"

[plugins.files.grants]
roots = "read-write"

[plugins.fetch]
path = ${JSON.stringify(join(options.plugins, "fetch.wasm"))}

[plugins.fetch.grants]
http = []
`,
);
const env = { PATH: [dirname(options.bin), process.env.PATH].join(delimiter), HOME: home };
const site = createServer((_, response) => response.end("<p>Opening hours: 9 to 17</p>"));
await new Promise((listening) => site.listen(0, "127.0.0.1", listening));
const address = `http://127.0.0.1:${site.address().port}`;

/** Starts a client, which never answers a question itself. */
async function connect(name, version, words) {
  const client = new Client({ name, version }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, () => new Promise(() => {}));
  const transport = new StdioClientTransport({ command: "wharf", args: words, env, cwd: home, stderr: "ignore" });
  await client.connect(transport);
  return client;
}

const call = (client, name, args) =>
  client.callTool({ name, arguments: args }, undefined, { timeout: PATIENCE, resetTimeoutOnProgress: true });
const text = (result) => result.content.map((block) => block.text ?? "").join("\n");

/** Starts `wharf open`, and returns its process and the link. */
async function open() {
  const window = spawn("wharf", ["open", "--no-browser"], { env, stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: window.stdout })) {
    const link = line.match(/http:\/\/\S+/);
    if (link) return [window, link[0]];
  }
  throw new Error("wharf open printed no link");
}

const writer = await connect("writer", "2.4", ["run", "-c", config]);
const reader = await connect("reader", "1.0", ["run", "--builtin", "memory", "--builtin", "time"]);
const [window, link] = await open();
const browser = await puppeteer.launch({
  executablePath: options.chromium,
  env: { ...process.env, ...(options.libraries ? { LD_LIBRARY_PATH: options.libraries } : {}) },
  args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"],
});
const problems = [];
try {
  const page = await browser.newPage();
  page.on("pageerror", (error) => problems.push(`the script failed: ${error.message}`));
  page.on("console", (said) => said.type() === "error" && problems.push(`the console says: ${said.text()} ${said.location().url}`));
  page.on("request", (asked) => {
    if (new URL(asked.url()).host !== new URL(link).host) problems.push(`it asked ${asked.url()}`);
  });
  await page.setViewport({ width: 1000, height: 760 });
  await page.goto(link, { waitUntil: "load" });

  /** Presses Tab until the element with these words has the focus, and then Enter. */
  async function press(words) {
    for (let presses = 0; presses < 300; presses += 1) {
      await page.keyboard.press("Tab");
      const focused = await page.evaluate(() => document.activeElement?.textContent?.trim() ?? "");
      if (focused.startsWith(words)) {
        await Promise.all([page.waitForNavigation({ waitUntil: "load" }), page.keyboard.press("Enter")]);
        return;
      }
    }
    throw new Error(`${words} cannot be reached by keyboard`);
  }
  /** Waits until the page says this. It is brought up to date while it is open. */
  async function says(words) {
    const found = (wanted) => document.body.textContent.includes(wanted);
    try {
      await page.waitForFunction(found, { timeout: PATIENCE }, words);
    } catch {
      throw new Error(`the page does not say ${words}, but\n${await page.evaluate(() => document.body.innerText)}\n${problems.join("\n")}`);
    }
  }

  /** Checks how a view looks in the two colour schemes and on a phone, and draws it. */
  async function look(name) {
    for (const scheme of ["light", "dark"]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      for (const width of [1000, 360]) {
        await page.setViewport({ width, height: 760 });
        const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - window.innerWidth);
        if (wide > 0) problems.push(`${name}: ${wide} pixels too wide at ${width}`);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run());
        for (const { id, impact, help, nodes } of violations) {
          if (impact === "minor") continue;
          problems.push(`${name}, ${scheme}, ${width}: ${impact}: ${id}: ${help}: ${nodes[0].html}`);
        }
      }
    }
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
    await page.setViewport({ width: 1000, height: 760 });
    if (options.pictures) {
      const height = await page.evaluate(() => document.querySelector("main").getBoundingClientRect().bottom + 16);
      const clip = { x: 0, y: 0, width: 1000, height: Math.min(height, 860) };
      await page.screenshot({ path: join(options.pictures, `window-${name.toLowerCase()}.png`), clip });
    }
  }

  // Calls are shown as they happen, with what they used.
  await call(writer, "files_read_text_file", { path: join(project, "plan.md") });
  await call(writer, "files_list_directory", { path: project });
  await call(reader, "memory_read_graph", {});
  await call(reader, "time_get_current_time", { timezone: "Europe/Lisbon" });
  for (const words of ["writer 2.4", "reader 1.0", project, join(project, "plan.md")]) await says(words);

  // What was refused is allowed by one button, which is undone by another.
  const refused = await call(writer, "fetch_fetch", { url: `${address}/hours` });
  assert.ok(refused.isError, text(refused));
  await look("Now");
  await press("Refused");
  await says(`--allow http-private=${address}`);
  await look("Refused");
  await press("Allow always");
  await says("Done");
  assert.match(readFileSync(config, "utf8"), /^# Written by hand\.[\s\S]*private = true/);
  let fetched;
  // The config is read again when its change is noticed.
  for (const until = Date.now() + PATIENCE; Date.now() < until; ) {
    fetched = await call(writer, "fetch_fetch", { url: `${address}/hours` });
    if (!fetched.isError) break;
  }
  assert.match(text(fetched), /9 to 17/);
  await press("Take back");
  await says("Done");
  assert.doesNotMatch(readFileSync(config, "utf8"), /private = true/);

  // A question is answered here, and the call goes on.
  const write = { path: join(project, "plan.md"), content: "# Plan\n\n1. Draft\n2. Review\n3. Publish\n" };
  const writing = call(writer, "files_write_file", write);
  await says("Waiting (1)");
  await press("Waiting");
  await says("| 2. Review");
  await look("Waiting");
  await press("Only this call");
  assert.ok(!(await writing).isError);
  assert.equal(readFileSync(write.path, "utf8"), write.content);

  await press("Plugins");
  await says("files_write_file");
  await look("Plugins");

  // What the call has changed is taken back.
  await press("Record");
  await says("files_write_file");
  await look("Record");
  await press("Undo");
  await says("Done");
  assert.equal(readFileSync(write.path, "utf8"), "# Plan\n\n1. Draft\n");

  await press("Machine");
  await says("MiB");
  await look("Machine");

  // Without the cookie there is nothing to see.
  const stranger = await (await browser.createBrowserContext()).newPage();
  for (const url of [link, new URL("/", link).href]) {
    const answer = await stranger.goto(url);
    assert.equal(answer.status(), 403, url);
  }
} finally {
  await browser.close();
  window.kill();
  await Promise.all([writer.close(), reader.close()]);
  site.close();
  rmSync(place, { recursive: true, force: true });
}
if (problems.length > 0) {
  console.error([...new Set(problems)].join("\n"));
  process.exit(1);
}
console.log(`the page works in Chromium: ${VIEWS.length} views, two clients, keyboard only, no finding of axe`);
