//! The demo: wharf's main job, shown with the real binary and an official MCP client.
//!
//! Every step is checked; the first one that does not hold ends the demo with an error.

#![expect(
    clippy::disallowed_methods,
    reason = "it shows wharf following files that change; what it spawns ends with it"
)]

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::*,
    service::{NotificationContext, RequestContext, RunningService},
    transport::{
        StreamableHttpClientTransport, TokioChildProcess, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    sync::mpsc,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// An editor with some folders open.
#[derive(Clone)]
struct Editor {
    version: ProtocolVersion,
    open: Arc<Mutex<Vec<PathBuf>>>,
    tools_changed: mpsc::UnboundedSender<()>,
}

type Client = RunningService<RoleClient, Editor>;

#[allow(deprecated, reason = "roots are deprecated in the newest revision and used in all of them")]
impl ClientHandler for Editor {
    fn get_info(&self) -> ClientConfig {
        let mut roots = RootsCapabilities::default();
        roots.list_changed = Some(true);
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(roots);
        ClientConfig::new(capabilities, Implementation::new("demo", "0.1.0"))
            .with_protocol_version(self.version.clone())
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let open = self.open.lock().map(|open| open.clone()).unwrap_or_default();
        Ok(ListRootsResult::new(open.iter().map(|folder| Root::new(format!("file://{}", folder.display()))).collect()))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        // Nobody waits for it any more once the demo is over.
        self.tools_changed.send(()).ok();
    }
}

fn say(text: &str) {
    writeln!(std::io::stdout(), "{text}").ok();
}

fn step(text: &str) {
    say(&format!("\n— {text}"));
}

#[tokio::main]
async fn main() -> Result<()> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("no workspace")?.to_path_buf();
    let (mut stay, mut binary) = (false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--serve" => stay = true,
            "--wharf" => binary = arguments.next().map(PathBuf::from),
            _ => bail!("there is no {argument}; there are --serve and --wharf FILE"),
        }
    }
    let binary = binary.context("--wharf FILE is missing")?;
    let built = |name: &str| workspace.join("target/plugins").join(format!("{name}.wasm"));
    let folder = tempfile::tempdir()?;
    let home = folder.path().canonicalize()?;
    let (project, other) = (home.join("project"), home.join("other"));
    for made in [&project, &other, &home.join("plugins")] {
        std::fs::create_dir(made)?;
    }
    std::fs::write(project.join("notes.txt"), "Ship the crane by Friday.\n")?;
    std::fs::write(other.join("diary.txt"), "Nobody opened this folder yet.\n")?;
    for (from, to) in [("hello", "greeter"), ("time", "time"), ("files", "files")] {
        std::fs::copy(built(from), home.join(format!("plugins/{to}.wasm")))?;
    }
    let config = home.join("wharf.toml");
    std::fs::write(
        &config,
        format!(
            "plugin_dir = \"plugins\"\n\n[http]\nlisten = \"127.0.0.1:{}\"\n\n[roots]\nwithin = [\".\"]\n\n\
             [plugins.files]\npath = \"plugins/files.wasm\"\nprefix = \"\"\n[plugins.files.grants]\nroots = \"read-write\"\n",
            if stay { 7300 } else { 0 }
        ),
    )?;
    say(&format!("wharf, from {}", binary.display()));
    say(&std::fs::read_to_string(&config)?);

    step("an MCP client starts wharf and speaks to it over stdio (revision 2025-11-25)");
    let mut command = tokio::process::Command::new(&binary);
    command.args(["serve", "--stdio", "-c"]).arg(&config);
    let (process, stderr) = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn()?;
    let (address_found, mut address) = mpsc::channel(1);
    let (failure_found, mut failures) = mpsc::unbounded_channel();
    if let Some(stderr) = stderr {
        tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some((_, rest)) = line.split_once("serving MCP at ") {
                    address_found.try_send(rest.trim().to_owned()).ok();
                }
                say(&format!("    wharf: {line}"));
                if line.contains("does not load") {
                    // Counted only while the demo waits for one.
                    failure_found.send(()).ok();
                }
            }
        });
    }
    let (tools_changed, mut changes) = mpsc::unbounded_channel();
    let editor = Editor {
        version: ProtocolVersion::V_2025_11_25,
        open: Arc::new(Mutex::new(vec![project.clone()])),
        tools_changed,
    };
    let client = editor.clone().serve_with_lifecycle(process, ClientLifecycleMode::Initialize).await?;
    let names = tools(&client).await?;
    say(&format!("tools of three plugins: {}", names.join(", ")));
    ensure!(names.contains(&"greeter_greet".to_owned()) && names.contains(&"read_text_file".to_owned()));
    ensure!(names.contains(&"time_get_current_time".to_owned()));

    step("the client has opened one folder; a plugin reads a file in it");
    let notes = project.join("notes.txt").display().to_string();
    let read = call(&client, "read_text_file", rmcp::object!({ "path": notes })).await?;
    say(&format!("read {notes}: {}", read.text.trim()));
    ensure!(!read.is_error && read.text.contains("crane"));

    step("a file outside it is out of reach");
    let diary = other.join("diary.txt").display().to_string();
    let refused = call(&client, "read_text_file", rmcp::object!({ "path": diary })).await?;
    say(&format!("refused: {}", refused.text.trim()));
    ensure!(refused.is_error && !refused.text.contains("Nobody opened"));

    step("the client opens the other folder too (roots/list_changed), and the same call works");
    if let Ok(mut open) = editor.open.lock() {
        open.push(other.clone());
    }
    #[allow(deprecated, reason = "as above")]
    client.notify_roots_list_changed().await?;
    let read = call(&client, "read_text_file", rmcp::object!({ "path": diary })).await?;
    say(&format!("read {diary}: {}", read.text.trim()));
    ensure!(!read.is_error && read.text.contains("Nobody opened"));

    step("a plugin is replaced while the client is connected");
    replace(&built("echo"), &home.join("plugins/greeter.wasm"))?;
    tokio::time::timeout(PATIENCE, changes.recv()).await.context("no list_changed arrived")?;
    let names = tools(&client).await?;
    say(&format!("list_changed arrived; the tools are now: {}", names.join(", ")));
    let echoed = call(&client, "greeter_echo", rmcp::object!({ "message": "new code" })).await?;
    say(&format!("the new tool answers: {}", echoed.text));
    ensure!(echoed.text == "new code");

    step("a broken plugin is dropped in, and nothing is harmed");
    std::fs::write(home.join("plugins/broken.wasm"), b"this is not WebAssembly")?;
    tokio::time::timeout(PATIENCE, failures.recv()).await.context("wharf did not notice the broken plugin")?;
    let echoed = call(&client, "greeter_echo", rmcp::object!({ "message": "still here" })).await?;
    say(&format!("the others answer: {}", echoed.text));
    ensure!(echoed.text == "still here");

    let url = tokio::time::timeout(PATIENCE, address.recv()).await?.context("wharf did not say where it listens")?;
    step(&format!("the same process over HTTP, at {url}, with a session (revision 2025-06-18)"));
    let old = over_http(&editor, &url, ProtocolVersion::V_2025_06_18, ClientLifecycleMode::Initialize).await?;
    let read = call(&old, "read_text_file", rmcp::object!({ "path": notes })).await?;
    say(&format!("read {notes}: {}", read.text.trim()));
    ensure!(!read.is_error);
    finish(old).await?;

    step("and without one (revision 2026-07-28), where roots are an answer to a question");
    let modern = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let new = over_http(&editor, &url, ProtocolVersion::V_2026_07_28, modern).await?;
    let read = call(&new, "read_text_file", rmcp::object!({ "path": notes })).await?;
    say(&format!("read {notes}: {}", read.text.trim()));
    ensure!(!read.is_error);
    let mut changes = new.listen(SubscriptionFilter::builder().tools_list_changed().build()).await?;
    replace(&built("hello"), &home.join("plugins/greeter.wasm"))?;
    let told =
        tokio::time::timeout(PATIENCE, changes.next()).await.context("no list_changed on the subscription")??;
    ensure!(matches!(told, Some(ServerNotification::ToolListChangedNotification(_))));
    say("its subscription hears of the next replacement as well");
    changes.cancel().await?;
    finish(new).await?;

    if stay {
        say(&format!("\nServing {url} until ctrl-c; plugins: {}", home.join("plugins").display()));
        tokio::signal::ctrl_c().await?;
    }
    finish(client).await?;
    say("\nAll of it held. To use wharf from an MCP client, paste this into its configuration:\n");
    let plugin = built("files");
    say(&format!(
        "{{\n  \"mcpServers\": {{\n    \"wharf\": {{\n      \"command\": \"{}\",\n      \"args\": [\"run\", \"--allow\", \
         \"roots=read-write\", \"{}\"]\n    }}\n  }}\n}}",
        binary.display(),
        plugin.display()
    ));
    Ok(())
}

