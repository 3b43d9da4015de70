//! The audit log: its contents, data that it never contains, and what happens to calls while it cannot be written.

use std::{
    collections::BTreeSet,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use e2e::{
    Folder, PATIENCE, Pipe, Server, Value,
    folder::{stderr, stdout},
    is_error, json, modern_params, plugin, text,
};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use tokio::io::{AsyncBufReadExt, BufReader};

const UNWRITABLE: &str = "the audit log cannot be written";

/// A config with an audit log, `echo`, and further lines.
fn audited(folder: &Folder, keys: &str, more: &str) -> PathBuf {
    let echo = plugin("echo");
    folder.config(&format!("[audit]\nfile = \"audit.jsonl\"\n{keys}\n[plugins.echo]\npath = {echo:?}\n{more}\n"));
    folder.join("config/wharf/audit.jsonl")
}

/// Returns all lines of one file of a log.
fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn with<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

fn numbers(lines: &[Value]) -> Vec<u64> {
    lines.iter().map(|line| line["seq"].as_u64().unwrap()).collect()
}

/// Runs `wharf audit verify`. Returns whether the log is valid, and the output.
async fn verify(folder: &Folder, more: &[&str]) -> (bool, String) {
    let arguments = [&["audit", "verify"], more].concat();
    let output = folder.run(&arguments, &[]).await;
    (output.status.success(), stdout(&output) + &stderr(&output))
}

async fn is_whole(folder: &Folder) {
    let (fine, said) = verify(folder, &[]).await;
    assert!(fine, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_on_a_pipe_are_there_before_their_answers() {
    let folder = Folder::new();
    let log = audited(&folder, "", "");
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    for number in 1..=20 {
        assert_eq!(text(&pipe.call("echo_echo", json!({ "message": "hunter2" })).await), "hunter2");
        assert_eq!(with(&lines(&log), "call").len(), number, "not there when the answer was");
    }
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let params = json!({ "name": "echo_echo", "arguments": { "message": "x" }, "_meta": { "traceparent": trace } });
    pipe.request("tools/call", params).await.unwrap();
    assert!(is_error(&pipe.call("echo_echo", json!({ "message": 7 })).await));
    pipe.request("tools/call", json!({ "name": "no_such", "arguments": {} })).await.unwrap_err();
    pipe.request("tools/call", json!({ "arguments": {} })).await.unwrap_err();
    pipe.request("resources/read", json!({ "uri": "none:///x" })).await.unwrap_err();
    pipe.request("prompts/get", json!({ "name": "none" })).await.unwrap_err();
    assert!(pipe.close().await.status.success());
    let all = lines(&log);
    let events: Vec<&str> = all.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(events[..2], ["start", "config.read"]);
    assert_eq!(events.last(), Some(&"stop"));
    assert_eq!(with(&all, "plugin.loaded")[0]["wharf.plugin"], "echo");
    assert_eq!(with(&all, "listing")[0]["outcome"], "done");
    let calls = with(&all, "call");
    let digest = calls[0]["wharf.plugin.sha256"].as_str().unwrap();
    assert_eq!(digest, with(&all, "plugin.loaded")[0]["wharf.plugin.sha256"]);
    for (key, expected) in [
        ("outcome", json!("done")),
        ("mcp.method.name", json!("tools/call")),
        ("gen_ai.tool.name", json!("echo_echo")),
        ("mcp.protocol.version", json!("2025-11-25")),
        ("network.transport", json!("pipe")),
        ("wharf.principal", json!("process")),
        ("wharf.plugin", json!("echo")),
        ("wharf.bytes.out", json!(7)),
    ] {
        assert_eq!(calls[0][key], expected, "{key}");
    }
    assert_eq!(calls[0]["wharf.arguments.hmac"], calls[1]["wharf.arguments.hmac"], "the same arguments");
    assert_eq!(calls[0]["mcp.session.id"], calls[1]["mcp.session.id"], "the same session");
    assert_eq!(calls[20]["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    assert_ne!(calls[20]["wharf.arguments.hmac"], calls[1]["wharf.arguments.hmac"]);
    let refused: Vec<(&Value, &Value)> =
        calls[21..].iter().map(|call| (&call["mcp.method.name"], &call["error.type"])).collect();
    assert_eq!(
        refused,
        [
            (&json!("tools/call"), &json!("invalid")),
            (&json!("tools/call"), &json!("-32602")),
            (&json!("tools/call"), &json!("-32602")),
            (&json!("resources/read"), &json!("-32002")),
            (&json!("prompts/get"), &json!("-32602")),
        ]
    );
    assert!(calls[21..].iter().all(|call| call["outcome"] == "refused"));
    assert_eq!((&calls[21]["wharf.plugin"], &calls[22]["gen_ai.tool.name"]), (&json!("echo"), &json!("no_such")));
    assert!(!std::fs::read_to_string(&log).unwrap().contains("hunter2"));
    is_whole(&folder).await;
    for file in [log, folder.home().join(".local/state/wharf/audit.key")] {
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600, "{}", file.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_over_http_are_told_apart() {
    let folder = Folder::new();
    let log = audited(&folder, "", "[http]\ntoken.env = \"TOKEN\"\n");
    let server = Server::start_with(&folder, &[], &[("TOKEN", "a-secret-token-of-tests")]).await;
    let params = json!({ "name": "echo_echo", "arguments": { "message": "x" } });
    let body = json!({ "jsonrpc": "2.0", "id": "seven", "method": "tools/call",
                       "params": modern_params(params.clone(), json!({})) });
    let headers = e2e::http::modern_headers(&body);
    let mut headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.push(("Authorization", "Bearer a-secret-token-of-tests"));
    let (status, code, answer) = server.probe(&headers, &body).await;
    assert_eq!((status, code), (200, 0), "{answer}");
    let (status, _, log_text) = server.terminate().await;
    assert!(status.success(), "{log_text}");
    // The same plugin, called by the user who starts wharf.
    let output = folder
        .run(
            &["call", "-c", "config/wharf/wharf.toml", plugin("echo").to_str().unwrap(), "echo", "message=x"],
            &[("TOKEN", "a-secret-token-of-tests")],
        )
        .await;
    assert!(output.status.success(), "{}", stderr(&output));
    let all = lines(&log);
    let calls = with(&all, "call");
    let principals: Vec<&str> = calls.iter().filter_map(|call| call["wharf.principal"].as_str()).collect();
    assert!(principals[0].starts_with("token ") && principals[1] == "process", "{principals:?}");
    assert_eq!((&calls[0]["network.transport"], &calls[0]["jsonrpc.request.id"]), (&json!("tcp"), &json!("seven")));
    assert_eq!(calls[0]["wharf.arguments.hmac"], calls[1]["wharf.arguments.hmac"]);
    assert!(!std::fs::read_to_string(&log).unwrap().contains("a-secret-token-of-tests"));
    let shown = folder.run(&["audit", "show", "--file", log.to_str().unwrap(), "--principal", "token"], &[]).await;
    assert_eq!(stdout(&shown).lines().count(), 1, "{}", stdout(&shown));
}

/// The log never contains the plugin's config, and contains arguments only with `full`.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_the_config_are_never_there() {
    for (kind, clear, shown) in [
        ("digest", false, Value::Null),
        ("redacted", false, json!({ "message": "string of 13" })),
        ("full", true, json!({ "message": "words of mine" })),
    ] {
        let folder = Folder::new();
        let secrets = "config = { token = { env = \"SECRET\" } }\n[plugins.echo.grants]\nenv = [\"SECRET\"]";
        let log = audited(&folder, &format!("arguments = {kind:?}"), secrets);
        let mut pipe = Pipe::start_with(&folder, &["run"], &[("SECRET", "correct-horse")]);
        pipe.legacy("2025-11-25", json!({})).await;
        pipe.call("echo_echo", json!({ "message": "words of mine" })).await;
        pipe.close().await;
        let all = lines(&log);
        let call = with(&all, "call")[0];
        assert_eq!(call["wharf.arguments"], shown, "{kind}");
        assert_eq!(call["wharf.env"], json!(["SECRET"]));
        // The run can reach a folder, so its `begun` line is there as well.
        assert_eq!(call["wharf.begun"], with(&all, "begun")[0]["seq"]);
        let text = std::fs::read_to_string(&log).unwrap();
        assert!(!text.contains("correct-horse") && text.contains("words of mine") == clear, "{kind}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_is_there() {
    let folder = Folder::new();
    let log = audited(&folder, "", "");
    let config = folder.join("config/wharf/wharf.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let pipe = Pipe::start(&folder, &["run"]);
    pipe.wait_for_log("serving").await;
    folder.config(&format!("{text}[plugins.echo.grants]\nenv = [\"TZ\"]\nroots = \"read\"\n"));
    pipe.wait_for_log("the config was reloaded").await;
    folder.config("nonsense = 1\n");
    pipe.wait_for_log("the config is not used").await;
    let hello = plugin("hello");
    folder.config(&text.replace("[plugins.echo]", &format!("[plugins.hello]\npath = {hello:?}\n[plugins.echo]")));
    pipe.wait_for_log("serving plugin=\"hello\"").await;
    // Another component replaces the plugin, then an invalid one, then the file is removed.
    let own = folder.plugin_as("hello", "own/a.wasm");
    folder.config(&format!("{text}[plugins.a]\npath = {own:?}\n"));
    pipe.wait_for_log("serving plugin=\"a\"").await;
    folder.plugin_as("time", "own/a.wasm");
    let replaced = |all: &[Value]| !with(all, "plugin.replaced").is_empty();
    wait_until(&log, replaced).await;
    folder.write("own/a.wasm", "no component");
    pipe.wait_for_log("does not load").await;
    folder.config(&text);
    wait_until(&log, |all| with(all, "plugin.removed").iter().any(|line| line["wharf.plugin"] == "a")).await;
    pipe.close().await;
    let all = lines(&log);
    let digests: BTreeSet<&str> =
        with(&all, "config.read").iter().filter_map(|line| line["wharf.file.sha256"].as_str()).collect();
    assert_eq!(digests.len(), 4, "{all:?}");
    assert!(with(&all, "config.refused")[0]["problem"].as_str().unwrap().contains("unknown key `nonsense`"));
    let granted: Vec<(&Value, &Value)> = with(&all, "grants.changed")
        .iter()
        .map(|line| (&line["wharf.grants.added"], &line["wharf.grants.removed"]))
        .collect();
    let grants = json!(["roots (read)", "$TZ"]);
    assert_eq!(granted, [(&grants, &Value::Null), (&Value::Null, &grants)]);
    let replaced = with(&all, "plugin.replaced").into_iter().find(|line| line["wharf.plugin"] == "a").unwrap();
    assert_ne!(replaced["wharf.plugin.sha256"], replaced["wharf.plugin.sha256.before"]);
    let failed = with(&all, "plugin.failed")[0];
    assert_eq!((&failed["error.type"], &failed["outcome"]), (&json!("load"), &json!("last_good_serves")));
    is_whole(&folder).await;
}

/// Follows the log until it is as wanted.
async fn wait_until(log: &Path, wanted: impl Fn(&[Value]) -> bool) {
    let (sender, mut changed) = tokio::sync::mpsc::channel(1);
    let mut watcher = notify::recommended_watcher(move |_| {
        // If the channel is full, a change is already pending.
        let _ = sender.try_send(());
    })
    .unwrap();
    notify::Watcher::watch(&mut watcher, log, notify::RecursiveMode::NonRecursive).unwrap();
    while !wanted(&lines(log)) {
        tokio::time::timeout(PATIENCE, changed.recv()).await.expect("the log does not become so").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_changes_the_log_is_found_out() {
    let folder = Folder::new();
    let log = audited(&folder, "", "");
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    for _ in 0..5 {
        pipe.call("echo_echo", json!({ "message": "x" })).await;
    }
    let ended = pipe.close().await;
    // The operator's log contains the head at exit.
    let (_, rest) = ended.log.split_once("head=\"").unwrap_or_else(|| panic!("{}", ended.log));
    let head = rest.split('"').next().unwrap();
    let whole: Vec<String> = std::fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect();
    let last = whole.len();
    type Change<'a> = &'a dyn Fn(&mut Vec<String>);
    let cases: [(&str, &[&str], Change<'_>, Option<String>); 8] = [
        ("nothing", &["--head", head], &|_| {}, None),
        (
            "an edit",
            &[],
            &|all| all[3] = all[3].replace("echo", "evil"),
            Some("audit.jsonl:5: the hash in line 5 is not that of line 4".into()),
        ),
        ("a deletion", &[], &|all| drop(all.remove(3)), Some("audit.jsonl:4: line 4 is expected".into())),
        ("an exchange", &[], &|all| all.swap(3, 4), Some("audit.jsonl:4: line 4 is expected".into())),
        ("a repetition", &[], &|all| all.insert(4, all[3].clone()), Some("audit.jsonl:5: line 5 is expected".into())),
        ("an invalid line", &[], &|all| all[3] = "{}".into(), Some("audit.jsonl:4: this is not a line".into())),
        ("the end cut off", &[], &|all| all.truncate(last - 2), None),
        (
            "the end cut off, and the head is known",
            &["--head", head],
            &|all| all.truncate(last - 2),
            Some("BROKEN at the end".into()),
        ),
    ];
    for (what, more, change, expected) in cases {
        let mut changed = whole.clone();
        change(&mut changed);
        std::fs::write(&log, changed.join("\n") + "\n").unwrap();
        let (fine, said) = verify(&folder, more).await;
        assert_eq!(fine, expected.is_none(), "{what}: {said}");
        assert!(said.contains(expected.as_deref().unwrap_or("ok: lines 1 to ")), "{what}: {said}");
    }
}

/// The logs of several replicas are verified at once; a head is that of one of them.
#[tokio::test(flavor = "multi_thread")]
async fn several_logs_are_verified_at_once() {
    let folder = Folder::new();
    let log = audited(&folder, "", "");
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.call("echo_echo", json!({ "message": "x" })).await;
    let ended = pipe.close().await;
    let (_, rest) = ended.log.split_once("head=\"").unwrap_or_else(|| panic!("{}", ended.log));
    let head = rest.split('"').next().unwrap();
    let whole = std::fs::read_to_string(&log).unwrap();
    let (first, _) = whole.split_once('\n').unwrap();
    let shorter = folder.write("shorter.jsonl", format!("{first}\n"));
    let broken = folder.write("broken.jsonl", whole.replace("echo", "evil"));
    let [log, shorter, broken] = [&log, &shorter, &broken].map(|path| path.to_str().unwrap());
    let (fine, said) = verify(&folder, &[log, shorter, "--head", head]).await;
    assert!(fine && said.contains(&format!("{log}: ok: ")) && said.contains(&format!("{shorter}: ok: ")), "{said}");
    assert!(said.contains(&format!("{log}: note: --head {head}")), "{said}");
    let (fine, said) = verify(&folder, &[shorter, shorter, "--head", head]).await;
    assert!(!fine && said.contains("BROKEN at the end: no line has the hash"), "{said}");
    let (fine, said) = verify(&folder, &[broken, shorter]).await;
    assert!(!fine && said.contains("BROKEN at ") && said.contains(&format!("{shorter}: ok: ")), "{said}");
    let (fine, said) = verify(&folder, &[log, "--file", log]).await;
    assert!(!fine && said.contains("cannot be used with"), "{said}");
}

/// wharf is killed while it writes, again and again, and continues where it was.
#[tokio::test(flavor = "multi_thread")]
async fn being_killed_loses_nothing_that_was_answered() {
    let folder = Folder::new();
    let log = audited(&folder, "arguments = \"full\"", "");
    let mut answered = 0;
    for round in 0..6 {
        let mut pipe = Pipe::start(&folder, &["run"]);
        // Its line is long, and its answer is short enough to arrive completely or not at all.
        let arguments = json!({ "message": "x", "more": "x".repeat(200_000) });
        let arguments = json!({ "name": "echo_echo", "arguments": arguments });
        pipe.modern("tools/list", json!({}), json!({})).await.unwrap();
        for _ in 0..=round {
            pipe.begin_modern("tools/call", arguments.clone(), json!({})).await;
        }
        // At least one answer has arrived, and others are on their way.
        pipe.recv().await;
        answered += 1;
        e2e::pipe::signal(pipe.pid(), Signal::KILL);
        let ended = pipe.wait().await;
        answered += ended.rest.len();
    }
    // Once more, with a known torn line. Lines torn by the last kill are moved away first.
    Pipe::start(&folder, &["run"]).close().await;
    let mut torn = std::fs::read(&log).unwrap();
    torn.extend_from_slice(b"{\"seq\":9999,\"prev\":\"00");
    std::fs::write(&log, &torn).unwrap();
    let pipe = Pipe::start(&folder, &["run"]);
    pipe.wait_for_log("the audit log ended with an unfinished line").await;
    pipe.close().await;
    is_whole(&folder).await;
    let all = lines(&log);
    assert!(with(&all, "call").len() >= answered, "{} lines, {answered} answers", with(&all, "call").len());
    let torn = with(&all, "torn");
    let aside = torn.last().unwrap()["wharf.file"].as_str().unwrap();
    assert_eq!(std::fs::read(aside).unwrap(), b"{\"seq\":9999,\"prev\":\"00");
    assert_eq!(numbers(&all), (1..=all.len() as u64).collect::<Vec<_>>());
}

/// A call that can reach a folder leaves a trace, even if wharf is killed before it ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_under_way_when_wharf_is_killed_has_left_a_trace() {
    let folder = Folder::new();
    let hostile = plugin("hostile");
    let more = format!("[plugins.hostile]\npath = {hostile:?}\n[plugins.hostile.grants]\nenv = [\"PATH\"]");
    let log = audited(&folder, "", &more);
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.modern("tools/list", json!({}), json!({})).await.unwrap();
    pipe.begin_modern("tools/call", json!({ "name": "hostile_spin", "arguments": {} }), json!({})).await;
    wait_until(&log, |all| !with(all, "begun").is_empty()).await;
    e2e::pipe::signal(pipe.pid(), Signal::KILL);
    pipe.wait().await;
    let all = lines(&log);
    assert_eq!((with(&all, "begun").len(), with(&all, "call").len()), (1, 0));
    assert_eq!(with(&all, "begun")[0]["gen_ai.tool.name"], "hostile_spin");
    is_whole(&folder).await;
}

fn limit_files(pid: u32, bytes: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let now = prlimit(Some(pid), Resource::Fsize, Rlimit { current: bytes, maximum: None });
    now.unwrap();
}

/// The disk seems full to wharf, and later does not.
#[tokio::test(flavor = "multi_thread")]
async fn calls_are_refused_while_the_log_cannot_be_written() {
    let folder = Folder::new();
    let showcase = plugin("showcase");
    let log = audited(&folder, "", &format!("[plugins.showcase]\npath = {showcase:?}\nprefix = \"\"\n"));
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    assert!(!is_error(&pipe.call("echo_echo", json!({ "message": "before" })).await));
    let resources = pipe.request("resources/list", json!({})).await.unwrap();
    let uri = resources["resources"][0]["uri"].as_str().unwrap().to_owned();
    limit_files(pipe.pid(), Some(std::fs::metadata(&log).unwrap().len() + 100));
    // The first call runs before wharf knows that its line cannot be written, so its answer is withheld.
    let first = pipe.call("echo_echo", json!({ "message": "first" })).await;
    assert!(is_error(&first) && text(&first).contains("its answer is withheld") && text(&first).contains(UNWRITABLE));
    for _ in 0..3 {
        let refused = pipe.call("echo_echo", json!({ "message": "x" })).await;
        assert!(is_error(&refused), "{refused}");
        assert_eq!(text(&refused), format!("The call was not run: {UNWRITABLE}."));
    }
    let refused = pipe.request("resources/read", json!({ "uri": uri })).await.unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains(UNWRITABLE), "{refused}");
    let why = pipe.wait_for_log("cannot be written: ").await;
    assert!(why.contains("audit.jsonl") && why.contains("File too large"), "{why}");
    is_whole(&folder).await;
    limit_files(pipe.pid(), None);
    pipe.wait_for_log("the audit log can be written again").await;
    assert!(!is_error(&pipe.call("echo_echo", json!({ "message": "after" })).await));
    let ended = pipe.close().await;
    assert_eq!(ended.log.matches("cannot be written: ").count(), 1, "{}", ended.log);
    let all = lines(&log);
    // Lines that could not be written then are there now; of the refused calls, there is the number.
    let outcomes: Vec<&Value> = with(&all, "call").iter().map(|call| &call["outcome"]).collect();
    assert_eq!(outcomes, ["done", "done", "done"]);
    let interrupted = with(&all, "interrupted");
    assert_eq!((interrupted.len(), &interrupted[0]["wharf.calls"]), (1, &json!(4)), "{interrupted:?}");
    is_whole(&folder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_on_if_the_operator_wants_that() {
    let folder = Folder::new();
    let log = audited(&folder, "on_failure = \"continue\"", "");
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.call("echo_echo", json!({ "message": "before" })).await;
    limit_files(pipe.pid(), Some(std::fs::metadata(&log).unwrap().len() + 100));
    for _ in 0..5 {
        assert!(!is_error(&pipe.call("echo_echo", json!({ "message": "x" })).await));
    }
    pipe.wait_for_log("cannot be written: ").await;
    assert_eq!(with(&lines(&log), "call").len(), 1);
    limit_files(pipe.pid(), None);
    pipe.wait_for_log("the audit log can be written again").await;
    pipe.close().await;
    assert_eq!(with(&lines(&log), "call").len(), 6);
    is_whole(&folder).await;
}

/// If two processes use the same file, the second exits with an error. A file that other users may write is not used.
#[tokio::test(flavor = "multi_thread")]
async fn one_process_writes_one_log() {
    let folder = Folder::new();
    let log = audited(&folder, "", "");
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.call("echo_echo", json!({ "message": "x" })).await;
    let second = folder.run(&["run"], &[]).await;
    assert_eq!(second.status.code(), Some(2));
    assert!(stderr(&second).contains("another wharf writes this audit log"), "{}", stderr(&second));
    // Checking the config needs no audit log.
    let checked = folder.run(&["check"], &[]).await;
    assert!(checked.status.success() && stdout(&checked).contains("audit log "), "{}", stderr(&checked));
    pipe.close().await;
    folder.set_mode("config/wharf/audit.jsonl", 0o622);
    for arguments in [["run"], ["check"]] {
        let refused = folder.run(&arguments, &[]).await;
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains("others may write this audit log"), "{}", stderr(&refused));
    }
    assert_eq!(lines(&log).len() as u64, *numbers(&lines(&log)).last().unwrap());
}

async fn text_of(pipe: &mut Pipe, tool: &str) -> String {
    text(&pipe.call(tool, json!({})).await).to_owned()
}

/// The folder of the log, and that of the key, is read-only to every plugin.
#[tokio::test(flavor = "multi_thread")]
async fn no_plugin_writes_the_log_or_its_key() {
    for (what, place) in [("the log", "logs"), ("above the log", "."), ("the key", "home/.local/state/wharf")] {
        let folder = Folder::new();
        let reach = plugin("reach");
        std::fs::create_dir_all(folder.join("logs")).unwrap();
        std::fs::create_dir_all(folder.join(place)).unwrap();
        let config = folder.write(
            "elsewhere/w.toml",
            format!(
                "[audit]\nfile = {:?}\n[plugins.reach]\npath = {reach:?}\nprefix = \"\"\n[plugins.reach.grants]\n\
                 dirs = [{{ host = {:?}, guest = \"/w\", access = \"read-write\" }}]\n",
                folder.join("logs/audit.jsonl"),
                folder.join(place),
            ),
        );
        let mut pipe = Pipe::start(&folder, &["run", "-c", config.to_str().unwrap()]);
        pipe.legacy("2025-11-25", json!({})).await;
        assert_eq!(text(&pipe.call("dirs", json!({})).await), "ro /w", "{what}");
        let written = pipe.call("write", json!({ "path": "/w/audit.jsonl.1", "text": "x" })).await;
        assert!(text(&written).starts_with("error: "), "{what}: {written}");
        pipe.wait_for_log("is read-only").await;
        // A config without the log does not change the log that is being written.
        let text = std::fs::read_to_string(&config).unwrap();
        let without: Vec<&str> = text.lines().skip(2).collect();
        folder.write("elsewhere/w.toml", without.join("\n"));
        pipe.wait_for_log("`[audit]` changed; it takes effect when wharf is restarted").await;
        pipe.wait_for_log("the config was reloaded").await;
        assert_eq!(text_of(&mut pipe, "dirs").await, "ro /w", "{what}");
        pipe.close().await;
        let all = lines(&folder.join("logs/audit.jsonl"));
        assert_eq!(with(&all, "call")[0]["wharf.dirs"], json!([{ "path": "/w", "access": "read" }]), "{what}");
    }
}

/// Files are rotated and the oldest are removed; the chain continues across all of them. A reader that follows the log misses no line.
#[tokio::test(flavor = "multi_thread")]
async fn the_chain_goes_on_over_old_files() {
    let folder = Folder::new();
    let log = audited(&folder, "arguments = \"full\"\nrotate_mib = 1\nkeep = 2", "");
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.call("echo_echo", json!({ "message": "first" })).await;
    let mut tail = folder.command(&["audit", "tail", "-n", "1", "--tool", "echo_echo"], &[]).spawn().unwrap();
    let mut followed = BufReader::new(tail.stdout.take().unwrap()).lines();
    let mut next = async || -> Value {
        let line = tokio::time::timeout(PATIENCE, followed.next_line()).await.expect("nothing follows").unwrap();
        serde_json::from_str(&line.expect("tail has ended")).unwrap()
    };
    let mut seen = vec![next().await];
    for number in 0..24 {
        let message = format!("{number} {}", "x".repeat(200_000));
        pipe.call("echo_echo", json!({ "message": message })).await;
        seen.push(next().await);
    }
    tail.start_kill().unwrap();
    tokio::time::timeout(PATIENCE, tail.wait()).await.unwrap().unwrap();
    assert!(pipe.log().matches("the audit log so far").count() >= 4, "{}", pipe.log());
    pipe.close().await;
    assert_eq!(seen[0]["wharf.arguments"]["message"], "first");
    for (number, line) in seen[1..].iter().enumerate() {
        let message = line["wharf.arguments"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{number} ")), "{number}");
    }
    let (fine, said) = verify(&folder, &[]).await;
    assert!(fine && said.contains("in 3 files") && said.contains("are missing: rotation has removed them"), "{said}");
    assert!(!log.with_file_name("audit.jsonl.3").exists());
    let shown = folder.run(&["audit", "show", "--tool", "echo_echo", "--since", "1h"], &[]).await;
    let shown: Vec<Value> = stdout(&shown).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(shown.last(), seen.last());
    // A rotated file that is missing in the middle is reported.
    std::fs::remove_file(log.with_file_name("audit.jsonl.1")).unwrap();
    let (fine, said) = verify(&folder, &[]).await;
    assert!(!fine && said.contains("audit.jsonl:1: ") && said.contains("lines are missing"), "{said}");
}

/// A missing key is not silently replaced by another.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_key_is_gone_is_not_gone_on_with() {
    let folder = Folder::new();
    let log = audited(&folder, "", "");
    let key = folder.home().join(".local/state/wharf/audit.key");
    let run = async || {
        let mut pipe = Pipe::start(&folder, &["run"]);
        pipe.legacy("2025-11-25", json!({})).await;
        let result = pipe.call("echo_echo", json!({ "message": "x" })).await;
        assert!(!is_error(&result), "{result}");
        pipe.close().await;
    };
    run().await;
    let digest = |file: &Path| with(&lines(file), "call")[0]["wharf.arguments.hmac"].clone();
    let (of_before, before) = (digest(&log), std::fs::read(&log).unwrap());
    let aside = folder.join("aside.key");
    std::fs::rename(&key, &aside).unwrap();
    for arguments in [&["run"][..], &["serve", "--listen", "127.0.0.1:0"], &["check"]] {
        let refused = folder.run(arguments, &[]).await;
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("audit.key: the key of the audit log is missing"), "{arguments:?}: {said}");
        assert!(said.contains("restore the key, or start a new log with a new key: move that file"), "{said}");
        assert!(!key.exists() && std::fs::read(&log).unwrap() == before, "{arguments:?}: nothing was touched");
    }
    // The rotated files belong to the log too.
    let older = log.with_extension("jsonl.1");
    std::fs::rename(&log, &older).unwrap();
    assert_eq!(folder.run(&["run"], &[]).await.status.code(), Some(2));
    // The remedy: start a new log with another key.
    std::fs::rename(&older, folder.join("aside.jsonl")).unwrap();
    run().await;
    assert_ne!(digest(&log), of_before);
    // If the log is missing and the key exists, a new log is started, and this is reported.
    std::fs::remove_file(&log).unwrap();
    let pipe = Pipe::start(&folder, &["run"]);
    pipe.wait_for_log("starting a new audit log").await;
    pipe.close().await;
}
