//! wharf embedded in another program: this one runs several wharfs in one process, on a runtime with one thread, and never starts the
//! binary. The clients are the official one.
//!
//! It has no test harness, because `main` must be able to run as the compiler process of plugins.

#![expect(clippy::disallowed_methods, reason = "a program of its own, which ends with what it spawns")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout, reason = "the whole program is a test")]

use std::{
    ffi::OsStr,
    future::Future,
    net::SocketAddr,
    os::unix::ffi::OsStrExt,
    path::Path,
    pin::{Pin, pin},
    process::ExitCode,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use axum::{Router, extract::Request, http::HeaderValue, middleware::Next};
use e2e::{Folder, plugin};
use futures_util::FutureExt;
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
use wharf::{
    Access, ApprovalRequest, Call, Decision, Error, ErrorKind, Plugin, Principal, Wharf,
    model::{Body, Content, Role, ToolResult},
    observe::{Action, ApprovalOutcome, CallRecord, Ended, Observer},
    status::{Stage, Status},
};

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
        what_is_wrong_with_a_call_has_a_kind,
        a_program_lists_reads_and_prompts_as_a_client_does,
        who_has_to_say_yes_can_say_no,
        folders_are_open_to_the_session_they_were_given_to,
        a_folder_whose_name_is_not_text_is_opened_itself,
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
    let session = wharf.session(reader, writer).as_principal(principal).roots(folders.iter().copied());
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
    let app = Router::new().fallback_service(wharf.http_service("/tools/mcp")).layer(axum::middleware::from_fn(front));
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
    let old = wharf.plugins()[0].serving.clone().context("it is served")?.sha256;
    let before = wharf.put(Plugin::bytes("version", bytes("version-b"))).await?;
    ensure!(before.is_some_and(|before| before.sha256 == old), "what was served before is returned");
    ensure!(text(&call(&client, "version_version", json!({})).await?) == "b", "put returns when it serves");
    ensure!(wharf.put(Plugin::bytes("echo", bytes("echo"))).await?.is_none(), "nothing was served under this id");
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
    let result = wharf.call(echo(&message)).await?;
    ensure!(matches!(&*result.content, [Content::Text(text)] if *text == message));
    let [tool] = &*wharf.list_tools().await else { bail!("one tool") };
    ensure!(tool.name == "echo_echo" && tool.input_schema["properties"]["message"].is_object(), "{tool:?}");
    Ok(())
}

fn echo(message: &str) -> Call {
    Call::tool("echo_echo").arguments(json!({ "message": message }))
}

fn kind<T>(ended: Result<T, Error>) -> Result<ErrorKind> {
    Ok(ended.err().context("it did not fail")?.kind())
}

async fn what_is_wrong_with_a_call_has_a_kind() -> Result<()> {
    let records = Records::default();
    let config = format!(
        "[plugins.fixture]\npath = {:?}\nprefix = \"\"\ngrants.ask = [\"elicitation\"]\n\
         [plugins.echo]\npath = {:?}\nconfirm = \"all\"\n",
        plugin("conformance"),
        plugin("echo")
    );
    let wharf = Wharf::builder().config(config).observer(records.clone()).build().await?;
    let wrong =
        wharf.call(Call::tool("echo_echo").arguments(json!({ "message": 7 }))).await.err().context("it was called")?;
    ensure!((wrong.kind(), wrong.pointer()) == (ErrorKind::InvalidArguments, Some("/message")), "{wrong:?}");
    let unwritable = Call::tool("echo_echo").arguments(std::collections::HashMap::from([((1, 2), 3)]));
    ensure!(kind(wharf.call(unwritable).await)? == ErrorKind::InvalidArguments);
    ensure!(kind(wharf.call("echo_ohce").await)? == ErrorKind::NotFound);
    ensure!(kind(wharf.read("test://no-such").await)? == ErrorKind::NotFound);
    ensure!(kind(wharf.prompt("no_such").await)? == ErrorKind::NotFound);
    ensure!(kind(wharf.complete(Call::prompt_argument("no_such", "x", "")).await)? == ErrorKind::NotFound);
    ensure!(kind(wharf.prompt("test_prompt_with_arguments").await)? == ErrorKind::InvalidArguments);
    ensure!(kind(wharf.call(echo("x")).await)? == ErrorKind::NeedsApproval);
    ensure!(wharf.call(echo("x").approved(true)).await?.text() == "x");
    ensure!(kind(wharf.call("test_missing_capability").await)? == ErrorKind::NeedsClient);
    ensure!(kind(wharf.call("test_input_required_result_elicitation").await)? == ErrorKind::NeedsClient);
    let short = Call::tool("test_reconnection").timeout(Duration::from_millis(1));
    ensure!(kind(wharf.call(short).await)? == ErrorKind::TimedOut);
    ensure!(wharf.call("test_error_handling").await?.is_error, "a tool that ran and failed has a result");
    let closed = echo("x").roots(["/no/such/folder"]);
    ensure!(kind(wharf.call(closed).await)? == ErrorKind::Config);
    // Each call that reached a plugin, or was refused before it did, has one record.
    let ended: Vec<Ended> = records.calls().iter().map(|record| record.ended).collect();
    let count = |wanted: Ended| ended.iter().filter(|one| **one == wanted).count();
    ensure!(count(Ended::Refused) == 8, "{ended:?}");
    ensure!((count(Ended::Done), count(Ended::Asked), count(Ended::Cancelled)) == (1, 1, 1), "{ended:?}");
    ensure!(records.calls().iter().any(|record| record.approval == Some(ApprovalOutcome::Client)));
    wharf.stop().await;
    ensure!(kind(wharf.call(echo("x").approved(true)).await)? == ErrorKind::Stopped);
    Ok(())
}

