//! The access log, request ids, and the headers for browsers.

use std::path::Path;

use e2e::{Folder, Server, Value, given, json};

/// Returns the lines of the access log, once there are so many.
async fn lines(path: &Path, wanted: usize) -> Vec<Value> {
    let (sender, mut changed) = tokio::sync::mpsc::channel(1);
    let mut watcher = notify::recommended_watcher(move |_| {
        // If the channel is full, a change is already pending.
        let _ = sender.try_send(());
    })
    .unwrap();
    notify::Watcher::watch(&mut watcher, path, notify::RecursiveMode::NonRecursive).unwrap();
    loop {
        let text = std::fs::read_to_string(path).unwrap();
        if text.lines().count() >= wanted && text.ends_with('\n') {
            return text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        }
        tokio::time::timeout(e2e::PATIENCE, changed.recv()).await.expect("the lines are not there").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_leaves_a_line_without_anything_secret() {
    let folder = Folder::new();
    std::fs::create_dir(folder.join("log")).unwrap();
    folder.set_mode("log", 0o700);
    folder.config(&format!(
        "[http]\ntoken.env = \"TOKEN\"\naccess_log = \"../../log/access.jsonl\"\n{}",
        given("g", &json!({}), "")
    ));
    let path = folder.join("log/access.jsonl");
    let server = Server::start_with(&folder, &[], &[("TOKEN", "hunter22-of-tests")]).await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "e2e", "version": "1" } } });
    let bearer = ("Authorization", "Bearer hunter22-of-tests");
    let opened = server.post(&[bearer, ("X-Request-Id", "mine-1")], &body).await;
    assert_eq!(opened.header("x-request-id"), Some("mine-1"));
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    drop(opened);
    let headers = [bearer, ("Mcp-Session-Id", session.as_str()), ("X-Request-Id", "not \"good\"")];
    let call = |name: &str| {
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
                "params": { "name": name, "arguments": { "text": "swordfish" } } })
    };
    let mut called = server.post(&headers, &call("g_t")).await;
    let given = called.header("x-request-id").unwrap().to_owned();
    assert!(!given.contains('"') && given.len() < 64, "{given}");
    let answer = called.text().await;
    server.post(&headers, &call("no_such_swordfish")).await.text().await;
    server.send("POST", "/mcp?access_token=swordfish", &[], b"{}").await.text().await;
    server.send("GET", "/livez", &[], b"").await.text().await;
    let lines = lines(&path, 5).await;
    let text = std::fs::read_to_string(&path).unwrap();
    for secret in ["hunter22-of-tests", "swordfish", session.as_str()] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let [initialized, called, unknown, refused, alive] = lines.as_slice() else { panic!("{text}") };
    for (line, key, expected) in [
        (initialized, "mcp_method", json!("initialize")),
        (initialized, "request_id", json!("mine-1")),
        (initialized, "client", json!("127.0.0.1")),
        (called, "mcp_method", json!("tools/call")),
        (called, "plugin", json!("g")),
        (called, "name", json!("g_t")),
        (called, "status", json!(200)),
        (called, "method", json!("POST")),
        (called, "path", json!("/mcp")),
        (called, "version", json!("1.1")),
        (called, "bytes", json!(answer.len())),
        (called, "complete", json!(true)),
        (called, "request_id", json!(given)),
        (called, "principal", initialized["principal"].clone()),
        (unknown, "mcp_method", json!("tools/call")),
        (unknown, "name", Value::Null),
        (refused, "status", json!(401)),
        (refused, "principal", Value::Null),
        (refused, "path", json!("/mcp")),
        (alive, "path", json!("/livez")),
        (alive, "lost", Value::Null),
    ] {
        assert_eq!(line[key], expected, "{key}: {line}");
    }
    assert_eq!(initialized["principal"].as_str().map(str::len), Some(16), "{initialized}");
    assert!(called["duration_ms"].as_f64().unwrap() > 0.0 && called["time"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_is_written_down_as_well() {
    let folder = Folder::new();
    folder.config(&format!("[http]\naccess_log = \"stderr\"\n{}", given("g", &json!({}), "")));
    let server = Server::loaded(&folder).await;
    let reports =
        json!({ "name": "g_t", "arguments": { "steps": 1, "ms": 30_000 }, "_meta": { "progressToken": "p" } });
    let call = server.open_modern(json!(8), "tools/call", reports, json!({})).await;
    drop(call);
    let line = server.wait_for_log("\"complete\":false").await;
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["name"], &line["status"]), (&json!("g_t"), &json!(200)), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_listed_origins_may_send_and_read_what_they_need() {
    let folder = Folder::new();
    folder.config(&format!(
        "[http]\ntoken.env = \"TOKEN\"\nallowed_origins = [\"https://app.example\"]\n{}",
        given("g", &json!({}), "")
    ));
    let server = Server::start_with(&folder, &[], &[("TOKEN", "a-token-of-tests")]).await;
    let wanted = "authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, \
                  traceparent, x-request-id";
    for (origin, allowed) in [("https://app.example", true), ("https://other.example", false)] {
        let headers =
            [("Origin", origin), ("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", wanted)];
        // A browser sends its preflight request without the token.
        let asked = server.send("OPTIONS", "/mcp", &headers, b"").await;
        assert_eq!(asked.header("access-control-allow-origin"), allowed.then_some(origin), "{origin}");
        if allowed {
            assert_eq!(asked.status(), 200);
            assert_eq!(asked.header("access-control-allow-headers"), Some(wanted));
            let methods = asked.header("access-control-allow-methods").unwrap();
            assert!(["GET", "POST", "DELETE"].iter().all(|method| methods.contains(method)), "{methods}");
            assert_eq!(asked.header("access-control-max-age"), Some("600"));
        }
        assert!(asked.header("vary").is_some_and(|vary| vary.contains("origin")), "{:?}", asked.header("vary"));
    }
    // It may also read why it was refused, and when to retry.
    let refused = server.post(&[("Origin", "https://app.example")], &json!({})).await;
    assert_eq!((refused.status(), refused.header("access-control-allow-origin")), (401, Some("https://app.example")));
    let exposed = refused.header("access-control-expose-headers").unwrap();
    for header in ["mcp-session-id", "www-authenticate", "retry-after", "x-request-id"] {
        assert!(exposed.contains(header), "{exposed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_trusted_proxy_clients_have_their_own_addresses() {
    let folder = Folder::new();
    for name in ["log", "audit"] {
        std::fs::create_dir(folder.join(name)).unwrap();
        folder.set_mode(name, 0o700);
    }
    let config = |proxies: &str| {
        folder.config(&format!(
            "[http]\nsessions = 4\naccess_log = \"../../log/access.jsonl\"\ntrusted_proxies = [{proxies}]\n\
             [audit]\nfile = \"../../audit/audit.jsonl\"\n{}",
            given("g", &json!({}), "")
        ))
    };
    config("\"127.0.0.0/8\"");
    let server = Server::loaded(&folder).await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "e2e", "version": "1" } } });
    // The client claims to be another one; the proxy adds the address that it sees.
    let (greedy, other) = ("198.51.100.1, 203.0.113.1", "198.51.100.1, 203.0.113.2");
    let mut streams = Vec::new();
    for from in [greedy, greedy, greedy, greedy, greedy, other] {
        let opened = server.post(&[("X-Forwarded-For", from)], &body).await;
        let Some(session) = opened.header("mcp-session-id") else {
            assert_eq!((from, opened.status()), (greedy, 503), "only who has taken its share");
            continue;
        };
        let headers = [("Accept", "text/event-stream"), ("Mcp-Session-Id", session), ("X-Forwarded-For", from)];
        streams.push((from, server.send("GET", "/mcp", &headers, b"").await));
    }
    assert!(streams.iter().filter(|(from, _)| *from == greedy).count() < 4, "some are left for others");
    assert_eq!(streams.iter().filter(|(from, _)| *from == other).count(), 1);
    let call = json!({ "name": "g_t", "arguments": { "text": "called" } });
    let call =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": e2e::modern_params(call, json!({})) });
    let headers = e2e::http::modern_headers(&call);
    let mut headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.push(("X-Forwarded-For", other));
    assert_eq!(server.post(&headers, &call).await.status(), 200);
    drop(streams);
    let logged = lines(&folder.join("log/access.jsonl"), 8).await;
    let from = |address: &str| logged.iter().filter(|line| line["client"] == address).count();
    assert!(from("203.0.113.1") > 0 && from("203.0.113.2") > 0 && from("198.51.100.1") == 0, "{logged:?}");
    let audited = std::fs::read_to_string(folder.join("audit/audit.jsonl")).unwrap();
    let calls: Vec<Value> = audited.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let call = calls.iter().find(|line| line["event"] == "call").unwrap();
    assert_eq!(call["client.address"], "203.0.113.2", "{call}");
    server.terminate().await;
    // Without such a proxy, nothing that a client says counts.
    config("\"192.0.2.1\"");
    let server = Server::loaded(&folder).await;
    assert_eq!(server.post(&[("X-Forwarded-For", other)], &body).await.status(), 200);
    server.terminate().await;
    let text = std::fs::read_to_string(folder.join("log/access.jsonl")).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["client"], "127.0.0.1");
}
