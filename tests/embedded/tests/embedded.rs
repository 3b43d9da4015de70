//! wharf embedded in another program: this one runs several wharfs in one process, on a runtime with one thread, and never starts the
//! binary. The clients are the official one.
//!
//! It has no test harness, because `main` must be able to run as the compiler process of plugins.

#![expect(clippy::disallowed_methods, reason = "a program of its own, which ends with what it spawns")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout, reason = "the whole program is a test")]

use std::{
    future::Future,
    net::SocketAddr,
    path::Path,
    pin::Pin,
    process::ExitCode,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use axum::{Router, extract::Request, http::HeaderValue, middleware::Next};
use e2e::{Folder, plugin};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient,
    model::{CallToolRequestParams, CallToolResult, ClientConfig, ProtocolVersion},
    service::{NotificationContext, RunningService},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    time::timeout,
};
use wharf::{Access, Action, Ask, CallRecord, Content, Ended, Error, Observer, Plugin, Principal, Status, Wharf};

const PATIENCE: Duration = Duration::from_secs(30);

type Test = fn() -> Pin<Box<dyn Future<Output = Result<()>>>>;

/// Runs a test by its name.
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        [$((stringify!($name), (|| Box::pin($name())) as Test)),*]
    };
}

fn main() -> ExitCode {
    if let Some(compiled) = wharf::compile_if_asked() {
        return compiled;
    }
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let mut failed = false;
    for (name, test) in tests![
        two_wharfs_live_in_one_process,
        a_router_serves_behind_a_middleware_of_the_program,
        a_replaced_plugin_is_told_of_and_a_removed_one_is_gone,
        calls_need_no_client_and_no_second_thread,
        who_has_to_say_yes_can_say_no,
        folders_are_open_to_the_session_they_were_given_to,
        what_is_wrong_is_said_and_the_last_good_version_serves,
        what_stops_a_process_is_left_alone,
        sessions_end_without_the_wharf_and_the_wharf_ends_sessions,
    ] {
        if !name.contains(&wanted) {
            continue;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let outcome = runtime.block_on(async {
            match timeout(2 * PATIENCE, test()).await {
                Ok(outcome) => outcome,
                Err(_) => bail!("it does not end"),
            }
        });
        println!("test {name} ... {}", if outcome.is_ok() { "ok" } else { "FAILED" });
        if let Err(error) = outcome {
            println!("    {error:#}");
            failed = true;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(plugin(name)).unwrap()
}

/// Receives notifications of changes to the list of tools.
struct Told(mpsc::UnboundedSender<()>);

impl ClientHandler for Told {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::default()
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.send(()).ok();
    }
}

type Client = RunningService<RoleClient, Told>;

/// A client in its own session, and the notifications that it received.
async fn session(
    wharf: &Wharf,
    principal: &str,
    folders: &[&Path],
) -> Result<(Client, mpsc::UnboundedReceiver<()>, oneshot::Receiver<Result<(), Error>>)> {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(far);
    let session = wharf.session(reader, writer).principal(principal).roots(folders.iter().copied());
    let (ended, end) = oneshot::channel();
    tokio::spawn(async move {
        ended.send(session.serve().await).ok();
    });
    let (told, hears) = mpsc::unbounded_channel();
    let client = Told(told).serve_with_lifecycle(near, ClientLifecycleMode::Initialize).await?;
    Ok((client, hears, end))
}

async fn tools(client: &Client) -> Result<Vec<String>> {
    Ok(client.list_all_tools().await?.into_iter().map(|tool| tool.name.into_owned()).collect())
}

async fn call(client: &Client, tool: &str, arguments: Value) -> Result<CallToolResult> {
    let arguments = arguments.as_object().cloned().context("an object")?;
    Ok(client.call_tool(CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)).await?)
}

fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.clone()).collect()
}

#[derive(Clone, Default)]
struct Records(Arc<Mutex<Vec<CallRecord>>>);

impl Observer for Records {
    fn ended(&self, record: &CallRecord) {
        self.0.lock().unwrap().push(record.clone());
    }
}

impl Records {
    fn calls(&self) -> Vec<CallRecord> {
        let records = self.0.lock().unwrap();
        records.iter().filter(|record| record.action != Action::List).cloned().collect()
    }
}