struct Answer {
    text: String,
    is_error: bool,
}

async fn call(client: &Client, tool: &'static str, arguments: JsonObject) -> Result<Answer> {
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    let result = tokio::time::timeout(PATIENCE, client.call_tool(params)).await.context("no answer in time")??;
    let texts: Vec<&str> =
        result.content.iter().filter_map(|block| block.as_text().map(|text| text.text.as_str())).collect();
    Ok(Answer { text: texts.join("\n"), is_error: result.is_error == Some(true) })
}

async fn tools(client: &Client) -> Result<Vec<String>> {
    let tools = tokio::time::timeout(PATIENCE, client.list_all_tools()).await.context("no answer in time")??;
    Ok(tools.into_iter().map(|tool| tool.name.to_string()).collect())
}

async fn over_http(editor: &Editor, url: &str, version: ProtocolVersion, mode: ClientLifecycleMode) -> Result<Client> {
    let config = StreamableHttpClientTransportConfig::with_uri(url.to_owned());
    let transport = StreamableHttpClientTransport::from_config(config);
    let editor = Editor { version: version.clone(), ..editor.clone() };
    let client = tokio::time::timeout(PATIENCE, editor.serve_with_lifecycle(transport, mode)).await??;
    let agreed = client.peer_info().map(|info| info.protocol_version.clone());
    if agreed.as_ref() != Some(&version) {
        bail!("agreed on {agreed:?} instead of {version:?}");
    }
    Ok(client)
}

async fn finish(client: Client) -> Result<()> {
    tokio::time::timeout(PATIENCE, client.cancel()).await??;
    Ok(())
}

/// As builds and editors do: written to another file, then renamed.
fn replace(from: &Path, to: &Path) -> Result<()> {
    let other = to.with_extension("new");
    std::fs::copy(from, &other)?;
    std::fs::rename(other, to)?;
    Ok(())
}
