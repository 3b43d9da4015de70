//! Plays an author in each language: creates a project, starts `wharf dev`, edits, and checks that a connected client is notified; runs the
//! tests; then tests a plugin that uses every feature. Prints how long each step took.
//!
//! `--only LANG` runs one language, `--abilities` runs only the last part, and `--brief` runs one language and saves once. The tools of the
//! languages must be on PATH.

#![expect(
    clippy::disallowed_methods,
    reason = "it works like an author, with files and programs; what it starts ends with it"
)]

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail, ensure};
use axum::{Router, http::HeaderMap, routing::get};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient,
    model::*,
    service::{NotificationContext, RunningService},
    transport::TokioChildProcess,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    sync::{mpsc, watch},
    time::timeout,
};

/// The first build in a language may have to compile its standard library.
const PATIENCE: Duration = Duration::from_secs(600);

/// Each language by the name that `wharf new` knows.
const LANGUAGES: [&str; 6] = ["rust", "ts", "js", "python", "go", "c"];

/// The language of a brief run. Every other test uses the SDK for Rust, and `cargo xtask check existing` the one for Python.
const BRIEF: [&str; 1] = ["ts"];

/// The notifications that a client receives.
#[derive(Clone)]
struct Client {
    tools_changed: mpsc::UnboundedSender<()>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("author", "0.1.0"))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        // At the end, no receiver is left.
        self.tools_changed.send(()).ok();
    }
}

/// A wharf that a client has started.
struct Running {
    client: RunningService<RoleClient, Client>,
    changes: mpsc::UnboundedReceiver<()>,
    log: watch::Receiver<Vec<String>>,
}

impl Running {
    async fn start(place: &Place, folder: &Path, arguments: &[&str]) -> Result<Self> {
        Self::start_as(place.wharf(), folder, arguments).await
    }

    async fn start_as(mut command: Command, folder: &Path, arguments: &[&str]) -> Result<Self> {
        command.args(arguments).current_dir(folder);
        let (process, stderr) = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(stderr.context("wharf has no stderr")?).lines();
        let (sender, log) = watch::channel(Vec::new());
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                sender.send_modify(|log| log.push(line));
            }
        });
        let (tools_changed, changes) = mpsc::unbounded_channel();
        let client = Client { tools_changed }.serve_with_lifecycle(process, ClientLifecycleMode::Initialize);
        Ok(Self { client: timeout(PATIENCE, client).await??, changes, log })
    }

    /// Waits until a line of the log contains this text.
    async fn says(&mut self, text: &str) -> Result<()> {
        let said = self.log.wait_for(|log| log.iter().any(|line| line.contains(text)));
        let said = timeout(PATIENCE, said).await.map(|said| said.is_ok());
        ensure!(said == Ok(true), "wharf does not say {text:?}, but:\n{}", self.log.borrow().join("\n"));
        Ok(())
    }

    /// Waits until a tool of this name is listed.
    async fn has(&mut self, tool: &str) -> Result<()> {
        let mut log = self.log.clone();
        let failed =
            log.wait_for(|log| log.iter().any(|line| line.contains("could not be") || line.contains("does not load")));
        let there = async {
            tokio::pin!(failed);
            while !self.client.list_all_tools().await?.iter().any(|one| one.name == tool) {
                tokio::select! {
                    changed = self.changes.recv() => changed.context("the client is gone")?,
                    _ = &mut failed => bail!("it is not built"),
                }
            }
            anyhow::Ok(())
        };
        let there = timeout(PATIENCE, there).await.map_err(anyhow::Error::from).flatten();
        there.with_context(|| format!("no tool {tool}; wharf says:\n{}", self.log.borrow().join("\n")))
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Answer> {
        let Value::Object(arguments) = arguments else { bail!("arguments are an object") };
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = timeout(PATIENCE, self.client.call_tool(params)).await.context("no answer in time")??;
        let texts: Vec<&str> =
            result.content.iter().filter_map(|block| block.as_text().map(|text| text.text.as_str())).collect();
        Ok(Answer { text: texts.join("\n"), is_error: result.is_error == Some(true) })
    }

    async fn end(self) -> Result<()> {
        timeout(PATIENCE, self.client.cancel()).await??;
        Ok(())
    }
}

