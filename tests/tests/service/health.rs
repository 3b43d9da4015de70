//! The probes of the service.

use e2e::{Folder, Server, Value, given, json};

async fn ready(server: &Server, headers: &[(&str, &str)]) -> (u16, Value) {
    let mut exchange = server.send("GET", "/readyz", headers, b"").await;
    assert_eq!(exchange.header("cache-control"), Some("no-store"));
    let text = exchange.text().await;
    (exchange.status(), serde_json::from_str(&text).unwrap())
}

fn lacks(what: &[&str]) -> (u16, Value) {
    let status = if what.is_empty() { 200 } else { 503 };
    (status, json!({ "ready": what.is_empty(), "missing": what }))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_ready_when_all_plugins_were_tried_whoever_asks() {
    let folder = Folder::new();
    folder.write("plugins/broken.wasm", b"nothing");
    folder.config(&format!(
        "[http]\ntoken.env = \"TOKEN\"\n{}\n[plugins.broken]\npath = \"../../plugins/broken.wasm\"\n",
        given("g", &json!({}), "")
    ));
    let server = Server::start_with(&folder, &[], &[("TOKEN", "a-token-of-tests")]).await;
    server.wait_for_log("broken").await;
    // Lists wait for the first load.
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "e2e", "version": "1" } } });
    let opened = server.post(&[("Authorization", "Bearer a-token-of-tests")], &list).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let headers = [("Authorization", "Bearer a-token-of-tests"), ("Mcp-Session-Id", session.as_str())];
    assert_eq!(server.post(&headers, &list).await.status(), 200);
    // Probes have no token, and use any address as the host.
    for host in ["localhost", "10.1.2.3:7300", "wharf.default.svc"] {
        assert_eq!(ready(&server, &[("Host", host)]).await, lacks(&[]), "{host}");
        let mut alive = server.send("GET", "/livez", &[("Host", host)], b"").await;
        assert_eq!((alive.status(), alive.text().await), (200, "{\"alive\":true}".into()), "{host}");
        let mut about = server.send("GET", "/", &[("Host", host)], b"").await;
        assert_eq!(about.status(), 200);
        assert!(about.text().await.contains("MCP clients connect to <this address>/mcp"), "for people");
    }
    assert_eq!(server.send("POST", "/readyz", &[], b"").await.status(), 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_keys_of_an_issuer_it_is_not_ready_until_they_are_there() {
    let folder = Folder::new();
    folder.config(&format!(
        "[http]\npublic_url = \"https://mcp.example.com/mcp\"\n[auth]\n[[auth.issuers]]\nurl = \"https://id.example\"\n\
         jwks_file = \"keys.json\"\n[roles.everybody]\nwhen = \"anyone\"\nplugins = [\"*\"]\n{}",
        given("g", &json!({}), "")
    ));
    let server = Server::start(&folder, &[]).await;
    server.wait_for_log("cannot be fetched").await;
    let (status, said) = ready(&server, &[]).await;
    assert_eq!(status, 503);
    assert!(said["missing"].as_array().unwrap().contains(&json!("keys")), "{said}");
    assert!(!said.to_string().contains("id.example"), "strangers learn no names: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_log_that_cannot_be_written_makes_it_unready_if_calls_are_refused() {
    for (on_failure, expected) in [("refuse", lacks(&["audit"])), ("continue", lacks(&[]))] {
        let folder = Folder::new();
        folder.config(&format!(
            "[audit]\nfile = \"../../audit/audit.jsonl\"\narguments = \"full\"\non_failure = \"{on_failure}\"\n{}",
            given("g", &json!({}), "")
        ));
        // No file may grow beyond so many blocks of 512 bytes.
        let arguments = ["serve", "--listen", "127.0.0.1:0"];
        let server = Server::of(folder.limited("ulimit -f 300", &arguments, &[]), e2e::http::Over::Tcp).await;
        let mut calls = 0;
        while !server.log().contains("audit.jsonl cannot be written") {
            let call = json!({ "name": "g_t", "arguments": { "text": "x".repeat(40_000) } });
            server.modern("tools/call", call, json!({})).await.ok();
            calls += 1;
            assert!(calls < 20, "{}", server.log());
        }
        assert_eq!(ready(&server, &[]).await, expected, "{on_failure}");
    }
}
