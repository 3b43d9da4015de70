//! The stdio transport: invalid frames, lines that are too long, batches, shutdown.

use e2e::{Folder, LEGACY, Pipe, Value, json, modern_params, prompt, random::Random, text};

fn started(config: &str) -> (Folder, Pipe) {
    let folder = Folder::new();
    folder.plugin("echo");
    folder.config(&format!("{config}\n[plugins.echo]\npath = '../../plugins/echo.wasm'\n"));
    let pipe = Pipe::start(&folder, &["run"]);
    (folder, pipe)
}

async fn still_serves(pipe: &mut Pipe) {
    pipe.send(json!({ "jsonrpc": "2.0", "id": "good", "method": "tools/call",
        "params": modern_params(json!({ "name": "echo_echo", "arguments": { "message": "still here" } }), json!({})) }))
        .await;
    assert_eq!(text(&pipe.answer(&json!("good")).await.unwrap()), "still here");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_bad_frame_gets_one_error() {
    let (_folder, mut pipe) = started("");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_params = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{deep}}}}}"#);
    for (line, codes, id) in [
        ("{", &[-32700][..], None),
        ("nonsense", &[-32700], None),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} {}", &[-32700], None),
        ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", &[-32700], None),
        ("7", &[-32600], None),
        ("null", &[-32600], None),
        ("\"ping\"", &[-32600], None),
        ("{}", &[-32600], None),
        (r#"{"jsonrpc":"2.0","id":1}"#, &[-32600], Some(1)),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, &[-32600], Some(1)),
        (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, &[-32600], None),
        (r#"{"id":1,"method":"ping"}"#, &[-32600], Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, &[-32600], None),
        (r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}"#, &[-32600], None),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#, &[-32600], None),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, &[-32602, -32600], Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":7}"#, &[-32602, -32600], Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, &[-32600], Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":7}}"#, &[-32602], Some(1)),
        (&deep, &[-32600, -32700], None),
        (&deep_params, &[-32600, -32602, -32700], Some(1)),
    ] {
        pipe.send_raw(format!("{line}\n").as_bytes()).await;
        let answer = pipe.recv().await;
        let shown = &line[..line.len().min(100)];
        if line == deep_params && answer.get("result").is_some() {
            continue;
        }
        assert!(codes.iter().any(|code| answer["error"]["code"] == *code), "{shown}: {answer}");
        if let (Some(id), Some(echoed)) = (id, answer.get("id")) {
            assert_eq!(*echoed, id, "{shown}: {answer}");
        }
        assert!(id.is_some() || answer.get("id").is_none(), "{shown}: {answer}");
    }
    pipe.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n").await;
    assert_eq!(pipe.recv().await["error"]["code"], -32700);
    still_serves(&mut pipe).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blank_lines_and_carriage_returns_do_not_count() {
    let (_folder, mut pipe) = started("");
    pipe.send_raw(b"\n \n\r\n\t\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n").await;
    assert_eq!(pipe.recv().await, json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    // Written in two parts, which may be read in two parts.
    pipe.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":2,").await;
    pipe.send_raw(b"\"method\":\"ping\"}\n").await;
    let pong = pipe.find("the answer", |message| message["id"] == 2).await;
    assert_eq!(pong["result"], json!({}));
}

/// BASE-09: notifications get no response, even when malformed.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_notifications_are_dropped_in_silence() {
    let (_folder, mut pipe) = started("");
    pipe.legacy("2025-11-25", json!({})).await;
    for line in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{"_meta":7}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{}}"#,
    ] {
        pipe.send_raw(format!("{line}\n").as_bytes()).await;
        let id = pipe.begin("ping", json!({})).await;
        let next = pipe.recv().await;
        assert_eq!(next["id"], id, "{line} was answered: {next}");
    }
}