#[derive(Debug, PartialEq)]
struct Answer {
    text: String,
    is_error: bool,
}

struct Place {
    workspace: PathBuf,
    /// The folder in which plugins are created.
    work: PathBuf,
}

impl Place {
    fn wharf(&self) -> Command {
        let mut command = Command::new(
            std::env::var_os("WHARF_BIN").map_or_else(|| self.workspace.join("target/release/wharf"), PathBuf::from),
        );
        // The operator's own config must have no influence.
        command.env("XDG_CONFIG_HOME", self.work.join("config")).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs a command of wharf until it exits, and returns its output.
    async fn run(&self, folder: &Path, arguments: &[&str]) -> Result<String> {
        let mut command = self.wharf();
        let output = command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped()).output();
        let output = timeout(PATIENCE, output).await.with_context(|| format!("wharf {arguments:?} does not end"))??;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "wharf {arguments:?}: {}\n{out}{err}", output.status);
        Ok(out.into_owned())
    }
}

fn say(text: &str) {
    writeln!(std::io::stdout(), "{text}").ok();
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (mut only, mut abilities_alone, mut is_brief) = (None, false, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--abilities" => abilities_alone = true,
            "--brief" => is_brief = true,
            "--only" => only = Some(arguments.next().context("--only LANG")?),
            other => bail!("{other}: what is this? There are --only LANG, --abilities and --brief"),
        }
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no workspace")?.to_path_buf();
    let work = workspace.join("target/languages");
    std::fs::create_dir_all(&work)?;
    let place = Place { work, workspace };
    let all = if is_brief { BRIEF.as_slice() } else { &LANGUAGES };
    let chosen: Vec<&str> = all.iter().copied().filter(|one| only.as_ref().is_none_or(|only| only == one)).collect();
    ensure!(!chosen.is_empty(), "there are: {}", all.join(", "));
    if !abilities_alone {
        try_out_all(&place, &chosen, if is_brief { BRIEF_SAVES } else { SAVES }).await?;
    }
    let server = Server::start().await?;
    for language in chosen {
        uses_everything(&place, &server, language)
            .await
            .with_context(|| format!("{language}: the plugin with all abilities"))?;
    }
    Ok(())
}

/// Creates a project in each language.
async fn try_out_all(place: &Place, chosen: &[&str], saves: usize) -> Result<()> {
    say(&format!(
        "{:<8} {:>6} {:>8} {:>13} {:>30} {:>5} {:>6} {:>9}",
        "", "new s", "set up s", "tool there s", "save to heard s", "load", "test s", "KiB"
    ));
    for language in chosen {
        tries_out(place, language, saves).await.with_context(|| format!("{language}: from an empty folder"))?;
    }
    Ok(())
}

/// How often a source is saved, and with `--brief`.
const SAVES: usize = 5;
const BRIEF_SAVES: usize = 1;

