//! Common defects of servers of the modern revision: recognising requests, choosing the era, and the time of messages.

use std::time::{Duration, Instant};

use e2e::{
    CAPABILITIES_KEY, Exchange, Folder, MODERN, Pipe, SUBSCRIPTION_KEY, Server, VERSION_KEY, Value, given, json,
    modern_params, names, plugin, prompt, scaled, text,
};

const VERSION: (&str, &str) = ("MCP-Protocol-Version", MODERN);
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// `showcase` without a prefix, and a plugin `g` with the config of the test.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.config(&format!(
        "[plugins.show]\npath = {:?}\nprefix = \"\"\n{}",
        plugin("showcase"),
        given("g", &json!({}), "limits = { concurrency = 1, timeout_ms = 25000 }")
    ));
    folder
}

async fn started() -> (Folder, Server) {
    let folder = folder();
    let server = Server::start(&folder, &[]).await;
    (folder, server)
}

/// A plugin that takes five seconds for its lists is not waited for any longer.
fn slow() -> Folder {
    let folder = Folder::new();
    folder.config(&format!(
        "[plugins.echo]\npath = {:?}\n[plugins.slow]\npath = {:?}\nconfig = {{ mode = \"sleep\" }}\n",
        plugin("echo"),
        plugin("badlist")
    ));
    folder
}

async fn all(exchange: &mut Exchange) -> Vec<Value> {
    let mut messages = Vec::new();
    while let Some(message) = exchange.message().await {
        messages.push(message);
    }
    messages
}

/// The example in the release post has only this member.
#[tokio::test(flavor = "multi_thread")]
async fn client_info_alone_makes_no_modern_request() {
    let (folder, server) = started().await;
    let params = json!({ "_meta": { CLIENT: { "name": "desk", "version": "4" } } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
    let (status, code, answer) = server.probe(&[VERSION, ("Mcp-Method", "tools/list")], &body).await;
    assert_eq!((status, code), (400, -32602), "{answer}");
    let mut pipe = Pipe::start(&folder, &["run"]);
    for method in ["tools/list", "server/discover"] {
        let error = pipe.request(method, params.clone()).await.unwrap_err();
        assert!(error["code"] == -32602 || error["code"] == -32600, "{method}: {error}");
    }
    // A plugin's questions have the format of the specification, not that of the post.
    let folder = Folder::new();
    folder.config(&given("g", &json!({}), ""));
    let server = Server::start(&folder, &[]).await;
    let ask = json!({ "name": "g_t", "arguments": { "ask": [["a"]] } });
    let asked = server.modern("tools/call", ask, json!({ "elicitation": {} })).await.unwrap();
    assert_eq!(asked["resultType"], "input_required");
    let question = asked["inputRequests"]["a"].as_object().unwrap();
    assert_eq!(question.keys().collect::<Vec<_>>(), ["method", "params"]);
    assert_eq!(question["method"], "elicitation/create");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_result_says_what_it_is() {
    let (folder, server) = started().await;
    let mut pipe = Pipe::start(&folder, &["run"]);
    let completion =
        json!({ "ref": { "type": "ref/prompt", "name": "review" }, "argument": { "name": "language", "value": "" } });
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "sum", "arguments": { "n": 3 } })),
        ("tools/call", json!({ "name": "fail" })),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "show:///fixed" })),
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "conversation" })),
        ("completion/complete", completion),
    ] {
        for result in [
            server.modern(method, params.clone(), json!({})).await.unwrap(),
            pipe.modern(method, params.clone(), json!({})).await.unwrap(),
        ] {
            assert_eq!(result["resultType"], "complete", "{method}: {result}");
        }
    }
    let params = json!({ "notifications": { "toolsListChanged": true } });
    let mut stream = server.open_modern(json!("l"), "subscriptions/listen", params, json!({})).await;
    stream.event().await.unwrap();
    assert_eq!(server.terminate().await.0.code(), Some(0));
    let last = stream.event().await.expect("the result of the subscription");
    assert_eq!(last["result"]["resultType"], "complete", "{last}");
}