async fn two_wharfs_live_in_one_process() -> Result<()> {
    let (of_one, of_other) = (Records::default(), Records::default());
    let one = Wharf::builder().plugin(Plugin::bytes("echo", bytes("echo"))).observer(of_one.clone()).build().await?;
    let other = Wharf::builder().plugin(Plugin::file(plugin("hello"))).observer(of_other.clone()).build().await?;
    let (ann, ..) = session(&one, "ann", &[]).await?;
    let (ben, ..) = session(&other, "ben", &[]).await?;
    ensure!(tools(&ann).await? == ["echo_echo"] && tools(&ben).await? == ["hello_greet"]);
    ensure!(text(&call(&ann, "echo_echo", json!({ "message": "x" })).await?) == "x");
    ensure!(text(&call(&ben, "hello_greet", json!({ "name": "Ada" })).await?) == "Hello, Ada!");
    ensure!(call(&ann, "hello_greet", json!({ "name": "Ada" })).await.is_err());
    let refused = of_one.calls().into_iter().filter(|record| record.ended == Ended::Refused).count();
    ensure!(refused == 1, "the tool that is not there");
    for (records, name, size) in [(&of_one, "ann", 1), (&of_other, "ben", 11)] {
        let mut calls = records.calls();
        calls.retain(|record| record.ended != Ended::Refused);
        let [record] = &*calls else { bail!("{calls:?}") };
        ensure!(record.principal == Some(Principal::Named(name.into())), "{record:?}");
        ensure!(record.ended == Ended::Done && record.bytes_out == size && record.bytes_in > 10, "{record:?}");
    }
    // One disconnects, the other does not notice.
    one.stop().await;
    ensure!(text(&call(&ben, "hello_greet", json!({ "name": "Ada" })).await?) == "Hello, Ada!");
    Ok(())
}

async fn a_router_serves_behind_a_middleware_of_the_program() -> Result<()> {
    let wharf = Wharf::builder().plugin(Plugin::bytes("echo", bytes("echo"))).build().await?;
    let seen = Arc::new(Mutex::new(0));
    let count = Arc::clone(&seen);
    let front = move |request: Request, next: Next| {
        *count.lock().unwrap() += 1;
        async move {
            let mut response = next.run(request).await;
            response.headers_mut().insert("x-front", HeaderValue::from_static("yes"));
            response
        }
    };
    let app = Router::new().merge(wharf.router("/tools/mcp")).layer(axum::middleware::from_fn(front));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    for lifecycle in [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
    ] {
        let (told, _hears) = mpsc::unbounded_channel();
        let transport = StreamableHttpClientTransport::from_uri(format!("http://{address}/tools/mcp"));
        let client = Told(told).serve_with_lifecycle(transport, lifecycle).await?;
        // Runs a call in parallel with other work if there is another thread for it.
        let message = "x".repeat(300_000);
        ensure!(text(&call(&client, "echo_echo", json!({ "message": message })).await?) == message);
        client.cancel().await?;
    }
    ensure!(*seen.lock().unwrap() >= 4, "the middleware was passed by");
    Ok(())
}

async fn a_replaced_plugin_is_told_of_and_a_removed_one_is_gone() -> Result<()> {
    let wharf = Wharf::builder().plugin(Plugin::bytes("version", bytes("version-a"))).build().await?;
    let (client, mut hears, _) = session(&wharf, "ann", &[]).await?;
    ensure!(text(&call(&client, "version_version", json!({})).await?) == "a");
    wharf.replace(Plugin::bytes("version", bytes("version-b"))).await?;
    ensure!(text(&call(&client, "version_version", json!({})).await?) == "b", "replace returns when it serves");
    wharf.replace(Plugin::bytes("echo", bytes("echo"))).await?;
    timeout(PATIENCE, hears.recv()).await.context("nobody is told")?;
    ensure!(tools(&client).await?.contains(&"echo_echo".to_owned()));
    ensure!(wharf.remove("version").await && !wharf.remove("version").await);
    ensure!(tools(&client).await? == ["echo_echo"]);
    ensure!(wharf.plugins().len() == 1);
    // The plugin that replaced one of the config is removed, so the config's plugin is served again.
    let config = format!("[plugins.version]\npath = {:?}\n", plugin("version-a"));
    let wharf = Wharf::builder().config(config).plugin(Plugin::bytes("version", bytes("version-b"))).build().await?;
    let (client, _, _) = session(&wharf, "ann", &[]).await?;
    ensure!(text(&call(&client, "version_version", json!({})).await?) == "b");
    ensure!(wharf.remove("version").await);
    ensure!(text(&call(&client, "version_version", json!({})).await?) == "a");
    Ok(())
}

async fn calls_need_no_client_and_no_second_thread() -> Result<()> {
    let wharf = Wharf::builder().plugin(Plugin::bytes("echo", bytes("echo"))).build().await?;
    let message = "x".repeat(1 << 20);
    let result = wharf.call("echo_echo", json!({ "message": message })).await?;
    ensure!(matches!(&*result.content, [Content::Text(text)] if *text == message));
    let wrong = wharf.call("echo_echo", json!({ "message": 7 })).await?;
    ensure!(wrong.is_error, "{wrong:?}");
    let unknown = wharf.call("echo_ohce", json!({})).await;
    ensure!(matches!(&unknown, Err(Error::Call(problem)) if problem.contains("unknown tool")), "{unknown:?}");
    Ok(())
}

