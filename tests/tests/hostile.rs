//! Guests that misbehave in a call: the error for the client, the log for the operator, the resources of the host, and that other plugins
//! still work.

#![expect(clippy::disallowed_methods, reason = "tests write what wharf is to read; what they spawn ends with them")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "tests print their measurements")]

use std::time::Instant;

use e2e::{Folder, PATIENCE, Pipe, Value, is_error, json, plugin, prompt, text};
use tokio::time::timeout;

/// `hostile` and `echo`, with the operator's grants for the former.
fn config(folder: &Folder, hostile: &str) {
    folder.config(&format!(
        "[plugins.hostile]\npath = {:?}\nprefix = \"\"\n{hostile}\n[plugins.echo]\npath = {:?}\nprefix = \"by_\"\n",
        plugin("hostile"),
        plugin("echo")
    ));
}

const QUICK: &str = "[plugins.hostile.limits]\ntimeout_ms = 2000";

async fn started(hostile: &str, capabilities: Value) -> (Folder, Pipe) {
    let folder = Folder::new();
    config(&folder, hostile);
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", capabilities).await;
    pipe.request("tools/list", json!({})).await.unwrap();
    (folder, pipe)
}

async fn bystander(pipe: &mut Pipe, after: &str) {
    let result = pipe.call("by_echo", json!({ "message": "well" })).await;
    assert_eq!(text(&result), "well", "after {after}");
    assert!(!is_error(&result), "after {after}");
}

