//! Era-specific behaviour of single requests: subscriptions, questions, cancellation, sessions. The rest is in `eras`.

use std::time::Instant;

use e2e::{
    Exchange, Folder, LEGACY, MODERN, PATIENCE, Pipe, SUBSCRIPTION_KEY, Server, Value, given, json, modern_params,
    names, plugin, prompt, text,
};

/// `showcase` without a prefix and allowed to ask, and a plugin `g` that runs one call at a time.
async fn started(more: &str) -> (Folder, Server) {
    let folder = folder(more);
    let server = Server::start(&folder, &[]).await;
    (folder, server)
}

fn folder(more: &str) -> Folder {
    let folder = Folder::new();
    folder.config(&format!(
        "{more}\n[roots]\nwithin = [{:?}]\n[plugins.show]\npath = {:?}\nprefix = \"\"\n[plugins.show.grants]\nask = [\"elicitation\", \"roots\"]\n\
         roots = \"read\"\n{}",
        folder.home(),
        plugin("showcase"),
        given("g", &json!({}), "limits = { concurrency = 1, timeout_ms = 25000 }"),
    ));
    folder
}

async fn listen(server: &Server, id: Value, filter: Value) -> Exchange {
    let params = json!({ "notifications": filter });
    let mut stream = server.open_modern(id.clone(), "subscriptions/listen", params, json!({})).await;
    assert_eq!(stream.status(), 200);
    let first = stream.event().await.expect("an acknowledgement");
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    assert_eq!(first["params"]["_meta"][SUBSCRIPTION_KEY], id);
    assert_eq!(first["params"]["notifications"], filter);
    stream
}