async fn who_has_to_say_yes_can_say_no() -> Result<()> {
    let records = Records::default();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let ask = {
        let asked = Arc::clone(&asked);
        move |ask: Ask| {
            let yes = ask.arguments["message"] == "yes";
            asked.lock().unwrap().push((ask.principal.clone(), ask.plugin.clone(), ask.name.clone()));
            async move { yes }
        }
    };
    let builder = Wharf::builder().plugin(Plugin::bytes("echo", bytes("echo")));
    let wharf = builder.approver(ask).observer(records.clone()).build().await?;
    let (client, ..) = session(&wharf, "ann", &[]).await?;
    ensure!(text(&call(&client, "echo_echo", json!({ "message": "yes" })).await?) == "yes");
    let refused = call(&client, "echo_echo", json!({ "message": "no" })).await?;
    ensure!(refused.is_error == Some(true) && text(&refused).contains("not approved"), "{refused:?}");
    let ann = (Principal::Named("ann".into()), "echo".to_owned(), "echo_echo".to_owned());
    ensure!(*asked.lock().unwrap() == [ann.clone(), ann]);
    let ended: Vec<Ended> = records.calls().iter().map(|record| record.ended).collect();
    ensure!(ended == [Ended::Done, Ended::Refused], "{ended:?}");
    Ok(())
}

async fn folders_are_open_to_the_session_they_were_given_to() -> Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("note"), "what is in it")?;
    let note = folder.path().join("note").display().to_string();
    let plugin = Plugin::file(plugin("files")).roots(Access::Read);
    let wharf = Wharf::builder().plugin(plugin).build().await?;
    let (ann, ..) = session(&wharf, "ann", &[folder.path()]).await?;
    let (ben, ..) = session(&wharf, "ben", &[]).await?;
    let read = |client| call(client, "files_read_text_file", json!({ "path": note }));
    ensure!(text(&read(&ann).await?) == "what is in it");
    ensure!(read(&ben).await?.is_error == Some(true), "a folder is open to somebody else");
    let written = call(&ann, "files_write_file", json!({ "path": note, "content": "x" })).await?;
    ensure!(written.is_error == Some(true), "it was granted only to be read");
    Ok(())
}

async fn what_is_wrong_is_said_and_the_last_good_version_serves() -> Result<()> {
    let broken = Wharf::builder().plugin(Plugin::bytes("echo", &b"nonsense"[..])).build().await;
    let Err(Error::Plugin { id, stage: "load", .. }) = broken else { bail!("it was built") };
    ensure!(id == "echo");
    let unknown = Wharf::builder().config("nonsense = 1").build().await.err().context("it was built")?;
    ensure!(unknown.to_string().contains("unknown key `nonsense`"), "{unknown}");
    let wharf = Wharf::builder().plugin(Plugin::bytes("echo", bytes("echo"))).build().await?;
    ensure!(matches!(wharf.replace(Plugin::bytes("echo", &b"nonsense"[..])).await, Err(Error::Plugin { .. })));
    let result = wharf.call("echo_echo", json!({ "message": "x" })).await?;
    ensure!(!result.is_error, "the last good version is gone");
    ensure!(matches!(wharf.replace(Plugin::bytes("no id", bytes("echo"))).await, Err(Error::Config(_))));
    // An error is not reported any more when its cause is gone.
    let folder = Folder::new();
    folder.plugin("echo");
    let config = format!("plugin_dir = {:?}", folder.join("plugins"));
    let wharf = Wharf::builder().config(config).plugin(Plugin::bytes("echo", bytes("echo"))).build().await?;
    let failed = |wharf: &Wharf| wharf.plugins().iter().filter(|one| one.status != Status::Serving).count();
    ensure!(failed(&wharf) == 1, "two have one id: {:?}", wharf.plugins());
    ensure!(wharf.remove("echo").await);
    ensure!(failed(&wharf) == 0 && wharf.plugins().len() == 1, "{:?}", wharf.plugins());
    Ok(())
}

/// Signal handlers for termination, and those that other code uses, are unchanged. wasmtime handles the signals of faults, which traps are.
async fn what_stops_a_process_is_left_alone() -> Result<()> {
    let caught = || -> Result<u64> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).context("no SigCgt")?;
        let all = u64::from_str_radix(line.trim(), 16)?;
        let faults = [4, 5, 7, 8, 11].into_iter().fold(0, |all, signal| all | 1 << (signal - 1));
        // Tokio's own handler, for child processes.
        Ok(all & !faults & !(1 << 16))
    };
    let before = caught()?;
    let wharf = Wharf::builder().plugin(Plugin::bytes("echo", bytes("echo"))).build().await?;
    wharf.call("echo_echo", json!({ "message": "x" })).await?;
    ensure!(caught()? == before, "{:x} became {:x}", before, caught()?);
    Ok(())
}

async fn sessions_end_without_the_wharf_and_the_wharf_ends_sessions() -> Result<()> {
    let wharf = Wharf::builder().plugin(Plugin::bytes("echo", bytes("echo"))).build().await?;
    let (client, _, end) = session(&wharf, "ann", &[]).await?;
    client.cancel().await?;
    timeout(PATIENCE, end).await.context("the session does not end")???;
    ensure!(!wharf.stopping().is_cancelled());
    let (_client, _, end) = session(&wharf, "ann", &[]).await?;
    drop(wharf);
    timeout(PATIENCE, end).await.context("the session outlives its wharf")???;
    Ok(())
}