/// A line of `/proc/<pid>/status`, in KiB.
fn status_kib(pid: u32, key: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_misdeed_is_one_sentence_and_harms_no_one() {
    let (_folder, mut pipe) = started(QUICK, json!({})).await;
    bystander(&mut pipe, "the start").await;
    let files = open_files(pipe.pid());
    let mib = |mib: u64| mib * 1024 * 1024;
    let rows: &[(&str, Value, &str, &str)] = &[
        ("spin", json!({}), "it ran longer than its limit of 2000 ms", "a call failed: it ran longer"),
        ("sleep", json!({ "ms": 60000 }), "it ran longer than its limit of 2000 ms", "a call failed: it ran longer"),
        ("allocate", json!({ "mib": 500 }), "more than 64 MiB of memory, its limit", "a call failed: it needs more"),
        ("recurse", json!({}), "it crashed", "a call failed: it crashed"),
        ("trap", json!({}), "it crashed", "a call failed: it crashed"),
        ("panic", json!({ "message": "why-it-panicked" }), "it crashed: it panicked at ", "why-it-panicked"),
        ("big", json!({ "bytes": mib(5) }), "larger than its limit of 4096 KiB", "a call failed: its result is larger"),
        ("exit", json!({ "code": 0 }), "ended its process", "a call failed: it ended its process"),
        ("exit", json!({ "code": 3 }), "ended its process", "a call failed: it ended its process"),
        ("random", json!({ "bytes": 1_u64 << 40 }), "it crashed", "a call failed: it crashed"),
        ("fields", json!({ "n": 900, "bytes": 4000, "ms": 0 }), "it crashed", "a call failed: it crashed"),
        ("blocks", json!({ "n": 1_000_000 }), "memory", "a call failed: it needs more"),
        ("bad_structured", json!({}), "not JSON", "a defect of the plugin"),
        ("structured_array", json!({ "item": "[", "n": 1000 }), "not JSON", "a defect of the plugin"),
        ("bad_content", json!({ "raw": "nonsense" }), "not JSON", "a defect of the plugin"),
        ("bad_content", json!({ "raw": "[1]" }), "must be a JSON object", "a defect of the plugin"),
        ("bad_content", json!({ "raw": "{\"type\":\"text\"}" }), "lacks a member", "a defect of the plugin"),
        ("bad_content", json!({ "raw": "[".repeat(500) }), "not JSON", "a defect of the plugin"),
        ("bad_more", json!({ "more": "nonsense" }), "not a JSON object", "a defect of the plugin"),
        ("ask_forever", json!({}), "has not allowed", "ask = [\"elicitation\"]"),
        ("ask_many", json!({ "n": 17 }), "1 to 16 questions", "a defect of the plugin"),
        ("ask_many", json!({ "n": 0 }), "1 to 16 questions", "a defect of the plugin"),
        ("ask_state", json!({ "bytes": 70_000 }), "larger than 65536 bytes", "a defect of the plugin"),
    ];
    for (tool, arguments, told, logged) in rows {
        let what = format!("{tool} {}", arguments.to_string().chars().take(60).collect::<String>());
        let before = pipe.log().matches(logged).count();
        let began = Instant::now();
        let result = pipe.call(tool, arguments.clone()).await;
        assert!(began.elapsed() < 2 * prompt(), "{what} took {:?}", began.elapsed());
        assert!(is_error(&result), "{what}: {result}");
        let said = text(&result);
        assert!(said.contains(told) && said.contains("`hostile`"), "{what}: {said}");
        assert!(!said.trim_end().contains('\n') && said.len() < 300, "{what}: {said}");
        let log = timeout(PATIENCE, logged_again(&pipe, logged, before)).await;
        assert!(log.is_ok(), "{what}: the operator reads nothing of {logged}:\n{}", pipe.log());
        bystander(&mut pipe, &what).await;
    }
    let log = pipe.log();
    assert!(!log.contains(['\u{1b}', '\u{7}', '\u{202e}']), "control characters in the log");
    assert!(open_files(pipe.pid()) <= files + 2, "{} files open, {files} before", open_files(pipe.pid()));
    let peak = status_kib(pipe.pid(), "VmHWM");
    println!("peak of the host {} MiB, anonymous now {} MiB", peak >> 10, status_kib(pipe.pid(), "RssAnon") >> 10);
    assert!(peak < 512 * 1024, "the host grew to {peak} KiB");
    let ended = pipe.close().await;
    assert!(ended.status.success() && ended.took < prompt(), "{ended:?}");
}

/// Waits until the log contains `text` more than `before` times.
async fn logged_again(pipe: &Pipe, text: &str, before: usize) {
    while pipe.log().matches(text).count() <= before {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_loud_but_harmless_passes_in_measure() {
    // With the usual limit on time: a gigabyte takes seconds in a build that is not optimised.
    let (_folder, mut pipe) = started("", json!({})).await;
    let token =
        |tool: &str, arguments: Value| json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": 7 } });
    for (tool, arguments) in [
        ("print", json!({ "bytes": 1_u64 << 30 })),
        ("flood_log", json!({ "n": 100_000, "bytes": 10 })),
        ("flood_progress", json!({ "n": 100_000 })),
        ("flood_list_changed", json!({ "n": 100_000 })),
        ("flood_updated", json!({ "n": 100_000 })),
        ("blocks", json!({ "n": 10_000 })),
        ("big", json!({ "bytes": 4_000_000 })),
    ] {
        let result = pipe.request("tools/call", token(tool, arguments)).await.unwrap();
        assert!(!is_error(&result), "{tool}: {result}");
        bystander(&mut pipe, tool).await;
    }
    let count = |method: &str| pipe.inbox().iter().filter(|message| message["method"] == method).count();
    assert!(count("notifications/message") <= 1000, "{} log records", count("notifications/message"));
    assert!(count("notifications/progress") <= 1000, "{} progress reports", count("notifications/progress"));
    assert_eq!(count("notifications/resources/updated"), 0, "of no resource of its own");
    assert!(count("notifications/tools/list_changed") <= 4, "{}", count("notifications/tools/list_changed"));
    let peak = status_kib(pipe.pid(), "VmHWM");
    println!("peak of the host {} MiB", peak >> 10);
    assert!(peak < 300 * 1024, "the host grew to {peak} KiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_the_machine_is_there_without_a_grant() {
    let (_folder, mut pipe) = started(QUICK, json!({})).await;
    for (tool, arguments, expected) in [
        ("connect", json!({ "address": "127.0.0.1:22" }), "connect:refused listen:refused udp:refused lookup:refused"),
        ("http_get", json!({ "authority": "127.0.0.1:1" }), "refused: ErrorCode::HttpRequestDenied"),
        ("sockets", json!({ "n": 10, "ms": 0 }), "0"),
        ("args", json!({}), "[] []"),
        ("open_many", json!({ "n": 1, "path": "/etc/passwd", "ms": 0 }), "0 No such file or directory (os error 44)"),
    ] {
        let result = pipe.call(tool, arguments).await;
        assert_eq!(text(&result), expected, "{tool}");
    }
    pipe.wait_for_log("it wanted GET http://127.0.0.1:1/").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_deceives_is_defused_where_wharf_speaks() {
    let (_folder, mut pipe) = started(QUICK, json!({})).await;
    // The plugin's own result belongs to the client; JSON makes it safe on the way.
    let result = pipe.call("ansi", json!({})).await;
    assert!(text(&result).contains('\u{1b}'));
    for (tool, arguments) in
        [("fail_ansi", json!({})), ("fail_code", json!({ "code": 32602 })), ("fail_code", json!({ "code": 32600 }))]
    {
        let outcome = pipe.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        let said = match &outcome {
            Ok(result) => text(result).to_owned(),
            Err(error) => error["message"].as_str().unwrap().to_owned(),
        };
        assert!(!said.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{9b}', '\r']), "{tool}: {said:?}");
        if let Err(error) = outcome {
            // Plugins may not use the codes of JSON-RPC itself.
            assert!(error["code"] == -32602 || error["code"] == -32603, "{error}");
        }
    }
    let deceptive = "boo\u{1b}[2J\u{202e}\u{9b}1m";
    pipe.call("panic", json!({ "message": deceptive })).await;
    pipe.wait_for_log("boo").await;
    assert!(!pipe.log().contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{}", pipe.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_never_stops_asking_is_stopped() {
    let grants = format!("{QUICK}\n[plugins.hostile.grants]\nask = [\"elicitation\"]");
    let (_folder, mut pipe) = started(&grants, json!({ "elicitation": {} })).await;
    pipe.answer_with(|method, _| {
        (method == "elicitation/create").then(|| json!({ "action": "accept", "content": { "sure": true } }))
    });
    let result = pipe.call("ask_forever", json!({})).await;
    assert!(is_error(&result) && text(&result).contains("asked more than 8 times"), "{result}");
    assert_eq!(pipe.handled.len(), 8);
    for (key, message, schema) in [
        ("", "m", "{}"),
        ("wharf.roots", "m", "{}"),
        ("k", "m", "nonsense"),
        ("k", "m", r#"{"type":"object","properties":{"a":{"type":"object"}}}"#),
        ("k", "m", r#"{"type":"object","properties":{"a":{"$ref":"https://127.0.0.1:1/"}}}"#),
    ] {
        let result = pipe.call("ask_odd", json!({ "key": key, "message": message, "schema": schema })).await;
        assert!(is_error(&result), "{key} {schema}: {result}");
    }
    assert_eq!(pipe.handled.len(), 8, "none of these reach a person");
    let schema = r#"{"type":"object","properties":{"sure":{"type":"boolean"}}}"#;
    let id = pipe
        .begin("tools/call", json!({ "name": "ask_odd", "arguments": { "key": "k", "message": "\u{1b}[31m\u{202e}Sure?", "schema": schema } }))
        .await;
    pipe.answer(&id).await.unwrap();
    let asked = pipe.handled.last().unwrap()["params"]["message"].as_str().unwrap().to_owned();
    assert_eq!(asked, "[hostile] [31mSure?");
    bystander(&mut pipe, "questions").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_stops_no_one() {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let folder = Folder::new();
    config(&folder, QUICK);
    let mut child = folder.command(&["run"], &[]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    // Kept open and never read, as by clients that ignore logs.
    let stderr = child.stderr.take();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "e2e", "version": "1" } });
    let mut requests = vec![("initialize", hello), ("tools/list", json!({}))];
    requests.resize(14, ("tools/call", json!({ "name": "flood_log", "arguments": { "n": 100, "bytes": 16_000 } })));
    for (id, (method, params)) in requests.iter().enumerate() {
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
    // One after the other, so that the last of them arrives when all calls have been running for long.
    for round in 0..200 {
        let ping = json!({ "jsonrpc": "2.0", "id": format!("ping-{round}"), "method": "ping" }).to_string();
        stdin.write_all(format!("{ping}\n").as_bytes()).await.unwrap();
        let wanted = format!("\"ping-{round}\"");
        let answered = timeout(2 * prompt(), async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if line.contains(&wanted) {
                    return true;
                }
            }
            false
        });
        assert_eq!(answered.await, Ok(true), "ping {round} is not answered while the log is full");
    }
    drop((stdin, lines));
    let ended = timeout(prompt(), child.wait()).await;
    assert!(ended.is_ok(), "wharf does not end with its client while the log is full");
    drop(stderr);
}