/// An error that occurs while a call runs still gets the right status, if no message was sent before.
#[tokio::test(flavor = "multi_thread")]
async fn the_status_is_not_given_away_early() {
    let (_folder, server) = started().await;
    let ask = json!({ "name": "g_t", "arguments": { "steps": 2, "ask": [["a"]] } });
    let mut quiet = server.open_modern(json!(1), "tools/call", ask.clone(), json!({})).await;
    assert_eq!((quiet.status(), quiet.is_stream()), (400, false), "nobody asked for progress or logs");
    assert_eq!(quiet.json().await["error"]["code"], -32021);
    let mut told = ask;
    told["_meta"] = json!({ "progressToken": 1 });
    let mut told = server.open_modern(json!(1), "tools/call", told, json!({})).await;
    assert_eq!((told.status(), told.is_stream()), (200, true));
    let messages = all(&mut told).await;
    let error = &messages.last().unwrap()["error"];
    assert_eq!(error["code"], -32021, "{messages:?}");
    assert_eq!(error["data"]["requiredCapabilities"], json!({ "elicitation": { "form": {} } }));
}

#[tokio::test(flavor = "multi_thread")]
async fn early_and_unknown_requests_are_answered_at_once() {
    let folder = slow();
    let mut pipe = Pipe::start(&folder, &["run"]);
    let began = Instant::now();
    for (method, params) in [
        ("tools/list", json!({})),
        ("no/such", json!({})),
        ("server/discover", json!({})),
        ("subscriptions/listen", json!({ "notifications": {} })),
        ("resources/subscribe", json!({ "uri": "a:b" })),
        ("tasks/get", json!({ "taskId": "t" })),
    ] {
        let error = pipe.request(method, params).await.expect_err(method);
        assert!(error["code"] == -32600 || error["code"] == -32602, "{method}: {error}");
    }
    for method in ["no/such", "ping", "initialize", "tasks/list"] {
        assert_eq!(pipe.modern(method, json!({}), json!({})).await.unwrap_err()["code"], -32601, "{method}");
    }
    assert_eq!(pipe.request("ping", json!({})).await.unwrap(), json!({}));
    pipe.legacy("2025-11-25", json!({})).await;
    assert_eq!(pipe.request("no/such", json!({})).await.unwrap_err()["code"], -32601);
    assert!(began.elapsed() < scaled(Duration::from_secs(3)), "took {:?}", began.elapsed());
    assert!(!pipe.log().contains("5000 ms"), "the plugins were still loading:\n{}", pipe.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_started_for_a_probe_harms_nothing() {
    let folder = slow();
    let mut probe = Pipe::start(&folder, &["run"]);
    let mut used = Pipe::start(&folder, &["run"]);
    for pipe in [&mut probe, &mut used] {
        let began = Instant::now();
        pipe.modern("server/discover", json!({}), json!({})).await.unwrap();
        assert!(began.elapsed() < scaled(Duration::from_secs(3)), "discovery took {:?}", began.elapsed());
    }
    e2e::pipe::signal(probe.pid(), rustix::process::Signal::KILL);
    probe.wait().await;
    used.legacy("2025-11-25", json!({})).await;
    assert_eq!(text(&used.call("echo_echo", json!({ "message": "m" })).await), "m");
    // A third process finds no traces of them.
    let mut third = Pipe::start(&folder, &["run"]);
    third.modern("server/discover", json!({}), json!({})).await.unwrap();
    assert!(third.close().await.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_is_the_claim_and_no_other() {
    let (folder, server) = started().await;
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    for meta in [
        json!({ "io.modelcontextprotocol/related-task": { "taskId": "t" } }),
        json!({ "progressToken": 1, "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" }),
        json!({ CAPABILITIES_KEY: {}, CLIENT: { "name": "x", "version": "1" } }),
        json!({ "io.modelcontextprotocol/logLevel": "debug", "io.modelcontextprotocol/protocolversion": MODERN }),
    ] {
        let params = json!({ "_meta": meta });
        for result in [
            pipe.request("tools/list", params.clone()).await.unwrap(),
            session.request("tools/list", params.clone()).await.unwrap(),
        ] {
            assert_eq!(result.get("resultType"), None, "{meta} is legacy");
        }
        // Without a session, such a request is refused.
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
        assert_eq!(server.probe(&[], &body).await.0, 400, "{meta}");
    }
    // The key alone is a claim, whatever its value.
    for version in [json!(MODERN), json!(null), json!(7), json!("2025-11-25")] {
        let params = json!({ "_meta": { VERSION_KEY: version } });
        let error = pipe.request("ping", params).await.unwrap_err();
        assert!([-32602, -32022].iter().any(|code| error["code"] == *code), "{version}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_logs_says_so() {
    let (_folder, server) = started().await;
    let discovered = server.modern("server/discover", json!({}), json!({})).await.unwrap();
    assert_eq!(discovered["capabilities"]["logging"], json!({}), "{discovered}");
    for revision in e2e::LEGACY {
        let session = server.legacy(revision, json!({})).await;
        assert_eq!(session.initialized["capabilities"]["logging"], json!({}), "{revision}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_needs_a_token_and_ends_before_the_answer() {
    let (_folder, server) = started().await;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let mut listening = server.open_modern(json!(1), "subscriptions/listen", filter, json!({})).await;
    listening.event().await.unwrap();
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let standing = session.stream().await;
    session.request("logging/setLevel", json!({ "level": "emergency" })).await.unwrap();
    for (token, steps) in [(None, 0), (Some(json!("1")), 3), (Some(json!(1)), 3), (Some(json!("")), 3)] {
        let mut params = json!({ "name": "g_t", "arguments": { "steps": 3, "text": "done" } });
        if let Some(token) = &token {
            params["_meta"] = json!({ "progressToken": token });
        }
        let (_, mut legacy) = session.begin("tools/call", params.clone()).await;
        for exchange in [&mut server.open_modern(json!(2), "tools/call", params, json!({})).await, &mut legacy] {
            let messages = all(exchange).await;
            let (last, reports) = messages.split_last().unwrap();
            assert_eq!(text(&last["result"]), "done", "{token:?}");
            assert_eq!(reports.len(), steps, "{token:?}: {reports:?}");
            for (at, report) in reports.iter().enumerate() {
                assert_eq!(report["method"], "notifications/progress");
                assert_eq!(Some(&report["params"]["progressToken"]), token.as_ref(), "with its type");
                assert_eq!(report["params"]["progress"], at + 1);
            }
        }
    }
    // Subscribers to other notifications got none of these.
    server.modern("tools/call", json!({ "name": "announce" }), json!({})).await.unwrap();
    let next = listening.event().await.unwrap();
    assert_eq!(next["method"], "notifications/tools/list_changed", "{next}");
    let mut standing = standing;
    let next = standing.event().await.unwrap();
    assert!(next["method"].as_str().unwrap().ends_with("list_changed"), "{next}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_overtakes_the_acknowledgement() {
    let folder = folder();
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.modern("tools/list", json!({}), json!({})).await.unwrap();
    for round in 0..100 {
        let id = json!(format!("l{round}"));
        let filter = json!({ "notifications": { "resourceSubscriptions": ["note:///x"] } });
        let update = json!({ "name": "g_t", "arguments": { "updated": "note:///x" } });
        let line = |id: &Value, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": modern_params(params, json!({})) });
        // In one write, so that the event occurs while the acknowledgement is written; it may be too early to be delivered.
        let lines = format!(
            "{}\n{}\n",
            line(&id, "subscriptions/listen", filter),
            line(&json!(round), "tools/call", update.clone())
        );
        pipe.send_raw(lines.as_bytes()).await;
        let tagged = |message: &Value| message["params"]["_meta"][SUBSCRIPTION_KEY] == id;
        let first = pipe.find("the acknowledgement", tagged).await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "round {round}");
        pipe.answer(&json!(round)).await.unwrap();
        pipe.modern("tools/call", update, json!({})).await.unwrap();
        let second = pipe.find("the event", tagged).await;
        assert_eq!(second["method"], "notifications/resources/updated", "round {round}");
        pipe.cancel(&id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_is_answered_whatever_is_wrong_with_the_plugins() {
    // While they load, if none of them loads, and if one uses up its limit.
    let loading = slow();
    let broken = Folder::new();
    broken.write("broken.wasm", "no plugin");
    broken.config("[plugins.broken]\npath = \"../../broken.wasm\"\n");
    let busy = Folder::new();
    let limits = "limits = { concurrency = 1, timeout_ms = 25000 }";
    busy.config(&format!("[limits]\ntotal_concurrency = 1\n{}", given("g", &json!({}), limits)));
    for (what, folder) in [("loading", loading), ("broken", broken), ("busy", busy)] {
        let server = Server::start(&folder, &[]).await;
        let mut held = None;
        if what == "busy" {
            let spin =
                json!({ "name": "g_t", "arguments": { "steps": 1, "spin": true }, "_meta": { "progressToken": 1 } });
            let mut call = server.open_modern(json!(1), "tools/call", spin, json!({})).await;
            call.event().await.unwrap();
            held = Some(call);
        }
        let began = Instant::now();
        let mut exchange = server.open_modern(json!(1), "server/discover", json!({}), json!({})).await;
        assert_eq!(exchange.status(), 200, "{what}");
        assert_eq!(exchange.json().await["result"]["supportedVersions"], json!([MODERN]), "{what}");
        let session = server.legacy("2025-11-25", json!({})).await;
        assert!(session.initialized["capabilities"]["tools"].is_object(), "{what}");
        assert!(began.elapsed() < scaled(Duration::from_secs(3)), "{what}: {:?}", began.elapsed());
        drop(held);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_asks_nothing_of_the_client() {
    let (_folder, server) = started().await;
    for capabilities in [
        json!({}),
        json!({ "elicitation": {} }),
        json!({ "unheard-of": { "x": 1 }, "extensions": { "com.example/x": {} } }),
        json!({ "roots": { "listChanged": true }, "sampling": { "tools": {} }, "tasks": {} }),
    ] {
        let params = modern_params(json!({}), capabilities.clone());
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": params });
        for headers in [
            vec![VERSION, ("Mcp-Method", "server/discover")],
            vec![VERSION, ("Mcp-Method", "server/discover"), ("Mcp-Name", "x"), ("Mcp-Param-Y", "=?base64?!?=")],
        ] {
            let (status, code, answer) = server.probe(&headers, &body).await;
            assert_eq!((status, code), (200, 0), "{capabilities} {headers:?}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_add_to_a_capability_is_ignored() {
    let folder = Folder::new();
    folder.config(&format!(
        "[plugins.show]\npath = {:?}\nprefix = \"\"\n[plugins.show.grants]\nask = [\"roots\"]\n",
        plugin("showcase")
    ));
    let server = Server::start(&folder, &[]).await;
    for roots in [json!({}), json!({ "listChanged": true }), json!({ "listChanged": false, "more": [] })] {
        let call = json!({ "name": "client_roots" });
        let asked = server.modern("tools/call", call, json!({ "roots": roots })).await.unwrap();
        assert_eq!(asked["inputRequests"]["roots"]["method"], "roots/list", "{roots}");
    }
    assert_eq!(names(&server.modern("prompts/list", json!({}), json!({ "x": 1 })).await.unwrap(), "prompts").len(), 3);
}

/// The same over modern HTTP is tested by `closing_the_answer_stops_the_component`.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_never_yields_is_stopped_by_a_cancellation() {
    let (folder, server) = started().await;
    let spin = json!({ "name": "g_t", "arguments": { "steps": 1, "spin": true }, "_meta": { "progressToken": 1 } });
    let next = json!({ "name": "g_t", "arguments": { "text": "next" } });
    for modern in [false, true] {
        let mut pipe = Pipe::start(&folder, &["run"]);
        let id = if modern {
            pipe.begin_modern("tools/call", spin.clone(), json!({})).await
        } else {
            pipe.legacy("2025-11-25", json!({})).await;
            pipe.begin("tools/call", spin.clone()).await
        };
        pipe.notification("notifications/progress").await;
        let began = Instant::now();
        pipe.cancel(&id).await;
        // The plugin has one place.
        assert_eq!(text(&pipe.modern("tools/call", next.clone(), json!({})).await.unwrap()), "next");
        assert!(began.elapsed() < prompt(), "modern: {modern}, stopped after {:?}", began.elapsed());
    }
    let mut session = server.legacy("2025-06-18", json!({})).await;
    let (id, mut exchange) = session.begin("tools/call", spin).await;
    exchange.event().await.unwrap();
    let began = Instant::now();
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    assert_eq!(session.post(&cancel).await.status(), 202);
    assert_eq!(text(&session.request("tools/call", next).await.unwrap()), "next");
    assert!(began.elapsed() < prompt(), "stopped after {:?}", began.elapsed());
    assert_eq!(exchange.event().await.filter(|message| message.get("id").is_some()), None, "nobody is answered");
}