async fn a_program_lists_reads_and_prompts_as_a_client_does() -> Result<()> {
    let records = Records::default();
    let fixture = Plugin::file(plugin("conformance")).prefix("");
    let wharf = Wharf::builder().plugin(fixture).observer(records.clone()).build().await?;
    let (ann, ..) = session(&wharf, "ann", &[]).await?;
    let names: Vec<String> = wharf.list_tools().await.into_iter().map(|tool| tool.name).collect();
    ensure!(names.len() > 10 && names == tools(&ann).await?, "{names:?}");
    let resources = wharf.list_resources().await;
    ensure!(resources.len() == ann.list_all_resources().await?.len() && !resources.is_empty());
    ensure!(wharf.list_templates().await.len() == ann.list_all_resource_templates().await?.len());
    let read = wharf.read("test://static-text").await?;
    let [contents] = &*read.contents else { bail!("{read:?}") };
    ensure!(contents.uri == "test://static-text" && matches!(&contents.body, Body::Text(text) if !text.is_empty()));
    let prompts = wharf.list_prompts().await;
    let prompt = prompts.iter().find(|prompt| prompt.name == "test_prompt_with_arguments").context("it is listed")?;
    ensure!(prompt.arguments.iter().map(|one| one.name.as_str()).eq(["arg1", "arg2"]), "{prompt:?}");
    let call = Call::prompt("test_prompt_with_arguments").argument("arg1", "one").argument("arg2", "two");
    let prompt = wharf.prompt(call.as_principal("ben")).await?;
    let [message] = &*prompt.messages else { bail!("{prompt:?}") };
    ensure!(message.role == Role::User);
    ensure!(message.content.as_text().is_some_and(|text| text.contains("'one'") && text.contains("'two'")));
    let begins = Call::prompt_argument("test_prompt_with_arguments", "arg1", "te").chosen("arg2", "two");
    ensure!(wharf.complete(begins).await?.values == ["test1", "test2"]);
    let result: ToolResult = wharf.call(Call::tool("test_image_content").as_principal("ben")).await?;
    ensure!(matches!(&*result.content, [Content::Image { data, .. }] if !data.is_empty()), "{result:?}");
    let methods: Vec<&str> = records.calls().iter().filter_map(|record| method(&record.action)).collect();
    ensure!(methods == ["resources/read", "prompts/get", "completion/complete", "tools/call"], "{methods:?}");
    let principals: Vec<Option<Principal>> = records.calls().into_iter().map(|record| record.principal).collect();
    let (process, ben) = (Some(Principal::Process), Some(Principal::Named("ben".into())));
    ensure!(principals == [process.clone(), ben.clone(), process, ben], "{principals:?}");
    Ok(())
}

fn method(action: &Action) -> Option<&'static str> {
    match action {
        Action::Request { method, .. } => Some(method.as_str()),
        _ => None,
    }
}

