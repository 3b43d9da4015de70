//! Modern requests over HTTP: the choice of the era, and the order of the header checks.

use e2e::{
    CAPABILITIES_KEY, Folder, MODERN, SERVER_INFO_KEY, SUBSCRIPTION_KEY, Server, VERSION_KEY, Value, is_error, json,
    modern_params, names, prompt, text,
};

async fn started() -> (Folder, Server) {
    let folder = Folder::new();
    folder.plugin("hello");
    folder.plugin("echo");
    let server = Server::start(&folder, &["plugins/hello.wasm", "plugins/echo.wasm"]).await;
    (folder, server)
}

fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": "r-1", "method": method, "params": params })
}

fn meta(version: Value) -> Value {
    json!({ VERSION_KEY: version, CAPABILITIES_KEY: {} })
}

fn greet() -> Value {
    json!({ "name": "hello_greet", "arguments": { "name": "Ada" } })
}

/// Status and error code (0: a result). The id is echoed and the body is JSON, whatever the outcome.
async fn probe(server: &Server, headers: &[(&str, &str)], body: &Value) -> (u16, i64, Value) {
    let mut exchange = server.post(headers, body).await;
    let answer = exchange.json().await;
    assert_eq!(answer["id"], body["id"], "{headers:?} {body}: {answer}");
    (exchange.status(), answer["error"]["code"].as_i64().unwrap_or(0), answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn discover_list_and_call() {
    let (_folder, server) = started().await;
    let mut exchange = server.open_modern(json!("c-17"), "server/discover", json!({}), json!({})).await;
    assert_eq!(exchange.status(), 200);
    assert!(exchange.header("mcp-session-id").is_none());
    let discovered = exchange.json().await;
    assert_eq!(discovered["id"], "c-17");
    let result = &discovered["result"];
    assert_eq!(result["supportedVersions"], json!([MODERN]));
    assert_eq!(result["resultType"], "complete");
    assert!(result["ttlMs"].is_u64() && result["cacheScope"].is_string());
    assert_eq!(result["_meta"][SERVER_INFO_KEY]["name"], "wharf");
    let info = json!({ "_meta": { "io.modelcontextprotocol/clientInfo": { "name": "desk", "version": "4" } } });
    server.modern("server/discover", info, json!({})).await.unwrap();
    let listed = server.modern("tools/list", json!({}), json!({})).await.unwrap();
    assert_eq!(names(&listed, "tools").len(), 2);
    assert_eq!(text(&server.modern("tools/call", greet(), json!({})).await.unwrap()), "Hello, Ada!");
    let wrong = json!({ "name": "hello_greet", "arguments": {} });
    assert!(is_error(&server.modern("tools/call", wrong, json!({})).await.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mistake_has_its_status_and_code() {
    let (_folder, server) = started().await;
    let list = |version: Value| request("tools/list", json!({ "_meta": meta(version) }));
    let call = request("tools/call", modern_params(greet(), json!({})));
    let version = ("MCP-Protocol-Version", MODERN);
    let (listing, calling) = (("Mcp-Method", "tools/list"), ("Mcp-Method", "tools/call"));
    let name = ("Mcp-Name", "hello_greet");
    for (headers, body, status, code) in [
        // The version, in the header and in the body.
        (vec![version, listing], list(MODERN.into()), 200, 0),
        (vec![version, listing], request("tools/list", json!({})), 400, -32602),
        (vec![version, listing], request("tools/list", json!({ "_meta": {} })), 400, -32602),
        (vec![version], json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" }), 400, -32602),
        (vec![version, listing], request("tools/list", json!({ "_meta": { CAPABILITIES_KEY: {} } })), 400, -32602),
        (vec![version, listing], request("tools/list", json!({ "_meta": { VERSION_KEY: MODERN } })), 400, -32602),
        (vec![version, listing], request("tools/list", json!({ "_meta": 7 })), 400, -32602),
        (vec![version, listing], list(7.into()), 400, -32602),
        (vec![version, listing], list(Value::Null), 400, -32602),
        (
            vec![version, listing],
            request("tools/list", json!({ "_meta": { VERSION_KEY: MODERN, CAPABILITIES_KEY: [] } })),
            400,
            -32602,
        ),
        (vec![listing], list(MODERN.into()), 400, -32020),
        (vec![version, listing], list("v999.0.0".into()), 400, -32020),
        (vec![("MCP-Protocol-Version", "2025-11-25"), listing], list(MODERN.into()), 400, -32020),
        (vec![version, listing], list("2025-11-25".into()), 400, -32020),
        (vec![version, version, listing], list(MODERN.into()), 400, -32020),
        (vec![("MCP-Protocol-Version", "v999.0.0"), listing], list("v999.0.0".into()), 400, -32022),
        (vec![("MCP-Protocol-Version", "2031-01-01"), listing], list("2031-01-01".into()), 400, -32022),
        (vec![("MCP-Protocol-Version", "2025-11-25"), listing], list("2025-11-25".into()), 400, -32022),
        (vec![("MCP-Protocol-Version", "2031-01-01")], request("tools/list", json!({})), 400, -32602),
        (vec![("MCP-Protocol-Version", "v999.0.0")], request("tools/list", json!({})), 400, -32022),
        // The method.
        (vec![version], list(MODERN.into()), 400, -32020),
        (vec![version, ("Mcp-Method", "TOOLS/LIST")], list(MODERN.into()), 400, -32020),
        (vec![version, calling], list(MODERN.into()), 400, -32020),
        (vec![version, listing, listing], list(MODERN.into()), 400, -32020),
        (vec![version, ("Mcp-Method", "  tools/list  ")], list(MODERN.into()), 200, 0),
        (vec![version], request("no/such", json!({ "_meta": meta(MODERN.into()) })), 400, -32020),
        (
            vec![version, ("Mcp-Method", "no/such")],
            request("no/such", json!({ "_meta": meta(MODERN.into()) })),
            404,
            -32601,
        ),
        // The name.
        (vec![version, calling, name], call.clone(), 200, 0),
        (vec![version, calling], call.clone(), 400, -32020),
        (vec![version, calling, ("Mcp-Name", "hello_Greet")], call.clone(), 400, -32020),
        (vec![version, calling, ("Mcp-Name", "")], call.clone(), 400, -32020),
        (vec![version, calling, name, name], call.clone(), 400, -32020),
        (vec![version, calling, ("mcp-name", "  hello_greet  ")], call.clone(), 200, 0),
        (vec![version, calling, ("Mcp-Name", "=?base64?aGVsbG9fZ3JlZXQ=?=")], call.clone(), 200, 0),
        (vec![version, calling, ("Mcp-Name", "=?base64?aGVsbG9fZ3JlZXQ?=")], call.clone(), 400, -32020),
        (vec![version, calling, ("Mcp-Name", "=?base64?aGVsbG9fZ3JlZXQ=")], call.clone(), 400, -32020),
        (vec![version, listing, ("Mcp-Name", "whatever")], list(MODERN.into()), 200, 0),
        // A handshake with an unsuitable header.
        (vec![version], request("initialize", json!({ "protocolVersion": MODERN, "capabilities": {} })), 400, -32020),
    ] {
        let (got, error, answer) = probe(&server, &headers, &body).await;
        assert_eq!((got, error), (status, code), "{headers:?} {body}: {answer}");
        if code == -32022 {
            assert_eq!(answer["error"]["data"]["supported"], json!([MODERN]));
            assert_eq!(answer["error"]["data"]["requested"], headers[0].1);
        }
    }
}

/// Methods that exist only in other revisions, or not at all.
#[tokio::test(flavor = "multi_thread")]
async fn methods_that_are_gone_are_not_found() {
    let (_folder, server) = started().await;
    for method in [
        "ping",
        "initialize",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/result",
        "roots/list",
        "no/such",
    ] {
        let mut exchange = server.open_modern(json!(6), method, json!({ "uri": "a:b" }), json!({})).await;
        let answer = exchange.json().await;
        assert_eq!((exchange.status(), &answer["error"]["code"]), (404, &json!(-32601)), "{method}: {answer}");
        assert_eq!(answer["id"], 6);
    }
}

/// Errors that the handler finds are sent with status 200.
#[tokio::test(flavor = "multi_thread")]
async fn mistakes_behind_the_headers() {
    let (_folder, server) = started().await;
    for (method, params) in [
        ("tools/call", json!({ "name": "no_such", "arguments": {} })),
        ("tools/list", json!({ "cursor": "no such" })),
        ("prompts/get", json!({ "name": "none" })),
        ("resources/read", json!({ "uri": "note:///grüße" })),
        ("subscriptions/listen", json!({})),
    ] {
        let body = request(method, modern_params(params.clone(), json!({})));
        let mut headers = vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
        match method {
            "tools/call" => headers.push(("Mcp-Name", "no_such")),
            "prompts/get" => headers.push(("Mcp-Name", "none")),
            "resources/read" => headers.push(("Mcp-Name", "=?base64?bm90ZTovLy9ncsO8w59l?=")),
            _ => {}
        }
        let (status, code, answer) = probe(&server, &headers, &body).await;
        assert_eq!((status, code), (200, -32602), "{method} {params}: {answer}");
        if method == "resources/read" {
            assert_eq!(answer["error"]["data"]["uri"], params["uri"]);
        }
    }
}

/// If a request has two mistakes, the one that is checked first is reported.
#[tokio::test(flavor = "multi_thread")]
async fn checks_are_made_in_the_order_of_the_pipeline() {
    let (_folder, server) = started().await;
    let version = ("MCP-Protocol-Version", MODERN);
    let loud = json!({ VERSION_KEY: MODERN, CAPABILITIES_KEY: {}, "io.modelcontextprotocol/logLevel": "loud" });
    let mut wrong = Vec::new();
    let nameless = json!({ "arguments": {}, "_meta": meta(MODERN.into()) });
    for (first, second, headers, body, status, code) in [
        (
            5,
            6,
            vec![("MCP-Protocol-Version", "2025-11-25")],
            request("tools/list", json!({ "_meta": { VERSION_KEY: MODERN } })),
            400,
            -32602,
        ),
        (4, 5, vec![], request("tools/list", json!({ "_meta": { VERSION_KEY: MODERN } })), 400, -32020),
        (6, 7, vec![version], request("tools/list", json!({ "_meta": meta("v1".into()) })), 400, -32020),
        (
            7,
            8,
            vec![("MCP-Protocol-Version", "v1")],
            request("tools/list", json!({ "_meta": meta("v1".into()) })),
            400,
            -32022,
        ),
        (
            8,
            9,
            vec![version, ("Mcp-Method", "ping")],
            request("no/such", json!({ "_meta": meta(MODERN.into()) })),
            400,
            -32020,
        ),
        (8, 12, vec![version], request("tools/list", json!({ "_meta": loud })), 400, -32020),
        (9, 12, vec![version, ("Mcp-Method", "ping")], request("ping", json!({ "_meta": loud })), 404, -32601),
        (
            10,
            12,
            vec![version, ("Mcp-Method", "tools/call")],
            request("tools/call", json!({ "name": "x", "_meta": loud })),
            400,
            -32020,
        ),
        (
            13,
            14,
            vec![version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "x")],
            request("tools/call", nameless),
            0,
            -32602,
        ),
    ] {
        let (got, error, answer) = probe(&server, &headers, &body).await;
        if error != code || (status != 0 && got != status) {
            wrong
                .push(format!("step {first} before {second}: expected {status} {code}, got {got} {}", answer["error"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Headers that belong to sessions are ignored.
#[tokio::test(flavor = "multi_thread")]
async fn session_headers_mean_nothing() {
    let (_folder, server) = started().await;
    let body = request("tools/list", modern_params(json!({}), json!({})));
    let headers = [
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/list"),
        ("Mcp-Session-Id", "no-such-session"),
        ("Last-Event-ID", "7"),
    ];
    let mut exchange = server.post(&headers, &body).await;
    assert_eq!(exchange.status(), 200);
    assert!(exchange.header("mcp-session-id").is_none());
    exchange.json().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_are_accepted_and_responses_and_arrays_are_not() {
    let (_folder, server) = started().await;
    let version = ("MCP-Protocol-Version", MODERN);
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let claiming = json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": { "_meta": meta(MODERN.into()) } });
    for (headers, body) in [(vec![version], &cancelled), (vec![], &claiming), (vec![version], &claiming)] {
        let mut exchange = server.post(&headers, body).await;
        assert_eq!(exchange.status(), 202, "{body}");
        assert_eq!(exchange.text().await, "");
    }
    let list = request("tools/list", modern_params(json!({}), json!({})));
    for body in [json!({ "jsonrpc": "2.0", "id": 1, "result": {} }), json!([list]), json!([]), json!([cancelled, list])]
    {
        for headers in [&[version, ("Mcp-Method", "tools/list")][..], &[]] {
            let mut exchange = server.post(headers, &body).await;
            let answer = exchange.json().await;
            assert_eq!((exchange.status(), &answer["error"]["code"]), (400, &json!(-32600)), "{body}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_are_streams_that_begin_with_the_acknowledgement() {
    let (_folder, server) = started().await;
    for id in [json!(31), json!("31")] {
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        let mut stream = server.open_modern(id.clone(), "subscriptions/listen", filter, json!({})).await;
        assert_eq!(stream.status(), 200);
        assert!(stream.is_stream());
        assert_eq!(stream.header("cache-control"), Some("no-cache, no-transform"));
        assert_eq!(stream.header("x-accel-buffering"), Some("no"));
        let first = stream.event().await.unwrap();
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(first["params"]["_meta"][SUBSCRIPTION_KEY], id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_subscriptions_with_their_result() {
    let (_folder, server) = started().await;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let mut stream = server.open_modern(json!("s"), "subscriptions/listen", filter, json!({})).await;
    stream.event().await.unwrap();
    let (status, took, log) = server.terminate().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(took < prompt(), "took {took:?}");
    let last = stream.event().await.expect("the result of the subscription");
    assert_eq!(last["id"], "s");
    assert_eq!(last["result"]["_meta"][SUBSCRIPTION_KEY], "s");
    assert_eq!(stream.event().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_subscriptions_than_allowed_are_refused_until_one_ends() {
    let folder = Folder::new();
    folder.plugin("hello");
    folder.config("[http]\nlistens = 1\n[plugins.hello]\npath = '../../plugins/hello.wasm'\n");
    let server = Server::start(&folder, &[]).await;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let mut first = server.open_modern(json!(1), "subscriptions/listen", filter.clone(), json!({})).await;
    first.event().await.unwrap();
    let mut second = server.open_modern(json!(2), "subscriptions/listen", filter.clone(), json!({})).await;
    assert_eq!(second.status(), 503);
    assert_eq!(second.json().await["id"], 2);
    assert_eq!(text(&server.modern("tools/call", greet(), json!({})).await.unwrap()), "Hello, Ada!");
    drop(first);
    let mut tries = 0;
    while server.open_modern(json!(3), "subscriptions/listen", filter.clone(), json!({})).await.status() != 200 {
        tries += 1;
        assert!(tries < 5000, "the place of a client that left is never free again");
    }
}