/// Measures the time from an empty folder to a tool in a connected client, and to another tool after each of several saves.
async fn tries_out(place: &Place, language: &str, saves: usize) -> Result<()> {
    let folder = place.work.join(format!("new-{language}"));
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir(&folder)?;
    let began = Instant::now();
    place.run(&folder, &["new", "--lang", language, "my-greeter"]).await?;
    let new = began.elapsed();
    let folder = folder.join("my-greeter");
    let began = Instant::now();
    let listen = ["--listen", "127.0.0.1:0"];
    let mut running =
        Running::start(place, &folder, &[&["dev", "--setup", "--stdio"], listen.as_slice()].concat()).await?;
    running.says("building:").await?;
    let set_up = began.elapsed();
    let began = Instant::now();
    running.has("my-greeter_greet").await?;
    let there = began.elapsed();
    let greeted = running.call("my-greeter_greet", json!({ "name": "Ada" })).await?;
    ensure!(greeted.text == "Hello, Ada!" && !greeted.is_error, "{greeted:?}");

    let source = source(&folder)?;
    let written = std::fs::read_to_string(&source)?;
    let mut heard = Vec::new();
    for save in 0..saves {
        let (tool, text) = (format!("welcome{save}"), format!("Welcome{save}, "));
        let began = Instant::now();
        std::fs::write(&source, written.replace("greet", &tool).replace("Hello, ", &text))?;
        running.has(&format!("my-greeter_{tool}")).await?;
        let welcomed = running.call(&format!("my-greeter_{tool}"), json!({ "name": "Ada" })).await?;
        heard.push(format!("{:.1}", began.elapsed().as_secs_f64()));
        ensure!(welcomed.text == format!("{text}Ada!") && !welcomed.is_error, "{welcomed:?}");
    }
    running.end().await?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let (heard, load) = (heard.join(" "), load.split(' ').next().unwrap_or_default().to_owned());

    std::fs::write(&source, written)?;
    let began = Instant::now();
    let tested = place.run(&folder, &["test"]).await?;
    let tested_in = began.elapsed();
    ensure!(tested.contains(" 0 failed"), "{tested}");
    let size = component(&folder)?.metadata()?.len().div_ceil(1024);
    let [new, set_up, there, tested_in] = [new, set_up, there, tested_in].map(|took| took.as_secs_f64());
    say(&format!(
        "{language:<8} {new:>6.1} {set_up:>8.1} {there:>13.1} {heard:>30} {load:>5} {tested_in:>6.1} {size:>9}"
    ));
    Ok(())
}

/// The source file that contains the tool.
fn source(folder: &Path) -> Result<PathBuf> {
    for folder in [folder.join("src"), folder.to_path_buf()] {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry?.path();
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if text.contains("greet") && text.contains("Hello, ") && path.extension().is_some_and(|one| one != "md") {
                return Ok(path);
            }
        }
    }
    bail!("{}: no source with the tool", folder.display())
}

/// The artifact that `plugin.toml` names.
fn component(folder: &Path) -> Result<PathBuf> {
    let text = std::fs::read_to_string(folder.join("plugin.toml"))?;
    let artifact = text.lines().find_map(|line| line.strip_prefix("artifact = \"")?.strip_suffix('"'));
    Ok(folder.join(artifact.context("plugin.toml names no artifact")?))
}

/// A server that reports what it received.
struct Server {
    base: String,
}

impl Server {
    async fn start() -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://localhost:{}", listener.local_addr()?.port());
        let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let open = get(move |headers: HeaderMap| {
            let nth = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let shown = headers.get("authorization").is_some_and(|value| value == SECRET);
            async move { format!("request {nth}, with the secret: {shown}") }
        });
        tokio::spawn(async move { axum::serve(listener, Router::new().route("/open", open)).await });
        Ok(Self { base })
    }
}

/// A secret that only wharf and the server know.
const SECRET: &str = "token-that-no-guest-sees";

/// Tests the plugin of the official suite, and the abilities that the suite does not test.
async fn uses_everything(place: &Place, server: &Server, language: &str) -> Result<()> {
    let plugin = match language {
        "rust" => place.workspace.join("target/plugins/abilities.wasm"),
        // This language uses TypeScript with the same SDK.
        "js" => return Ok(()),
        _ => {
            let folder = place.workspace.join("tests/guests/languages").join(language);
            place.run(&folder, &["build", "--setup"]).await?;
            component(&folder)?
        }
    };
    let data = place.work.join("data");
    std::fs::create_dir_all(&data)?;
    std::fs::write(data.join("a.txt"), "inside")?;
    let config = place.work.join(format!("{language}.toml"));
    let base = &server.base;
    std::fs::write(
        &config,
        format!(
            "[secrets.api]\nenv = \"ABILITY_SECRET\"\n\
             [plugins.conformance]\npath = {plugin:?}\nprefix = \"\"\nconfig = {{ unit = \"C\" }}\n\
             [plugins.conformance.grants]\nask = [\"elicitation\", \"sampling\", \"roots\"]\n\
             dirs = [{{ host = {data:?}, guest = \"/data\", access = \"read\" }}]\n\
             env = [{{ name = \"API_KEY\", secret = \"api\" }}]\n\
             http = [{{ url = \"{base}/open\", private = true, secrets = [\"api\"] }}]\n"
        ),
    )?;
    let config = config.to_str().context("an odd path")?;
    let mut command = place.wharf();
    command.env("ABILITY_SECRET", SECRET);
    let running = Running::start_as(command, &place.work, &["run", "-c", config]).await?;
    let abilities = [
        ("config", config_is_read(&running).await),
        ("directories", directories_are_told(&running).await),
        ("files", files_are_read(&running).await),
        ("fetch", requests_are_made(&running, base).await),
        ("secrets", secrets_are_used(&running, base).await),
        ("chance", chance_differs(&running).await),
        ("failures", failures_are_told(&running).await),
    ];
    let mut line = format!("{language:<8}");
    let mut problems = Vec::new();
    for (ability, done) in abilities {
        line += &format!(" {ability} {}", if done.is_ok() { "ok" } else { "FAILED" });
        problems.extend(done.err().map(|error| format!("{ability}: {error:#}")));
    }
    say(&line);
    running.end().await?;
    if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("\n")) }
}

