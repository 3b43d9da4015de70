//! The catalog for clients that are better off with few tools, with the tools of two dozen servers of others: what a list of all
//! costs a model and what three tools do, whether the right tool is found, and that a tool added a second ago is found and called.
//!
//! `cargo xtask check search` installs the servers. Exits with 1 if too few tools are among the first three found.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "it starts the servers and reads what it is told; what it starts ends with it"
)]

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use e2e::{Folder, Pipe, Server, Value, json, plugin, together};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt,
    model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion},
    transport::TokioChildProcess,
};
use serde::Deserialize;
use tokio::{process::Command, time::timeout};

/// A server of others, or of wharf on a machine that does much else, takes no longer for anything.
const PATIENCE: Duration = Duration::from_secs(120);
const REVISION: &str = "2025-11-25";
/// How many servers start at once.
const AT_ONCE: usize = 4;
/// How many of the first tools found may hold the right one.
const FIRST: usize = 3;
/// How many are asked for.
const WITHIN: usize = 5;
/// Of a hundred queries: those of persons, and those of models.
const FOUND_AT_LEAST: [usize; 2] = [65, 95];

/// A server: what it is called here, where it comes from, and what it wants before it starts, which is never a secret of anybody's.
struct Source {
    id: &'static str,
    from: From,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

enum From {
    Npm(&'static str),
    /// A program of the Python environment.
    Python(&'static str),
}

const fn npm(id: &'static str, package: &'static str, environment: &'static [(&'static str, &'static str)]) -> Source {
    Source { id, from: From::Npm(package), arguments: &[], environment }
}

const fn python(id: &'static str, program: &'static str, arguments: &'static [&'static str]) -> Source {
    Source { id, from: From::Python(program), arguments, environment: &[] }
}

const SOURCES: [Source; 24] = [
    Source { arguments: &["."], ..npm("filesystem", "@modelcontextprotocol/server-filesystem", &[]) },
    npm("memory", "@modelcontextprotocol/server-memory", &[]),
    npm("thinking", "@modelcontextprotocol/server-sequential-thinking", &[]),
    npm("github", "@modelcontextprotocol/server-github", &[("GITHUB_PERSONAL_ACCESS_TOKEN", "none")]),
    npm("gitlab", "@modelcontextprotocol/server-gitlab", &[("GITLAB_PERSONAL_ACCESS_TOKEN", "none")]),
    npm("slack", "@modelcontextprotocol/server-slack", &[("SLACK_BOT_TOKEN", "none"), ("SLACK_TEAM_ID", "none")]),
    npm("maps", "@modelcontextprotocol/server-google-maps", &[("GOOGLE_MAPS_API_KEY", "none")]),
    npm("brave", "@modelcontextprotocol/server-brave-search", &[("BRAVE_API_KEY", "none")]),
    npm("playwright", "@playwright/mcp", &[]),
    npm("devtools", "chrome-devtools-mcp", &[]),
    npm("notion", "@notionhq/notion-mcp-server", &[("NOTION_TOKEN", "none")]),
    npm("airtable", "airtable-mcp-server", &[("AIRTABLE_API_KEY", "none")]),
    npm("tavily", "tavily-mcp", &[("TAVILY_API_KEY", "none")]),
    npm("sentry", "@sentry/mcp-server", &[("SENTRY_ACCESS_TOKEN", "none")]),
    npm("hubspot", "@hubspot/mcp-server", &[("PRIVATE_APP_ACCESS_TOKEN", "none")]),
    npm("todoist", "@doist/todoist-mcp", &[("TODOIST_API_KEY", "none")]),
    npm("trello", "@delorenj/mcp-server-trello", &[("TRELLO_API_KEY", "none"), ("TRELLO_TOKEN", "none")]),
    npm("postgres", "@henkey/postgres-mcp-server", &[]),
    npm("weather", "@dangahagan/weather-mcp", &[("ENABLED_TOOLS", "all")]),
    python("git", "mcp-server-git", &[]),
    python("time", "mcp-server-time", &[]),
    python("fetch", "mcp-server-fetch", &[]),
    python("excel", "excel-mcp-server", &["stdio"]),
    python("word", "word_mcp_server", &[]),
];

#[derive(Deserialize)]
struct Queries {
    query: Vec<Query>,
}

/// What is looked for, as a person says it and as a model asks, and the tools that do it.
#[derive(Deserialize)]
struct Query {
    text: String,
    asked: String,
    right: Vec<String>,
}

struct Client;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("search", "0.1.0"))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }
}

fn say(text: &str) {
    writeln!(std::io::stdout(), "{text}").ok();
}

