//! Era-specific behaviour of single requests: discovery, versions, headers and capabilities. The rest is in `eras_streams`.

use e2e::{
    CAPABILITIES_KEY, Folder, MODERN, Pipe, SERVER_INFO_KEY, Server, VERSION_KEY, Value, given, json, modern_params,
    plugin, text,
};

const VERSION: (&str, &str) = ("MCP-Protocol-Version", MODERN);

fn folder() -> Folder {
    let folder = Folder::new();
    folder.config(&format!(
        "[plugins.echo]\npath = {:?}\n[plugins.show]\npath = {:?}\nprefix = \"\"\n{}",
        plugin("echo"),
        plugin("showcase"),
        given("g", &json!({ "sampling": true }), ""),
    ));
    folder
}

async fn started() -> (Folder, Server) {
    let folder = folder();
    let server = Server::start(&folder, &[]).await;
    (folder, server)
}

fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": "r-1", "method": method, "params": params })
}

fn claiming(version: &str) -> Value {
    json!({ "_meta": { VERSION_KEY: version, CAPABILITIES_KEY: {} } })
}

fn initialize(version: &str) -> Value {
    let info = json!({ "name": "x", "version": "1" });
    json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": info })
}

fn call(name: &str, arguments: Value) -> Value {
    request("tools/call", modern_params(json!({ "name": name, "arguments": arguments }), json!({})))
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_describes_the_server() {
    let (_folder, server) = started().await;
    let mut exchange = server.open_modern(json!("d"), "server/discover", json!({}), json!({})).await;
    assert_eq!(exchange.status(), 200);
    assert_eq!(exchange.header("mcp-session-id"), None);
    let answer = exchange.json().await;
    assert_eq!(answer["id"], "d");
    let result = &answer["result"];
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["supportedVersions"], json!([MODERN]));
    for (capability, flags) in [
        ("tools", json!({ "listChanged": true })),
        ("prompts", json!({ "listChanged": true })),
        ("resources", json!({ "listChanged": true, "subscribe": true })),
        ("completions", json!({})),
    ] {
        assert_eq!(result["capabilities"][capability], flags, "{capability}: {result}");
    }
    assert!(result["capabilities"].get("tasks").is_none(), "tasks are an extension now: {result}");
    assert!(result["ttlMs"].is_u64(), "{result}");
    assert!(result["cacheScope"] == "private" || result["cacheScope"] == "public", "{result}");
    let info = &result["_meta"][SERVER_INFO_KEY];
    assert!(info["name"] == "wharf" && info["version"].is_string(), "{result}");
    assert!(result.get("serverInfo").is_none(), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_needs_no_client_info() {
    let (_folder, server) = started().await;
    let headers = [VERSION, ("Mcp-Method", "server/discover")];
    let (status, code, without) = server.probe(&headers, &request("server/discover", claiming(MODERN))).await;
    assert_eq!((status, code), (200, 0), "{without}");
    let mut params = claiming(MODERN);
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "desk", "version": "4" });
    let (status, code, with) = server.probe(&headers, &request("server/discover", params)).await;
    assert_eq!((status, code), (200, 0), "{with}");
    assert_eq!(with, without, "who asks changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_header_without_meta_is_no_legacy_request() {
    let (_folder, server) = started().await;
    // A session that could serve the request has no influence.
    let session = server.legacy("2025-11-25", json!({})).await;
    let headers = [VERSION, ("Mcp-Method", "tools/list"), ("Mcp-Session-Id", session.id.as_str())];
    let mut bodies = [json!({}), json!({ "_meta": {} }), json!({ "_meta": { CAPABILITIES_KEY: {} } })]
        .map(|params| request("tools/list", params))
        .to_vec();
    bodies.push(json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" }));
    for body in bodies {
        for headers in [&headers[..2], &headers] {
            let (status, code, answer) = server.probe(headers, &body).await;
            assert_eq!((status, code), (400, -32602), "{body}: {answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains(VERSION_KEY) || message.contains("_meta"), "it names what is missing: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_unlike_the_header_is_a_mismatch_even_if_nonsense() {
    let (_folder, server) = started().await;
    let headers = [VERSION, ("Mcp-Method", "server/discover")];
    let (status, code, answer) = server.probe(&headers, &request("server/discover", claiming("v999.0.0"))).await;
    assert_eq!((status, code), (400, -32020), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_version_is_told_the_known_ones() {
    let (_folder, server) = started().await;
    let discovered = server.modern("server/discover", json!({}), json!({})).await.unwrap();
    let known = discovered["supportedVersions"].as_array().unwrap();
    let headers = [("MCP-Protocol-Version", "v999.0.0"), ("Mcp-Method", "server/discover")];
    let (status, code, answer) = server.probe(&headers, &request("server/discover", claiming("v999.0.0"))).await;
    assert_eq!((status, code), (400, -32022), "{answer}");
    let data = &answer["error"]["data"];
    assert_eq!(data["requested"], "v999.0.0");
    let supported = data["supported"].as_array().unwrap();
    assert!(!supported.is_empty() && supported.iter().all(|version| known.contains(version)), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_methods_are_not_found() {
    let (_folder, server) = started().await;
    for (method, params) in [
        ("ping", json!({})),
        ("initialize", initialize(MODERN)),
        ("initialize", initialize("2025-11-25")),
        ("logging/setLevel", json!({ "level": "info" })),
        ("resources/subscribe", json!({ "uri": "show:///fixed" })),
        ("resources/unsubscribe", json!({ "uri": "show:///fixed" })),
    ] {
        let body = request(method, modern_params(params.clone(), json!({})));
        let (status, code, answer) = server.probe(&[VERSION, ("Mcp-Method", method)], &body).await;
        assert_eq!((status, code), (404, -32601), "{method}: {answer}");
        // The same on a pipe, before and after a handshake.
        let folder = folder();
        let mut pipe = Pipe::start(&folder, &["run"]);
        for handshake in [false, true] {
            if handshake {
                pipe.legacy("2025-11-25", json!({})).await;
            }
            let error = pipe.modern(method, params.clone(), json!({})).await.unwrap_err();
            assert_eq!(error["code"], -32601, "{method}: {error}");
        }
    }
}

/// Status, version and session of a handshake over HTTP.
async fn shake(server: &Server, offered: &str) -> (u16, Value, bool) {
    let mut exchange = server.post(&[], &request("initialize", initialize(offered))).await;
    let version = exchange.json().await["result"]["protocolVersion"].clone();
    (exchange.status(), version, exchange.header("mcp-session-id").is_some())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_never_settles_on_the_modern_revision() {
    let (folder, server) = started().await;
    assert_eq!(shake(&server, MODERN).await, (200, json!("2025-11-25"), true));
    let mut pipe = Pipe::start(&folder, &["run"]);
    assert_eq!(pipe.legacy(MODERN, json!({})).await["protocolVersion"], "2025-11-25");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_revision_is_served() {
    let (folder, server) = started().await;
    assert_eq!(shake(&server, "2024-11-05").await, (200, json!("2024-11-05"), true));
    let mut pipe = Pipe::start(&folder, &["run"]);
    assert_eq!(pipe.legacy("2024-11-05", json!({})).await["protocolVersion"], "2024-11-05");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_its_name_header_is_refused() {
    let (_folder, server) = started().await;
    let body = call("echo_echo", json!({ "message": "x" }));
    let (status, code, answer) = server.probe(&[VERSION, ("Mcp-Method", "tools/call")], &body).await;
    assert_eq!((status, code), (400, -32020), "{answer}");
    let named = [VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo_echo")];
    assert_eq!(server.probe(&named, &body).await.0, 200, "only the header was missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_method_header_is_case_sensitive() {
    let (_folder, server) = started().await;
    let body = request("tools/list", claiming(MODERN));
    let (status, code, answer) = server.probe(&[VERSION, ("Mcp-Method", "TOOLS/LIST")], &body).await;
    assert_eq!((status, code), (400, -32020), "{answer}");
    // The name of the header is not case-sensitive.
    assert_eq!(server.probe(&[VERSION, ("MCP-METHOD", "tools/list")], &body).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn blanks_around_a_header_do_not_count() {
    let (_folder, server) = started().await;
    let body = call("echo_echo", json!({ "message": "x" }));
    for name in ["  echo_echo  ", "\techo_echo", "echo_echo \t "] {
        let headers = [VERSION, ("Mcp-Method", "tools/call"), ("mcp-name", name)];
        let (status, _, answer) = server.probe(&headers, &body).await;
        assert_eq!((status, text(&answer["result"])), (200, "x"), "{name:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_tells_what_the_client_lacks() {
    let (_folder, server) = started().await;
    let headers = [VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", "g_t")];
    let (status, code, answer) = server.probe(&headers, &call("g_t", json!({ "text": "ran" }))).await;
    assert_eq!((status, code), (400, -32021), "{answer}");
    assert_eq!(answer["error"]["data"]["requiredCapabilities"], json!({ "sampling": {} }));
    let able = modern_params(json!({ "name": "g_t", "arguments": { "text": "ran" } }), json!({ "sampling": {} }));
    let (status, _, answer) = server.probe(&headers, &request("tools/call", able)).await;
    assert_eq!((status, text(&answer["result"])), (200, "ran"));
    // Capabilities of one request do not apply to the next.
    let (status, code, _) = server.probe(&headers, &call("g_t", json!({ "text": "ran" }))).await;
    assert_eq!((status, code), (400, -32021));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_logged_to_who_names_no_level() {
    let (folder, server) = started().await;
    let params = json!({ "name": "progress", "arguments": { "n": 3 } });
    let mut leveled = params.clone();
    leveled["_meta"] = json!({ "io.modelcontextprotocol/logLevel": "debug" });
    for (params, logs) in [(&leveled, 3), (&params, 0)] {
        let mut exchange = server.open_modern(json!(1), "tools/call", params.clone(), json!({})).await;
        let mut messages = Vec::new();
        while let Some(message) = exchange.message().await {
            messages.push(message);
        }
        let logged = messages.iter().filter(|message| message["method"] == "notifications/message").count();
        assert_eq!((logged, messages.len()), (logs, logs + 1), "{messages:?}");
        let mut pipe = Pipe::start(&folder, &["run"]);
        pipe.modern("tools/call", params.clone(), json!({})).await.unwrap();
        assert_eq!(pipe.inbox().len(), logs, "{:?}", pipe.inbox());
    }
}
