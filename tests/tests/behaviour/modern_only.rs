//! With `legacy = false`, only the modern revision is served, and older clients get an error that they understand.

use e2e::{Folder, LEGACY, MODERN, Pipe, Server, Value, json, modern_params, plugin, text};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.config(&format!("[protocol]\nlegacy = false\n[plugins.echo]\npath = {:?}\n", plugin("echo")));
    folder
}

fn initialize(version: &str) -> Value {
    let info = json!({ "name": "x", "version": "1" });
    json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": info })
}

/// VER-08.
fn names_versions(error: &Value, offered: &str) {
    assert_eq!(error["code"], -32022, "{error}");
    assert_eq!(error["data"], json!({ "supported": [MODERN], "requested": offered }), "{error}");
}

async fn modern_works(server: &Server) {
    let call = json!({ "name": "echo_echo", "arguments": { "message": "m" } });
    assert_eq!(text(&server.modern("tools/call", call, json!({})).await.unwrap()), "m");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_the_handshake_names_the_modern_version() {
    let folder = folder();
    let server = Server::start(&folder, &[]).await;
    for offered in LEGACY.iter().chain(&[MODERN, "2024-10-07"]) {
        let body = json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": initialize(offered) });
        let mut exchange = server.post(&[], &body).await;
        assert_eq!((exchange.status(), exchange.header("mcp-session-id")), (400, None), "{offered}");
        // Read without validation, since the error belongs to another revision than the request.
        let answer: Value = exchange.text().await.parse().unwrap();
        assert_eq!(answer["id"], "i");
        names_versions(&answer["error"], offered);
    }
    modern_works(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_there_are_no_sessions() {
    let folder = folder();
    let server = Server::start(&folder, &[]).await;
    let stream = ("Accept", "text/event-stream");
    for headers in [vec![stream], vec![stream, ("Mcp-Session-Id", "none")], vec![stream, ("Last-Event-ID", "1")]] {
        for method in ["GET", "DELETE"] {
            let exchange = server.send(method, "/mcp", &headers, b"").await;
            assert_eq!(exchange.status(), 405, "{method} {headers:?}");
            assert!(exchange.header("allow").is_some_and(|allowed| allowed.contains("POST")), "{method}");
        }
    }
    for method in ["notifications/initialized", "notifications/cancelled", "notifications/no/such"] {
        let body = json!({ "jsonrpc": "2.0", "method": method, "params": { "requestId": 1 } });
        let mut exchange = server.post(&[], &body).await;
        assert_eq!((exchange.status(), exchange.text().await.as_str()), (202, ""), "{method}");
    }
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let list =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": modern_params(json!({}), json!({})) });
    for body in [json!([ping]), json!([list]), json!([]), json!({ "jsonrpc": "2.0", "id": 1, "result": {} })] {
        let mut exchange = server.post(&[], &body).await;
        assert_eq!((exchange.status(), &exchange.json().await["error"]["code"]), (400, &json!(-32600)), "{body}");
    }
    // Without a claim and a session: a client of an older revision gets an error body, not only a status.
    for version in ["2025-11-25", "2025-03-26"] {
        let headers = [("MCP-Protocol-Version", version), ("Mcp-Session-Id", "none")];
        let mut exchange = server.post(&headers, &ping).await;
        assert_eq!(exchange.status(), 400, "{version}");
        let answer: Value = exchange.text().await.parse().unwrap();
        assert!(answer["id"] == 1 && answer["error"]["code"].is_i64(), "{answer}");
    }
    modern_works(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_pipe_the_handshake_names_the_modern_version() {
    let folder = folder();
    let mut pipe = Pipe::start(&folder, &["run"]);
    for offered in LEGACY {
        let line = json!({ "jsonrpc": "2.0", "id": offered, "method": "initialize", "params": initialize(offered) });
        pipe.send(line).await;
        names_versions(&pipe.answer(&json!(offered)).await.unwrap_err(), offered);
    }
    pipe.notify("notifications/initialized", json!({})).await;
    for method in ["tools/list", "ping", "no/such", "server/discover"] {
        let error = pipe.request(method, json!({})).await.unwrap_err();
        assert!([-32600, -32601, -32602].iter().any(|code| error["code"] == *code), "{method}: {error}");
    }
    assert_eq!(pipe.modern("initialize", initialize(MODERN), json!({})).await.unwrap_err()["code"], -32601);
    let call = json!({ "name": "echo_echo", "arguments": { "message": "m" } });
    assert_eq!(text(&pipe.modern("tools/call", call, json!({})).await.unwrap()), "m");
    assert!(pipe.close().await.status.success());
}