#[tokio::main]
async fn main() -> Result<()> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("no workspace")?.to_path_buf();
    let queries = std::fs::read_to_string(workspace.join("tests/search/queries.toml"))?;
    let Queries { query: queries } = toml::from_str(&queries)?;
    let installed = workspace.join("target/search");

    let mut offered = 0;
    let mut config = String::new();
    for sources in SOURCES.chunks(AT_ONCE) {
        let lists = together(sources.iter().map(|source| source.tools(&installed))).await;
        for (source, tools) in sources.iter().zip(lists) {
            let tools = tools.with_context(|| format!("the server {}", source.id))?;
            offered += tools.len();
            config += &source.table(&tools);
        }
    }

    let folder = Folder::new();
    folder.config(&config);
    let all = list(&folder, &["run"]).await?;
    let few = list(&folder, &["run", "--profile", "search"]).await?;
    let tokenizer = tiktoken_rs::o200k_base()?;
    let tokens = |value: &Value| tokenizer.encode_ordinary(&value.to_string()).len();
    say(&format!("{} servers offer {offered} tools, of which wharf serves {}", SOURCES.len(), all.len()));
    for query in &queries {
        for right in &query.right {
            ensure!(all.iter().any(|tool| tool["name"] == **right), "{:?}: there is no tool {right}", query.text);
        }
    }
    let (whole, searched) = (tokens(&json!(all)), tokens(&json!(few)));
    say(&format!("tokens of tools/list (o200k): {whole}; in search mode, {} tools: {searched}", few.len()));
    ensure!(all.len() >= 300, "these are too few");

    let mut pipe = Pipe::start(&folder, &["run", "--profile", "search"]);
    pipe.legacy(REVISION, json!({})).await;
    loaded(&pipe).await;
    let mut ranked = Vec::new();
    for (who, words) in [("a person says", Query::text as fn(&Query) -> &str), ("a model asks", Query::asked)] {
        let mut ranking = Ranking::default();
        let began = Instant::now();
        for query in &queries {
            let arguments = json!({ "query": words(query), "limit": WITHIN });
            let found = answered(pipe.request("tools/call", wanted("find_tools", &arguments)).await)?;
            ranking.tokens += tokens(&found["structuredContent"]);
            ranking.judge(words(query), &names(&found), &query.right);
        }
        let took = began.elapsed() / u32::try_from(queries.len())?;
        let Ranking { first, among, within, missed, tokens } = &ranking;
        say(&format!(
            "as {who}, {} queries: the right tool first {first}, among {FIRST} {among}, among {WITHIN} {within}; \
             an answer with {WITHIN} tools: {} tokens, {took:.1?}",
            queries.len(),
            tokens / queries.len()
        ));
        missed.iter().for_each(|line| say(line));
        ranked.push(ranking);
    }
    pipe.close().await;

    added_over_a_pipe(&config).await.context("a tool that was added, over a pipe")?;
    added_over_http(&config).await.context("a tool that was added, over HTTP")?;
    say("a tool that was added is found and called in the same session, over a pipe and at /mcp/search");
    for (ranking, least) in ranked.iter().zip(FOUND_AT_LEAST) {
        let among = ranking.among;
        ensure!(among * 100 >= queries.len() * least, "{among} are among the first {FIRST}: fewer than {least} %");
    }
    Ok(())
}

impl Query {
    fn text(&self) -> &str {
        &self.text
    }

    fn asked(&self) -> &str {
        &self.asked
    }
}

/// How often the right tool stood where.
#[derive(Default)]
struct Ranking {
    first: usize,
    among: usize,
    within: usize,
    tokens: usize,
    missed: Vec<String>,
}

impl Ranking {
    fn judge(&mut self, words: &str, names: &[&str], right: &[String]) {
        let place = names.iter().position(|name| right.iter().any(|one| one == name));
        self.first += usize::from(place == Some(0));
        self.among += usize::from(place.is_some_and(|place| place < FIRST));
        self.within += usize::from(place.is_some());
        if place.is_none_or(|place| place >= FIRST) {
            self.missed.push(format!("  {words:?}: {}; not {}", names.join(" "), right.join(" or ")));
        }
    }
}

impl Source {
    /// The tools that the server lists.
    async fn tools(&self, installed: &Path) -> Result<Vec<Value>> {
        let home = installed.join("home");
        std::fs::create_dir_all(&home)?;
        let mut command = match self.from {
            From::Python(program) => Command::new(installed.join("python/bin").join(program)),
            From::Npm(package) => {
                let mut command = Command::new("node");
                command.arg(program(&installed.join("npm/node_modules").join(package))?);
                command
            }
        };
        command.args(self.arguments).env_clear().env("HOME", &home).current_dir(&home);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).envs(self.environment.iter().copied());
        let (process, _) = TokioChildProcess::builder(command).stderr(Stdio::null()).spawn()?;
        let client = timeout(PATIENCE, Client.serve_with_lifecycle(process, ClientLifecycleMode::Initialize)).await??;
        let tools = timeout(PATIENCE, client.list_all_tools()).await??;
        timeout(PATIENCE, client.cancel()).await??;
        tools.iter().map(|tool| Ok(serde_json::to_value(tool)?)).collect()
    }

    /// The table of a plugin that offers these tools.
    fn table(&self, tools: &[Value]) -> String {
        // A JSON string is one of TOML too.
        let tools = Value::String(json!(tools).to_string());
        format!(
            "[plugins.{}]\npath = {:?}\nconfig = {{ mode = \"listed\", tools = {tools} }}\n",
            self.id,
            plugin("badlist")
        )
    }
}

