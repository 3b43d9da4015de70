//! Legacy sessions over HTTP: from `initialize` to DELETE, and refusals in between.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use e2e::{Folder, LEGACY, MODERN, PATIENCE, Server, client::Client, is_error, json, names, text};

async fn started(config: &str) -> (Folder, Server) {
    let folder = Folder::new();
    folder.plugin("hello");
    folder.plugin("echo");
    folder.config(&format!(
        "{config}\n[plugins.hello]\npath = '../../plugins/hello.wasm'\n[plugins.echo]\npath = '../../plugins/echo.wasm'\n"
    ));
    let server = Server::start(&folder, &[]).await;
    (folder, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_lives_from_initialize_to_delete() {
    let (_folder, server) = started("").await;
    for revision in LEGACY {
        let mut session = server.legacy(revision, json!({})).await;
        assert_eq!(session.revision, revision);
        assert!(
            session.id.len() >= 32 && session.id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)),
            "{}",
            session.id
        );
        assert_eq!(session.request("ping", json!({})).await.unwrap(), json!({}));
        let listed = session.request("tools/list", json!({})).await.unwrap();
        assert_eq!(names(&listed, "tools"), ["hello_greet", "echo_echo"]);
        assert_eq!(text(&session.call("hello_greet", json!({ "name": "Ada" })).await), "Hello, Ada!");
        assert!(is_error(&session.call("hello_greet", json!({})).await));
        for (method, params, code) in [
            ("no/such", json!({}), -32601),
            ("server/discover", json!({}), -32601),
            ("tools/call", json!({ "name": "none" }), -32602),
            ("tools/list", json!({ "cursor": "none" }), -32602),
            ("resources/read", json!({ "uri": "note:///none" }), -32002),
            ("prompts/get", json!({ "name": "none" }), -32602),
        ] {
            assert_eq!(session.request(method, params).await.unwrap_err()["code"], code, "{revision} {method}");
        }
        let mut stream = session.stream().await;
        assert_eq!(stream.status(), 200);
        assert!(stream.is_stream());
        let deleted = session.delete().await;
        assert!((200..300).contains(&deleted.status()), "{}", deleted.status());
        assert_eq!(stream.event().await, None, "the stream ends with its session");
        let (_, gone) = session.begin("tools/list", json!({})).await;
        assert_eq!(gone.status(), 404);
        assert_eq!(session.stream().await.status(), 404);
        assert_eq!(session.delete().await.status(), 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_keep_their_type_and_sessions_their_secret() {
    let (_folder, server) = started("").await;
    let mut ids = HashSet::new();
    for _ in 0..20 {
        let session = server.legacy("2025-11-25", json!({})).await;
        for id in [json!(1), json!("1"), json!(-1), json!("")] {
            let mut exchange = session.post(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).await;
            assert_eq!(exchange.json().await, json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
        }
        assert!(ids.insert(session.id.clone()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_session_a_request_is_refused() {
    let (_folder, server) = started("").await;
    let session = server.legacy("2025-11-25", json!({})).await;
    let request = json!({ "jsonrpc": "2.0", "id": "q", "method": "tools/list" });
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let response = json!({ "jsonrpc": "2.0", "id": "wharf-1", "result": { "roots": [] } });
    let shorter = &session.id[1..];
    for (id, status) in [(None, 400), (Some("unknown"), 404), (Some(shorter), 404), (Some(""), 404)] {
        for body in [&request, &notification, &response] {
            let headers: Vec<(&str, &str)> = id.map(|id| ("Mcp-Session-Id", id)).into_iter().collect();
            let mut exchange = server.post(&headers, body).await;
            let answer = exchange.json().await;
            // An empty id is treated like a missing one.
            assert!(
                exchange.status() == status || (id == Some("") && exchange.status() == 400),
                "{id:?} {body}: {answer}"
            );
            assert_eq!(answer.get("id"), (body == &request).then_some(&json!("q")));
        }
        for method in ["GET", "DELETE"] {
            let mut headers = vec![("Accept", "text/event-stream")];
            headers.extend(id.map(|id| ("Mcp-Session-Id", id)));
            let got = server.send(method, "/mcp", &headers, b"").await.status();
            assert!(got == status || (id == Some("") && got == 400), "{method} {id:?}: {got}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_header_is_checked() {
    let (_folder, server) = started("").await;
    let session = server.legacy("2025-06-18", json!({})).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2026-07-28", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } } });
    for (body, version, status, code) in [
        (&list, Some("2025-06-18"), 200, 0),
        (&list, None, 200, 0),
        (&list, Some("nonsense"), 400, -32022),
        (&list, Some("2024-10-07"), 400, -32022),
        (&list, Some(MODERN), 400, -32602),
        (&initialize, None, 200, 0),
        (&initialize, Some("2025-11-25"), 200, 0),
        (&initialize, Some(MODERN), 400, -32020),
    ] {
        let mut headers = vec![("Mcp-Session-Id", session.id.as_str())];
        headers.extend(version.map(|version| ("MCP-Protocol-Version", version)));
        if body == &initialize {
            headers.remove(0);
        }
        let mut exchange = server.post(&headers, body).await;
        assert_eq!(exchange.status(), status, "{version:?} {body}");
        // Read without the harness's revision, since only the codes matter here.
        let answer: e2e::Value = serde_json::from_str(&exchange.text().await).unwrap();
        assert_eq!(answer["error"]["code"].as_i64().unwrap_or(0), code, "{version:?} {body}: {answer}");
        if body == &initialize && status == 200 {
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
            assert!(exchange.header("mcp-session-id").is_some());
        }
    }
}

/// LIFE-08: a session is initialised once; its header on `initialize` does not change it.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_not_initialised_twice() {
    let (_folder, server) = started("").await;
    let session = server.legacy("2025-06-18", json!({})).await;
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    let mut again = session.post(&json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": params })).await;
    assert_eq!(again.json().await["error"]["code"], -32600);
}

/// A client that opens a second stream has one stream, not two.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_stream_takes_the_place_of_the_old() {
    let (_folder, server) = started("").await;
    let session = server.legacy("2025-11-25", json!({})).await;
    let mut first = session.stream().await;
    let second = session.stream().await;
    assert_eq!(first.event().await, None);
    assert_eq!(second.status(), 200);
}

/// BASE-10 to BASE-12 and HL-02.
#[tokio::test(flavor = "multi_thread")]
async fn other_revisions_than_2025_03_26_refuse_batches() {
    let (_folder, server) = started("").await;
    let batch =
        json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }, { "jsonrpc": "2.0", "id": 2, "method": "tools/list" }]);
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let session = server.legacy(revision, json!({})).await;
        let mut exchange = session.post(&batch).await;
        let answer = exchange.json().await;
        assert_eq!((exchange.status(), &answer["error"]["code"]), (400, &json!(-32600)), "{revision}: {answer}");
    }
    let mut exchange = server.post(&[], &batch).await;
    assert_eq!((exchange.status(), &exchange.json().await["error"]["code"]), (400, &json!(-32600)));
}

/// BASE-10 and HL-02: clients of this revision may send them.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_2025_03_26_take_batches() {
    let (_folder, server) = started("").await;
    let session = server.legacy("2025-03-26", json!({})).await;
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } },
        { "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "echo_echo", "arguments": { "message": "b" } } },
    ]);
    let mut exchange = session.post(&batch).await;
    let is_stream = exchange.is_stream();
    let text = exchange.text().await;
    assert_eq!(exchange.status(), 200, "{text}");
    // The answer is one array, or a stream with an event for each.
    let answers: Vec<e2e::Value> = if is_stream {
        text.lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    } else {
        serde_json::from_str(&text).unwrap()
    };
    let of = |id: i64| {
        answers.iter().find(|answer| answer["id"] == id).unwrap_or_else(|| panic!("no answer to {id}: {text}"))
    };
    assert_eq!(of(1)["result"], json!({}));
    assert_eq!(of(2)["result"]["content"][0]["text"], "b");
    let notifications =
        json!([{ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } }]);
    assert_eq!(session.post(&notifications).await.status(), 202, "only notifications: accepted");
    let initialize = json!([{ "jsonrpc": "2.0", "id": 5, "method": "initialize",
        "params": { "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } } }]);
    assert_eq!(session.post(&initialize).await.status(), 400, "a handshake is never part of a batch");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_only_opened_makes_room() {
    let (_folder, server) = started("[http]\nsessions = 2").await;
    let mut first = server.legacy("2025-11-25", json!({})).await;
    let mut second = server.legacy("2025-11-25", json!({})).await;
    first.request("ping", json!({})).await.unwrap();
    let mut third = server.legacy("2025-11-25", json!({})).await;
    // It has left memory, and its id makes it again, in the place of the third one.
    second.request("ping", json!({})).await.unwrap();
    first.request("ping", json!({})).await.unwrap();
    third.request("ping", json!({})).await.unwrap();
    // Now both have an open stream, and are not ended.
    let streams = [first.stream().await, third.stream().await];
    assert!(streams.iter().all(|stream| stream.status() == 200));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "n", "version": "1" } } });
    let refused = server.post(&[], &body).await;
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("1")));
    server.wait_for_log("uses its share of them").await;
    drop(streams);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_nobody_uses_leaves_memory_and_one_that_listens_does_not() {
    let (_folder, server) = started("[http]\nsessions = 2\nsession_idle_ms = 400").await;
    let mut listens = server.legacy("2025-11-25", json!({})).await;
    listens.request("ping", json!({})).await.unwrap();
    let stream = listens.stream().await;
    // Each belongs to another client, which keeps it against a third client unless it has been idle for long.
    let (second, third) = (Client::at(&server, 2), Client::at(&server, 3));
    let silent = second.initialize().await.ok().expect("a session");
    let pinged = async || {
        let mut pinged = second.in_session(&silent, 2, "ping", json!({})).await;
        assert!(pinged.read_head().await);
        pinged.status()
    };
    assert_eq!(pinged().await, 200);
    // The session is not used any more; that it leaves is observed through its free place.
    let began = Instant::now();
    while third.initialize().await.is_err() {
        assert!(began.elapsed() < PATIENCE, "a session that nobody uses stays");
        tokio::task::yield_now().await;
    }
    assert!(began.elapsed() > Duration::from_millis(200), "it left too soon");
    assert_eq!(pinged().await, 200, "its id makes it again");
    listens.request("ping", json!({})).await.expect("who listens stays");
    drop(stream);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_of_one_session_run_at_once() {
    let (_folder, server) = started("").await;
    let session = server.legacy("2025-06-18", json!({})).await;
    let posts = (0..64).map(|round| {
        let (server, id) = (&server, session.id.clone());
        async move {
            let params = json!({ "name": "echo_echo", "arguments": { "message": round.to_string() } });
            let body = json!({ "jsonrpc": "2.0", "id": round, "method": "tools/call", "params": params });
            let headers = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", "2025-06-18")];
            let mut exchange = server.post(&headers, &body).await;
            let answer: e2e::Value = serde_json::from_str(&exchange.text().await).unwrap();
            assert_eq!(answer["result"]["content"][0]["text"], round.to_string());
        }
    });
    // Polled together, so that all requests are sent before the first answer is awaited.
    let mut posts: Vec<_> = posts.map(Box::pin).collect();
    let mut open: Vec<bool> = vec![true; posts.len()];
    std::future::poll_fn(|cx| {
        for (post, open) in posts.iter_mut().zip(&mut open) {
            if *open && post.as_mut().poll(cx).is_ready() {
                *open = false;
            }
        }
        if open.iter().any(|open| *open) { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
}