async fn who_has_to_say_yes_can_say_no() -> Result<()> {
    let records = Records::default();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let ask = {
        let asked = Arc::clone(&asked);
        move |request: ApprovalRequest| {
            let decision = match request.arguments["message"].as_str() {
                Some("yes") => Decision::Allow,
                Some(other) => Decision::Deny(format!("Nobody says {other}\u{1b}.")),
                None => Decision::Deny(String::new()),
            };
            asked.lock().unwrap().push((request.principal, request.plugin, request.name));
            async move { decision }
        }
    };
    let builder = Wharf::builder().plugin(Plugin::bytes("echo", bytes("echo")));
    let wharf = builder.approver(ask).observer(records.clone()).build().await?;
    let (client, ..) = session(&wharf, "ann", &[]).await?;
    ensure!(text(&call(&client, "echo_echo", json!({ "message": "yes" })).await?) == "yes");
    let refused = call(&client, "echo_echo", json!({ "message": "no" })).await?;
    let why = "The call was not approved: `echo_echo` was not run. Nobody says no.";
    ensure!(refused.is_error == Some(true) && text(&refused) == why, "{refused:?}");
    let own = wharf.call(echo("no")).await.err().context("it was called")?;
    ensure!((own.kind(), own.to_string().as_str()) == (ErrorKind::Refused, why), "{own:?}");
    let of = |who: Principal| (who, "echo".to_owned(), "echo_echo".to_owned());
    let ann = of(Principal::Named("ann".into()));
    ensure!(*asked.lock().unwrap() == [ann.clone(), ann, of(Principal::Process)]);
    let ended: Vec<Ended> = records.calls().iter().map(|record| record.ended).collect();
    ensure!(ended == [Ended::Done, Ended::Refused, Ended::Refused], "{ended:?}");
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
    // A call of the program opens its folders to itself.
    let own = || Call::tool("files_read_text_file").arguments(json!({ "path": note }));
    ensure!(wharf.call(own().roots([folder.path()])).await?.text() == "what is in it");
    ensure!(wharf.call(own()).await?.is_error, "a folder is open to another call");
    Ok(())
}

/// A folder is opened by its exact path: a text with replaced characters names another one.
async fn a_folder_whose_name_is_not_text_is_opened_itself() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let exact = folder.path().join(OsStr::from_bytes(b"data-\xff"));
    let other = folder.path().join(&*exact.file_name().context("a name")?.to_string_lossy());
    for (path, note) in [(&exact, "the exact one"), (&other, "the other one")] {
        std::fs::create_dir(path)?;
        std::fs::write(path.join("note"), note)?;
    }
    let plugin = Plugin::file(plugin("files")).dir(&exact, "/data", Access::Read);
    let wharf = Wharf::builder().plugin(plugin).build().await?;
    let call = Call::tool("files_read_text_file").arguments(json!({ "path": "/data/note" }));
    let read = wharf.call(call).await?;
    ensure!(read.text() == "the exact one", "{read:?}");
    Ok(())
}

async fn what_is_wrong_is_said_and_the_last_good_version_serves() -> Result<()> {
    let broken = Wharf::builder().plugin(Plugin::bytes("echo", &b"nonsense"[..])).build().await;
    let broken = broken.err().context("it was built")?;
    ensure!((broken.kind(), broken.plugin(), broken.stage()) == (ErrorKind::Plugin, Some("echo"), Some(Stage::Load)));
    let unknown = Wharf::builder().config("nonsense = 1").build().await.err().context("it was built")?;
    ensure!(unknown.kind() == ErrorKind::Config && unknown.to_string().contains("unknown key `nonsense`"), "{unknown}");
    let settings = Plugin::bytes("echo", bytes("echo")).config(7).timeout(PATIENCE);
    let unwritable = Wharf::builder().plugin(settings).build().await.err().context("it was built")?;
    ensure!(unwritable.kind() == ErrorKind::Config && unwritable.to_string().contains("not a table"), "{unwritable}");
    let wharf = Wharf::builder().plugin(Plugin::bytes("echo", bytes("echo"))).build().await?;
    ensure!(kind(wharf.put(Plugin::bytes("echo", &b"nonsense"[..])).await)? == ErrorKind::Plugin);
    let result = wharf.call(echo("x")).await?;
    ensure!(!result.is_error, "the last good version is gone");
    ensure!(kind(wharf.put(Plugin::bytes("no id", bytes("echo"))).await)? == ErrorKind::Config);
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
    wharf.call(echo("x")).await?;
    ensure!(caught()? == before, "{:x} became {:x}", before, caught()?);
    Ok(())
}

async fn sessions_end_without_the_wharf_and_the_wharf_ends_sessions() -> Result<()> {
    let wharf = Wharf::builder().plugin(Plugin::bytes("echo", bytes("echo"))).build().await?;
    let (client, _, end) = session(&wharf, "ann", &[]).await?;
    client.cancel().await?;
    timeout(PATIENCE, end).await.context("the session does not end")???;
    let mut stopping = pin!(wharf.stopping());
    ensure!(stopping.as_mut().now_or_never().is_none(), "the end of a session stops wharf");
    let (_client, _, end) = session(&wharf, "ann", &[]).await?;
    drop(wharf);
    timeout(PATIENCE, end).await.context("the session outlives its wharf")???;
    timeout(PATIENCE, stopping).await.context("nobody is told that wharf stops")?;
    Ok(())
}