/// BASE-09 for parameters that are not an object.
#[tokio::test(flavor = "multi_thread")]
async fn notifications_with_the_wrong_parameters_are_dropped_in_silence() {
    let (_folder, mut pipe) = started("");
    pipe.legacy("2025-11-25", json!({})).await;
    for params in ["[1]", "7", "null", "\"x\""] {
        pipe.send_raw(
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{params}}}\n").as_bytes(),
        )
        .await;
        let id = pipe.begin("ping", json!({})).await;
        let next = pipe.recv().await;
        assert_eq!(next["id"], id, "parameters {params} were answered: {next}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_damaged_frames_change_nothing() {
    let (_folder, mut pipe) = started("");
    let meta = json!({ "_meta": modern_params(json!({}), json!({}))["_meta"] });
    let seeds: Vec<Vec<u8>> = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": meta }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": modern_params(json!({ "name": "echo_echo", "arguments": { "message": "x" } }), json!({})) }),
        json!({ "jsonrpc": "2.0", "id": 4, "method": "resources/read", "params": modern_params(json!({ "uri": "a:b" }), json!({})) }),
        json!({ "jsonrpc": "2.0", "id": 5, "method": "completion/complete", "params": {
            "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "b" }, "_meta": meta["_meta"] } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 3 } }),
        json!({ "jsonrpc": "2.0", "id": 9, "result": { "roots": [] } }),
        json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }, 7]),
    ]
    .iter()
    .map(|seed| seed.to_string().into_bytes())
    .collect();
    let mut random = Random::new(20_260_728);
    for _ in 0..5000 {
        let mut frame = match random.below(10) {
            0 => {
                let length = random.below(200);
                random.bytes(length)
            }
            _ => {
                let seed = random.pick(&seeds).clone();
                random.damage(&seed)
            }
        };
        frame.retain(|byte| *byte != b'\n');
        frame.push(b'\n');
        pipe.send_raw(&frame).await;
    }
    still_serves(&mut pipe).await;
    for answer in pipe.inbox() {
        assert_ne!(answer["error"]["code"], -32603, "{answer}");
    }
    // Most are answered: only notifications, responses and blank lines are not.
    assert!(pipe.inbox().len() > 3000, "only {} answers", pipe.inbox().len());
    assert!(!pipe.log().contains("incident"), "{}", pipe.log());
    let ended = pipe.close().await;
    assert!(ended.status.success(), "{}", ended.log);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_too_long_is_refused_and_the_next_is_served() {
    let (_folder, mut pipe) = started("[limits]\nmessage_kib = 64");
    let of_length = |length: usize| {
        let frame = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":""}}"#;
        let filled = frame.replace("\"\"", &format!("\"{}\"", "x".repeat(length - frame.len())));
        assert_eq!(filled.len(), length);
        filled + "\n"
    };
    for (length, fits) in [(65_536, true), (65_537, false), (65_536, true), (4 << 20, false), (300, true)] {
        pipe.send_raw(of_length(length).as_bytes()).await;
        let answer = pipe.recv().await;
        assert_eq!(answer.get("result").is_some(), fits, "{length}: {answer}");
        if !fits {
            assert_eq!(answer["error"]["code"], -32600, "{answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains("65536"), "{answer}");
        }
    }
    still_serves(&mut pipe).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_belong_to_one_revision() {
    let batch = json!([
        { "jsonrpc": "2.0", "id": 101, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 99 } },
        { "jsonrpc": "2.0", "id": 102, "method": "tools/call", "params": { "name": "echo_echo", "arguments": { "message": "b" } } },
        { "jsonrpc": "2.0", "id": 103, "method": "initialize", "params": { "protocolVersion": "2025-03-26", "capabilities": {} } },
        7,
    ]);
    for revision in LEGACY {
        let (_folder, mut pipe) = started("");
        pipe.legacy(revision, json!({})).await;
        pipe.send(json!([])).await;
        assert_eq!(pipe.recv().await["error"]["code"], -32600, "{revision}: an empty batch");
        pipe.send(batch.clone()).await;
        if revision == "2025-03-26" {
            assert_eq!(pipe.answer(&json!(101)).await.unwrap(), json!({}));
            assert_eq!(text(&pipe.answer(&json!(102)).await.unwrap()), "b");
            assert_eq!(pipe.answer(&json!(103)).await.unwrap_err()["code"], -32600);
            let stray = pipe.find("the error for 7", |message| message.get("id").is_none()).await;
            assert_eq!(stray["error"]["code"], -32600);
        } else {
            let refused = pipe.recv().await;
            assert_eq!(refused["error"]["code"], -32600, "{revision}: {refused}");
            assert!(refused.get("id").is_none());
        }
        assert_eq!(pipe.request("ping", json!({})).await.unwrap(), json!({}));
        assert_eq!(pipe.close().await.rest, Vec::<Value>::new(), "{revision}");
    }
    let (_folder, mut pipe) = started("");
    pipe.send(batch).await;
    assert_eq!(pipe.recv().await["error"]["code"], -32600, "before any handshake");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_stdin_ends_wharf_and_what_was_asked_is_answered() {
    let (_folder, mut pipe) = started("");
    pipe.legacy("2025-11-25", json!({})).await;
    let mut ids = Vec::new();
    for round in 0..20 {
        let arguments = json!({ "message": round.to_string() });
        ids.push(pipe.begin("tools/call", json!({ "name": "echo_echo", "arguments": arguments })).await);
    }
    // The last line needs no line end.
    pipe.send_raw(br#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#).await;
    ids.push(json!("last"));
    let ended = pipe.close().await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
    assert!(ended.took < prompt(), "took {:?}", ended.took);
    for id in ids {
        assert!(
            ended.rest.iter().any(|message| message["id"] == id && message.get("result").is_some()),
            "{id} has no answer"
        );
    }
}

/// Calls that take longer than a shutdown's grace of a second, as in `echo … | wharf run`.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_take_long_are_answered_after_the_end_of_stdin() {
    let folder = Folder::new();
    folder.plugin("hostile");
    folder.config("[plugins.hostile]\npath = '../../plugins/hostile.wasm'\n");
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let slow = pipe.begin("tools/call", json!({ "name": "hostile_sleep", "arguments": { "ms": 1500 } })).await;
    let ended = pipe.close().await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
    let answer = ended.rest.iter().find(|message| message["id"] == slow).expect("no answer");
    assert_eq!(text(&answer["result"]), "slept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_stdout_ends_wharf_at_once() {
    use tokio::io::AsyncWriteExt;
    let folder = Folder::new();
    folder.plugin("hostile");
    folder.config("[plugins.hostile]\npath = '../../plugins/hostile.wasm'\n");
    let mut child = folder.command(&["run"], &[]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let params = modern_params(json!({ "name": "hostile_sleep", "arguments": { "ms": 20_000 } }), json!({}));
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    stdin.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    // stdin stays open, as it does when another process holds its end too.
    drop(child.stdout.take());
    let ended = tokio::time::timeout(prompt(), child.wait()).await;
    assert!(ended.is_ok(), "wharf goes on although nobody can read its answers");
    drop(stdin);
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_end_wharf_with_success() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        for handshake in [false, true] {
            let (_folder, mut pipe) = started("");
            if handshake {
                pipe.legacy("2025-11-25", json!({})).await;
            } else {
                pipe.request("ping", json!({})).await.unwrap();
            }
            e2e::pipe::signal(pipe.pid(), signal);
            let ended = pipe.wait().await;
            assert_eq!(ended.status.code(), Some(0), "{signal:?}: {}", ended.log);
            assert!(ended.took < prompt(), "{signal:?} took {:?}", ended.took);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_reads_stdin_only_if_told_to() {
    let folder = Folder::new();
    folder.plugin("echo");
    let mut pipe = Pipe::start(&folder, &["serve", "--stdio", "--listen", "127.0.0.1:0", "plugins/echo.wasm"]);
    pipe.wait_for_log("serving MCP at http://127.0.0.1:").await;
    pipe.legacy("2025-11-25", json!({})).await;
    assert_eq!(text(&pipe.call("echo_echo", json!({ "message": "both" })).await), "both");
    assert_eq!(pipe.close().await.status.code(), Some(0));

    let mut deaf = Pipe::start(&folder, &["serve", "--listen", "127.0.0.1:0", "plugins/echo.wasm"]);
    deaf.wait_for_log("serving MCP at http://127.0.0.1:").await;
    deaf.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await;
    assert_eq!(deaf.terminate().await.rest, Vec::<Value>::new());
}

/// A program that waits for the line with the address may stop wharf right after it.
#[tokio::test(flavor = "multi_thread")]
async fn sigterm_right_after_the_address_is_said_is_an_orderly_end() {
    let folder = Folder::new();
    folder.plugin("echo");
    for round in 0..20 {
        let pipe = Pipe::start(&folder, &["serve", "--listen", "127.0.0.1:0", "plugins/echo.wasm"]);
        pipe.wait_for_log("serving MCP at http://127.0.0.1:").await;
        let ended = pipe.terminate().await;
        assert_eq!(ended.status.code(), Some(0), "round {round}: {}", ended.status);
    }
}

/// A client that only tests whether wharf starts disconnects while plugins are still loading.
#[tokio::test(flavor = "multi_thread")]
async fn to_end_while_plugins_are_loaded_is_no_incident() {
    let folder = Folder::new();
    for plugin in ["hello", "echo", "showcase"] {
        folder.plugin(plugin);
    }
    for round in 0..40 {
        let plugins = ["run", "plugins/hello.wasm", "plugins/echo.wasm", "plugins/showcase.wasm"];
        let ended = Pipe::start(&folder, &plugins).close().await;
        let is_incident = |line: &&str| line.contains("panic") || line.contains("defect") || line.contains(" ERROR ");
        let incidents: Vec<&str> = ended.log.lines().filter(is_incident).collect();
        assert_eq!((ended.status.code(), incidents), (Some(0), Vec::new()), "round {round}: {}", ended.log);
    }
}