/// The file that a package of npm runs.
fn program(package: &Path) -> Result<PathBuf> {
    let manifest =
        std::fs::read_to_string(package.join("package.json")).with_context(|| package.display().to_string())?;
    let manifest: Value = serde_json::from_str(&manifest)?;
    let file = match &manifest["bin"] {
        Value::Object(bins) => bins.values().next().and_then(Value::as_str),
        bin => bin.as_str(),
    };
    Ok(package.join(file.context("the package has no program")?))
}

/// Lists wait for plugins, but not as long as a busy machine may take.
async fn loaded(pipe: &Pipe) {
    for source in &SOURCES {
        pipe.wait_for_log(&format!("serving plugin=\"{}\"", source.id)).await;
    }
}

/// All of `tools/list`, page by page.
async fn list(folder: &Folder, arguments: &[&str]) -> Result<Vec<Value>> {
    let mut pipe = Pipe::start(folder, arguments);
    pipe.legacy(REVISION, json!({})).await;
    loaded(&pipe).await;
    let (mut tools, mut params) = (Vec::new(), json!({}));
    loop {
        let page = answered(pipe.request("tools/list", params).await)?;
        tools.extend(page["tools"].as_array().context("no tools")?.iter().cloned());
        if page["nextCursor"].is_null() {
            break;
        }
        params = json!({ "cursor": page["nextCursor"] });
    }
    let ended = pipe.close().await;
    for line in ended.log.lines().filter(|line| line.contains(" WARN ") || line.contains(" ERROR ")) {
        say(line);
    }
    Ok(tools)
}

fn answered(outcome: std::result::Result<Value, Value>) -> Result<Value> {
    outcome.map_err(|error| anyhow!("wharf refuses: {error}"))
}

fn wanted(tool: &str, arguments: &Value) -> Value {
    json!({ "name": tool, "arguments": arguments })
}

/// The names in an answer of `find_tools`.
fn names(found: &Value) -> Vec<&str> {
    found["structuredContent"]["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["name"].as_str())
        .collect()
}

/// What nobody offers before the plugin `hello` is there.
const GREETING: &str = "greet a person by name";
const GREET: &str = "hello_greet";

/// The config, with a folder for more plugins.
fn open_folder(config: &str) -> Folder {
    let folder = Folder::new();
    folder.config(&format!("plugin_dir = \"../../plugins\"\n{config}"));
    folder
}

fn is_found(found: &Value) -> bool {
    names(found).contains(&GREET)
}

fn find() -> Value {
    wanted("find_tools", &json!({ "query": GREETING }))
}

fn greet() -> Value {
    wanted("call_tool", &json!({ "name": GREET, "arguments": { "name": "Ada" } }))
}

/// A client that lists its tools once, and listens to nothing.
async fn added_over_a_pipe(config: &str) -> Result<()> {
    let folder = open_folder(config);
    let mut pipe = Pipe::start(&folder, &["run", "--profile", "search"]);
    pipe.legacy(REVISION, json!({})).await;
    loaded(&pipe).await;
    let listed = answered(pipe.request("tools/list", json!({})).await)?;
    ensure!(listed["tools"].as_array().is_some_and(|tools| tools.len() == 3), "not three tools: {listed}");
    ensure!(!is_found(&answered(pipe.request("tools/call", find()).await)?), "it is there already");
    folder.plugin("hello");
    pipe.wait_for_log("serving plugin=\"hello\"").await;
    let found = answered(pipe.request("tools/call", find()).await)?;
    ensure!(is_found(&found), "it is not found: {found}");
    let greeted = answered(pipe.request("tools/call", greet()).await)?;
    ensure!(e2e::text(&greeted) == "Hello, Ada!", "{greeted}");
    pipe.close().await;
    Ok(())
}

/// The same in a session at the URL of this catalog, in addition to one that has all tools.
async fn added_over_http(config: &str) -> Result<()> {
    let folder = open_folder(config);
    let server = Server::loaded(&folder).await;
    let mut session = server.legacy_at("/mcp/search", REVISION, json!({})).await;
    let listed = answered(session.request("tools/list", json!({})).await)?;
    ensure!(listed["tools"].as_array().is_some_and(|tools| tools.len() == 3), "not three tools: {listed}");
    ensure!(!is_found(&answered(session.request("tools/call", find()).await)?), "it is there already");
    folder.plugin("hello");
    server.wait_for_log("serving plugin=\"hello\"").await;
    let found = answered(session.request("tools/call", find()).await)?;
    ensure!(is_found(&found), "it is not found: {found}");
    let greeted = answered(session.request("tools/call", greet()).await)?;
    ensure!(e2e::text(&greeted) == "Hello, Ada!", "{greeted}");
    let listed = answered(server.modern("tools/list", json!({}), json!({})).await)?;
    ensure!(listed["tools"].as_array().is_some_and(|tools| tools.len() > 3), "others have no more: {listed}");
    server.terminate().await;
    Ok(())
}