async fn config_is_read(running: &Running) -> Result<()> {
    let answer = running.call("ability_config", json!({})).await?;
    ensure!(serde_json::from_str::<Value>(&answer.text)? == json!({ "unit": "C" }), "{answer:?}");
    Ok(())
}

async fn directories_are_told(running: &Running) -> Result<()> {
    let answer = running.call("ability_directories", json!({})).await?;
    ensure!(
        serde_json::from_str::<Value>(&answer.text)? == json!([{ "path": "/data", "writable": false }]),
        "{answer:?}"
    );
    Ok(())
}

async fn files_are_read(running: &Running) -> Result<()> {
    let inside = running.call("ability_read", json!({ "path": "/data/a.txt" })).await?;
    ensure!(inside.text == "inside" && !inside.is_error, "{inside:?}");
    let outside = running.call("ability_read", json!({ "path": "/etc/passwd" })).await?;
    ensure!(outside.is_error && !outside.text.contains("root:"), "{outside:?}");
    Ok(())
}

async fn requests_are_made(running: &Running, base: &str) -> Result<()> {
    let open = running.call("ability_fetch", json!({ "url": format!("{base}/open") })).await?;
    ensure!(open.text.starts_with("200 request") && open.text.ends_with("with the secret: false"), "{open:?}");
    let closed = running.call("ability_fetch", json!({ "url": format!("{base}/closed") })).await?;
    ensure!(closed.is_error && closed.text.contains("The operator of this server can allow this"), "{closed:?}");
    Ok(())
}

async fn secrets_are_used(running: &Running, base: &str) -> Result<()> {
    let open = format!("{base}/open");
    let shown = running.call("ability_fetch", json!({ "url": open, "variable": "API_KEY" })).await?;
    ensure!(shown.text.starts_with("200 request") && shown.text.ends_with("with the secret: true"), "{shown:?}");
    Ok(())
}

async fn chance_differs(running: &Running) -> Result<()> {
    let mut both = Vec::new();
    for _ in 0..2 {
        let answer = running.call("ability_chance", json!({})).await?;
        let Value::Object(members) = serde_json::from_str(&answer.text)? else { bail!("{answer:?}") };
        ensure!(["random", "secure", "clock_ms"].iter().all(|key| members.contains_key(*key)), "{answer:?}");
        both.push(members);
    }
    let [first, second] = both.as_slice() else { bail!("two calls give two answers") };
    let differ = |key: &String| key == "clock_ms" || first.get(key) != second.get(key);
    let same: Vec<&String> = first.keys().filter(|key| !differ(key)).collect();
    ensure!(same.is_empty(), "the same in two calls: {same:?} of {first:?}");
    // A clock that was frozen at build time is days off, or at least as much as the build took.
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let told = second.get("clock_ms").and_then(Value::as_f64).context("the clock is not a number")?;
    ensure!((now as f64 - told).abs() < 5_000.0, "the clock says {told}, and it is {now}");
    Ok(())
}

async fn failures_are_told(running: &Running) -> Result<()> {
    for how in ["throws", "returns"] {
        let failed = running.call("ability_fails", json!({ "how": how })).await?;
        ensure!(failed.is_error && !failed.text.trim().is_empty() && failed.text.len() < 1000, "{how}: {failed:?}");
    }
    config_is_read(running).await
}