async fn announce(server: &Server) {
    let told = server.modern("tools/call", json!({ "name": "announce" }), json!({})).await.unwrap();
    assert_eq!(text(&told), "announced");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_hears_of_what_it_named_and_of_nothing_else() {
    let (_folder, server) = started("").await;
    let mut tools = listen(&server, json!("t"), json!({ "toolsListChanged": true })).await;
    let mut prompts = listen(&server, json!(7), json!({ "promptsListChanged": true })).await;
    // The plugin announces tools, resources and prompts each time.
    for round in 0..3 {
        announce(&server).await;
        for (stream, id, kind) in [(&mut prompts, json!(7), "prompts"), (&mut tools, json!("t"), "tools")] {
            let event = stream.event().await.unwrap();
            assert_eq!(event["method"], format!("notifications/{kind}/list_changed"), "round {round}: {event}");
            assert_eq!(event["params"]["_meta"][SUBSCRIPTION_KEY], id);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_whose_client_left_is_gone() {
    let (_folder, server) = started("[http]\nlistens = 5").await;
    let files = || std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count();
    announce(&server).await;
    let before = files();
    let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["show:///fixed"] });
    for round in 0..3 {
        let mut streams = Vec::new();
        let began = Instant::now();
        while streams.len() < 4 {
            let params = json!({ "notifications": filter });
            let mut stream = server.open_modern(json!(1), "subscriptions/listen", params, json!({})).await;
            if stream.status() == 200 {
                stream.event().await.unwrap();
                streams.push(stream);
            }
            assert!(began.elapsed() < PATIENCE, "round {round}: the places of clients that left stay taken");
        }
    }
    let began = Instant::now();
    while files() > before {
        announce(&server).await;
        assert!(began.elapsed() < PATIENCE, "{} files are open, {before} were before", files());
    }
}

/// Calls `introduce`, which asks twice. Returns the status, and the result or the error.
async fn introduce(server: &Server, params: Value) -> (u16, Result<Value, Value>) {
    let mut all = json!({ "name": "introduce" });
    all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
    let able = json!({ "elicitation": {}, "roots": {} });
    let mut exchange = server.open_modern(json!(1), "tools/call", all, able).await;
    (exchange.status(), e2e::pipe::outcome(exchange.response(&json!(1)).await))
}

fn called(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_in_two_rounds() {
    let (_folder, server) = started("").await;
    let roots = json!({ "roots": [] });
    let (_, first) = introduce(&server, json!({ "inputResponses": { "wharf.roots": roots } })).await;
    let first = first.unwrap();
    assert_eq!(first["resultType"], "input_required");
    assert!(first.get("ttlMs").is_none() && first.get("cacheScope").is_none(), "{first}");
    let state = first["requestState"].as_str().expect("there is something to carry").to_owned();

    // Altered at any position, or with a suffix.
    let mut altered = vec![format!("{state}-TAMPERED"), format!("{state}A"), state[..state.len() - 1].to_owned()];
    for at in [4, state.len() / 2, state.len() - 2] {
        let mut other = state.clone();
        other.replace_range(at..=at, if &state[at..=at] == "A" { "B" } else { "A" });
        altered.push(other);
    }
    for other in altered {
        let params = json!({ "requestState": other, "inputResponses": { "first": called("Ada") } });
        let (status, error) = introduce(&server, params).await;
        assert_eq!((status, &error.unwrap_err()["code"]), (200, &json!(-32602)), "{other}");
    }
    for missing in [json!({}), json!({ "other": called("Ada") })] {
        let (status, again) = introduce(&server, json!({ "requestState": state, "inputResponses": missing })).await;
        let again = again.unwrap();
        assert_eq!((status, again["resultType"].as_str()), (200, Some("input_required")), "{missing}");
        assert_eq!(again["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["first"]);
    }
    for wrong in [json!(12345), json!("Ada"), json!({}), json!({ "action": "accept", "content": { "name": 7 } })] {
        let params = json!({ "requestState": state, "inputResponses": { "first": wrong } });
        let (status, error) = introduce(&server, params).await;
        assert_eq!((status, &error.unwrap_err()["code"]), (200, &json!(-32602)), "{wrong}");
    }
    let params = json!({ "requestState": state, "inputResponses": { "first": called("Ada"), "extra": 7 } });
    let (_, second) = introduce(&server, params).await;
    let second = second.unwrap();
    assert_eq!(second["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["last"]);
    let state = &second["requestState"];
    let params = json!({ "requestState": state, "inputResponses": { "last": called("Lovelace"), "extra": {} } });
    let (status, done) = introduce(&server, params).await;
    let done = done.unwrap();
    assert_eq!((status, done["resultType"].as_str()), (200, Some("complete")));
    assert_eq!(text(&done), "Ada Lovelace after 2 rounds");
}

/// The other methods never ask, although a call of the same plugin does.
#[tokio::test(flavor = "multi_thread")]
async fn lists_and_completions_never_ask() {
    let (_folder, server) = started("").await;
    let able = json!({ "roots": {}, "elicitation": { "form": {}, "url": {} }, "sampling": {} });
    let asked = server.modern("tools/call", json!({ "name": "every_kind" }), able.clone()).await.unwrap();
    assert!(asked["inputRequests"]["wharf.roots"].is_object(), "{asked}");
    let reference = json!({ "type": "ref/prompt", "name": "essay" });
    let completion = json!({ "ref": reference, "argument": { "name": "x", "value": "" } });
    for (method, params) in [
        ("prompts/list", json!({})),
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("completion/complete", completion),
        ("server/discover", json!({})),
    ] {
        let result = server.modern(method, params.clone(), able.clone()).await.unwrap();
        assert_eq!(result["resultType"], "complete", "{method}");
        let mut answering = params;
        answering["inputResponses"] = json!({ "wharf.roots": { "roots": [] } });
        if let Ok(result) = server.modern(method, answering, able.clone()).await {
            assert_eq!(result["resultType"], "complete", "{method} with answers");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_resource_has_the_code_of_its_era() {
    let (folder, server) = started("").await;
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-06-18", json!({})).await;
    for uri in ["nobody:///x", "show:///nothing", "show:///items/none"] {
        let params = json!({ "uri": uri });
        let mut errors = vec![(-32602, server.modern("resources/read", params.clone(), json!({})).await)];
        errors.push((-32602, pipe.modern("resources/read", params.clone(), json!({})).await));
        errors.push((-32002, pipe.request("resources/read", params.clone()).await));
        for revision in LEGACY {
            let mut session = server.legacy(revision, json!({})).await;
            errors.push((-32002, session.request("resources/read", params.clone()).await));
        }
        for (code, outcome) in errors {
            let error = outcome.unwrap_err();
            assert_eq!((&error["code"], error["data"]["uri"].as_str()), (&json!(code), Some(uri)), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_belong_to_one_revision() {
    let (_folder, server) = started("").await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    for revision in LEGACY {
        let session = server.legacy(revision, json!({})).await;
        let mut exchange = session.post(&json!([ping])).await;
        if revision == "2025-03-26" {
            assert_eq!(exchange.status(), 200);
            let body = exchange.text().await;
            assert!(body.contains("\"result\":{}"), "{body}");
        } else {
            assert_eq!((exchange.status(), &exchange.json().await["error"]["code"]), (400, &json!(-32600)));
        }
    }
    // One element with a claim invalidates the array, also in a session that accepts arrays.
    let session = server.legacy("2025-03-26", json!({})).await;
    let modern =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": modern_params(json!({}), json!({})) });
    let mut exchange = session.post(&json!([ping, modern])).await;
    assert_eq!((exchange.status(), &exchange.json().await["error"]["code"]), (400, &json!(-32600)));
    for headers in [&[][..], &[("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")]] {
        let mut exchange = server.post(headers, &json!([modern])).await;
        assert_eq!((exchange.status(), &exchange.json().await["error"]["code"]), (400, &json!(-32600)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_a_stream_until_it_is_deleted() {
    let (_folder, server) = started("").await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let mut stream = session.stream().await;
    assert_eq!((stream.status(), stream.is_stream()), (200, true));
    session.request("resources/subscribe", json!({ "uri": "show:///fixed" })).await.unwrap();
    announce(&server).await;
    while stream.event().await.expect("an update")["method"] != "notifications/resources/updated" {}
    assert!((200..300).contains(&session.delete().await.status()));
    let (_, mut used) = session.begin("ping", json!({})).await;
    assert_eq!(used.status(), 404);
    used.json().await;
    assert_eq!((session.stream().await.status(), session.delete().await.status()), (404, 404));
    while stream.event().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_serves_each_message_in_its_era() {
    let folder = folder("");
    let mut pipe = Pipe::start(&folder, &["run"]);
    let discovered = pipe.modern("server/discover", json!({}), json!({})).await.unwrap();
    assert_eq!(discovered["supportedVersions"], json!([MODERN]));
    assert_eq!(pipe.legacy("2025-03-26", json!({})).await["protocolVersion"], "2025-03-26");
    let modern = pipe.modern("tools/list", json!({}), json!({})).await.unwrap();
    let legacy = pipe.request("tools/list", json!({})).await.unwrap();
    assert_eq!((modern["resultType"].as_str(), legacy.get("resultType")), (Some("complete"), None));
    assert_eq!(names(&modern, "tools"), names(&legacy, "tools"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_says_nothing_more() {
    let folder = folder("");
    for modern in [false, true] {
        let mut pipe = Pipe::start(&folder, &["run"]);
        if !modern {
            pipe.legacy("2025-11-25", json!({})).await;
        }
        let steps = |steps: u32, token: &str| {
            let meta = json!({ "progressToken": token, "io.modelcontextprotocol/logLevel": "info" });
            json!({ "name": "g_t", "arguments": { "steps": steps, "ms": 20 }, "_meta": meta })
        };
        let (long, short) = (steps(1000, "long"), steps(20, "short"));
        let id = match modern {
            true => pipe.begin_modern("tools/call", long, json!({})).await,
            false => pipe.begin("tools/call", long).await,
        };
        pipe.notification("notifications/progress").await;
        pipe.cancel(&id).await;
        // An answer that arrives now was read after the cancellation.
        match modern {
            true => pipe.modern("server/discover", json!({}), json!({})).await.unwrap(),
            false => pipe.request("ping", json!({})).await.unwrap(),
        };
        let before = pipe.inbox().len();
        // The plugin has one place, so this call begins when the other one has stopped; it takes twenty steps.
        let began = Instant::now();
        let result = match modern {
            true => pipe.modern("tools/call", short, json!({})).await,
            false => pipe.request("tools/call", short).await,
        };
        result.unwrap();
        assert!(began.elapsed() < 2 * prompt(), "the place was taken for {:?}", began.elapsed());
        let after: Vec<&Value> = pipe.inbox().iter().skip(before).collect();
        assert!(after.iter().all(|message| message.get("id") != Some(&id)), "{after:?}");
        let progress = after.iter().filter(|message| message["method"] == "notifications/progress");
        assert!(
            progress.clone().count() == 20 && progress.clone().all(|one| one["params"]["progressToken"] == "short")
        );
        assert_eq!(after.len(), 40, "a log record and a report each: {after:?}");
        let told = pipe.inbox().len();
        assert_eq!(pipe.close().await.rest.len(), told, "nothing comes when the pipe is closed");
    }
}

/// A plugin that never yields is also stopped.
#[tokio::test(flavor = "multi_thread")]
async fn closing_the_answer_stops_the_component() {
    let (_folder, server) = started("").await;
    let mut updates = listen(&server, json!(1), json!({ "resourceSubscriptions": ["note:///x"] })).await;
    for streamed in [true, false] {
        let mut spin = json!({ "name": "g_t", "arguments": { "updated": "note:///x", "steps": 1, "spin": true } });
        if streamed {
            spin["_meta"] = json!({ "progressToken": 1 });
        }
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": modern_params(spin, json!({})) });
        let body = body.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: g_t\r\nContent-Length: {}\r\n\r\n{body}",
            server.address,
            body.len()
        );
        let mut running = server.connect(head.as_bytes()).await;
        assert_eq!(updates.event().await.unwrap()["params"]["uri"], "note:///x", "it runs");
        if streamed {
            assert!(running.read_head().await);
            assert!(running.is_stream());
        }
        drop(running);
        let began = Instant::now();
        let next = json!({ "name": "g_t", "arguments": { "text": "next" } });
        let next = server.modern("tools/call", next, json!({})).await.unwrap();
        assert_eq!(text(&next), "next", "streamed: {streamed}");
        assert!(began.elapsed() < prompt(), "it ran on for {:?}", began.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_a_legacy_answer_stops_nothing_and_it_can_be_fetched() {
    let (_folder, server) = started("").await;
    for revision in &LEGACY[1..] {
        let mut session = server.legacy(revision, json!({})).await;
        let slow = json!({ "steps": 10, "ms": 100, "text": "arrived" });
        let slow = json!({ "name": "g_t", "arguments": slow, "_meta": { "progressToken": "p" } });
        let (id, mut exchange) = session.begin("tools/call", slow).await;
        assert!(exchange.is_stream());
        assert_eq!(exchange.event().await.unwrap()["method"], "notifications/progress");
        let last = exchange.last_event_id.clone().expect("an event id");
        drop(exchange);
        let mut rest = session.resume(&last, "tools/call").await;
        assert_eq!((rest.status(), rest.is_stream()), (200, true), "{revision}");
        assert_eq!(text(&rest.response(&id).await["result"]), "arrived");
        assert_eq!(rest.event().await, None, "a stream ends with its answer");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_hosts_and_origins_are_turned_away() {
    let (_folder, server) = started("").await;
    let info = json!({ "name": "x", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let (own, port) = (format!("http://{}", server.address), server.address.port());
    let (local, with_port) = (format!("http://localhost:{port}"), format!("localhost:{port}"));
    for (host, origin, status) in [
        ("evil.example.com", "http://evil.example.com", 403),
        (&server.address.to_string(), "http://evil.example.com", 403),
        ("evil.example.com", &own, 403),
        (&server.address.to_string(), &own, 200),
        (&with_port, &local, 200),
        ("localhost", "http://localhost", 200),
        ("127.0.0.1", "http://127.0.0.1", 200),
    ] {
        let headers = [("Host", host), ("Origin", origin), ("MCP-Protocol-Version", "2025-11-25")];
        let mut exchange = server.post(&headers, &body).await;
        assert_eq!(exchange.status(), status, "{host} {origin}");
        let answer = exchange.json().await;
        assert_eq!(answer.get("error").is_some(), status == 403, "{answer}");
    }
}
