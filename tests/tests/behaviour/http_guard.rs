//! Who may use the HTTP server: hosts, origins, tokens, addresses, and requests that are not MCP.

use e2e::{Exchange, Folder, Server, folder::stderr, json, modern_params, prompt, text};

const CONFIG: &str = "[plugins.hello]\npath = '../../plugins/hello.wasm'\n";

async fn started(http: &str, environment: &[(&str, &str)]) -> (Folder, Server) {
    let folder = Folder::new();
    folder.plugin("hello");
    folder.config(&format!("[http]\n{http}\n{CONFIG}"));
    let server = Server::start_with(&folder, &[], environment).await;
    (folder, server)
}

fn initialize() -> e2e::Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } } })
}

fn discover() -> e2e::Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": modern_params(json!({}), json!({})) })
}

/// Sends the request in both eras, and to GET and /healthz: all of them have the same checks. Returns the status of each.
async fn knock(server: &Server, headers: &[(&str, &str)]) -> [u16; 4] {
    let with = |more: &[(&'static str, &'static str)]| -> Vec<(String, String)> {
        headers.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let mut statuses = Vec::new();
    let legacy = with(&[("MCP-Protocol-Version", "2025-11-25")]);
    let modern = with(&[("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "server/discover")]);
    for (headers, body) in [(legacy, initialize()), (modern, discover())] {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        statuses.push(server.post(&headers, &body).await.status());
    }
    let get = with(&[("Accept", "text/event-stream"), ("Mcp-Session-Id", "none")]);
    let get: Vec<(&str, &str)> = get.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    statuses.push(server.send("GET", "/mcp", &get, b"").await.status());
    statuses.push(server.send("GET", "/healthz", headers, b"").await.status());
    statuses.try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_and_origins() {
    let http = "allowed_hosts = ['wharf.example', 'port.example:99']\nallowed_origins = ['https://app.example']";
    let (_folder, server) = started(http, &[]).await;
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
    let own = format!("http://{}", server.address);
    let (localhost, port) = (format!("localhost:{}", server.address.port()), server.address.port().to_string());
    let shouting = format!("LOCALHOST:{port}");
    let (local_origin, wrong_port) = (format!("http://{localhost}"), "http://localhost:1".to_owned());
    let good = [200, 200, 404, 200];
    let bad = [403; 4];
    for (headers, expected) in [
        (vec![], good),
        (vec![("Host", localhost.as_str())], good),
        (vec![("Host", "localhost")], good),
        (vec![("Host", shouting.as_str())], good),
        (vec![("Host", "127.0.0.1")], good),
        (vec![("Host", "[::1]:7300")], good),
        (vec![("Host", "wharf.example")], good),
        (vec![("Host", "wharf.example:443")], good),
        (vec![("Host", "port.example:99")], good),
        (vec![("Host", "port.example:98")], bad),
        (vec![("Host", "evil.example")], bad),
        (vec![("Host", "evil.example:7300")], bad),
        (vec![("Host", "localhost.evil.example")], bad),
        (vec![("Host", "127.0.0.1.evil.example")], bad),
        (vec![("Host", "localhost:7300.evil.example")], bad),
        (vec![("Host", "evil.example@localhost")], bad),
        (vec![("Host", "127.0.0.2")], bad),
        (vec![("Host", "0.0.0.0")], bad),
        (vec![("Host", "2130706433")], bad),
        (vec![("Host", "evil.example"), ("Host", localhost.as_str())], bad),
        (vec![("Host", localhost.as_str()), ("Host", "evil.example")], bad),
        (vec![("Host", "evil.example"), ("Origin", "http://evil.example")], bad),
        (vec![("Origin", own.as_str())], good),
        (vec![("Host", localhost.as_str()), ("Origin", local_origin.as_str())], good),
        (vec![("Origin", "https://app.example")], good),
        (vec![("Origin", "https://app.example"), ("Sec-Fetch-Site", "cross-site")], good),
        (vec![("Origin", wrong_port.as_str())], bad),
        (vec![("Origin", "http://app.example")], bad),
        (vec![("Origin", "https://app.example.evil")], bad),
        (vec![("Origin", "https://app.example:444")], bad),
        (vec![("Origin", "https://evil.example")], bad),
        (vec![("Origin", "null")], bad),
        (vec![("Origin", "")], bad),
        (vec![("Origin", "*")], bad),
        (vec![("Origin", "https://app.example"), ("Origin", "https://evil.example")], bad),
        (vec![("Sec-Fetch-Site", "none")], good),
        (vec![("Sec-Fetch-Site", "same-origin")], good),
        (vec![("Sec-Fetch-Site", "same-site")], bad),
        (vec![("Sec-Fetch-Site", "cross-site")], bad),
        (vec![("Sec-Fetch-Site", "")], bad),
        (vec![("Origin", "null"), ("Sec-Fetch-Site", "same-origin")], bad),
    ] {
        assert_eq!(knock(&server, &headers).await, expected, "{headers:?}");
    }
}

/// Duplicate Host, Origin and Authorization headers are refused; so is this one.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_sec_fetch_site_counts_too() {
    let (_folder, server) = started("", &[]).await;
    for sites in [["cross-site", "none"], ["none", "cross-site"]] {
        let exchange = server.post(&sites.map(|site| ("Sec-Fetch-Site", site)), &initialize()).await;
        assert_eq!(exchange.status(), 403, "{sites:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_listed_origins_get_permission_to_read() {
    let (_folder, server) = started("allowed_origins = ['https://app.example']", &[]).await;
    let preflight = async |origin: &str| -> Exchange {
        let headers = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            (
                "Access-Control-Request-Headers",
                "content-type,mcp-protocol-version,mcp-session-id,mcp-method,mcp-name,authorization",
            ),
        ];
        server.send("OPTIONS", "/mcp", &headers, b"").await
    };
    let listed = preflight("https://app.example").await;
    assert!((200..300).contains(&listed.status()));
    assert_eq!(listed.header("access-control-allow-origin"), Some("https://app.example"));
    let allowed = listed.header("access-control-allow-headers").unwrap().to_ascii_lowercase();
    for name in ["content-type", "mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name", "authorization"] {
        assert!(allowed.contains(name), "{name} in {allowed}");
    }
    for origin in ["https://evil.example", "null"] {
        assert_eq!(preflight(origin).await.header("access-control-allow-origin"), None, "{origin}");
    }
    let answer = server.post(&[("Origin", "https://app.example")], &initialize()).await;
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    let exposed = answer.header("access-control-expose-headers").unwrap().to_ascii_lowercase();
    assert!(exposed.contains("mcp-session-id"), "{exposed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_asked_of_everybody_but_the_health_check() {
    let (_folder, server) = started("token.env = 'WHARF_TOKEN'", &[("WHARF_TOKEN", "s3cret-of-tests-1")]).await;
    // The list is only answered after the first load, so the health check answers 200 from here on.
    let list =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern_params(json!({}), json!({})) });
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
        ("Authorization", "Bearer s3cret-of-tests-1"),
    ];
    assert_eq!(server.post(&headers, &list).await.status(), 200);
    let good = [200, 200, 404, 200];
    let bad = [401, 401, 401, 200];
    for (headers, expected) in [
        (vec![("Authorization", "Bearer s3cret-of-tests-1")], good),
        (vec![("Authorization", "bearer s3cret-of-tests-1")], good),
        (vec![], bad),
        (vec![("Authorization", "Bearer s3cret-of-tests-")], bad),
        (vec![("Authorization", "Bearer s3cret-of-tests-1s")], bad),
        (vec![("Authorization", "Bearer S3CRET-OF-TESTS-1")], bad),
        (vec![("Authorization", "Bearer ")], bad),
        (vec![("Authorization", "Bearer")], bad),
        (vec![("Authorization", "s3cret-of-tests-1")], bad),
        (vec![("Authorization", "Basic s3cret-of-tests-1")], bad),
        (vec![("Authorization", "Bearer s3cret-of-tests-1"), ("Authorization", "Bearer other")], bad),
        (vec![("Host", "evil.example")], [403; 4]),
        (vec![("Host", "evil.example"), ("Authorization", "Bearer s3cret-of-tests-1")], [403; 4]),
    ] {
        assert_eq!(knock(&server, &headers).await, expected, "{headers:?}");
    }
    let mut refused = server.post(&[], &initialize()).await;
    assert!(refused.header("www-authenticate").unwrap().starts_with("Bearer"));
    assert!(refused.json().await["error"]["message"].as_str().unwrap().contains("token"));
    // This is checked before everything else in the request.
    assert_eq!(server.send("POST", "/mcp", &[("Content-Type", "text/plain")], b"{").await.status(), 401);
    assert!(!server.log().contains("s3cret-of-tests-1"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_not_mcp() {
    let (_folder, server) = started("", &[]).await;
    // A list waits for the first load, and the health check answers 200 only after it.
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
    let (kind, accept) = (("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream"));
    let body = initialize().to_string();
    let body = body.as_bytes();
    for (method, path, headers, body, status) in [
        ("PUT", "/mcp", vec![kind, accept], body, 405),
        ("PATCH", "/mcp", vec![kind, accept], body, 405),
        ("POST", "/", vec![kind, accept], body, 404),
        ("POST", "/mcp/x", vec![kind, accept], body, 404),
        ("POST", "/healthz", vec![kind, accept], body, 405),
        ("POST", "/mcp", vec![accept], body, 415),
        ("POST", "/mcp", vec![("Content-Type", "text/plain"), accept], body, 415),
        ("POST", "/mcp", vec![("Content-Type", "application/jsonx"), accept], body, 415),
        ("POST", "/mcp", vec![("Content-Type", "Application/JSON; charset=utf-8"), accept], body, 200),
        ("POST", "/mcp", vec![kind], body, 406),
        ("POST", "/mcp", vec![kind, ("Accept", "text/html")], body, 406),
        ("POST", "/mcp", vec![kind, ("Accept", "*/*")], body, 200),
        ("POST", "/mcp", vec![kind, ("Accept", "text/event-stream;q=0.9,application/json")], body, 200),
        ("POST", "/mcp", vec![kind, ("Accept", "text/event-stream"), ("Accept", "application/json")], body, 200),
        ("GET", "/mcp", vec![("Accept", "application/json"), ("Mcp-Session-Id", "none")], b"", 406),
        ("GET", "/mcp", vec![("Accept", "text/event-stream")], b"", 400),
        ("DELETE", "/mcp", vec![], b"", 400),
        ("GET", "/healthz", vec![], b"", 200),
        ("POST", "/mcp", vec![kind, accept], b"", 400),
        ("POST", "/mcp", vec![kind, accept], b"{", 400),
        ("POST", "/mcp", vec![kind, accept], b"7", 400),
        ("POST", "/mcp", vec![kind, accept], b"{}", 400),
        ("POST", "/mcp", vec![kind, accept], b"\xff\xfe", 400),
    ] {
        let mut exchange = server.send(method, path, &headers, body).await;
        assert_eq!(exchange.status(), status, "{method} {path} {headers:?} {}", String::from_utf8_lossy(body));
        if status == 400 {
            let error = &exchange.json().await["error"];
            let expected = match body {
                b"" if method == "POST" => -32700,
                b"{" | b"\xff\xfe" => -32700,
                _ => -32600,
            };
            assert_eq!(error["code"], expected, "{}: {error}", String::from_utf8_lossy(body));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_have_a_limit() {
    let folder = Folder::new();
    folder.plugin("hello");
    folder.config(&format!("[limits]\nmessage_kib = 64\n{CONFIG}"));
    let server = Server::start(&folder, &[]).await;
    let greet = |name: &str| json!({ "name": "hello_greet", "arguments": { "name": name } });
    let headers = [("Content-Type", "application/json"), ("Accept", "*/*")];
    let large = vec![b' '; 65_537];
    assert_eq!(server.send("POST", "/mcp", &headers, &large).await.status(), 413);
    // In a chunked body, the length is only known at the end.
    let mut bytes = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: */*\r\nTransfer-Encoding: chunked\r\n\r\n10001\r\n",
        server.address
    )
    .into_bytes();
    bytes.extend_from_slice(&large);
    bytes.extend_from_slice(b"\r\n0\r\n\r\n");
    let mut exchange = server.connect(&bytes).await;
    assert!(exchange.read_head().await);
    assert_eq!(exchange.status(), 413);
    // A declared length is refused before the body is sent.
    let announced = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: 99999999\r\n\r\n",
        server.address
    );
    let mut exchange = server.connect(announced.as_bytes()).await;
    assert!(exchange.read_head().await);
    assert_eq!(exchange.status(), 413);
    let fits = server.modern("tools/call", greet(&"x".repeat(60_000)), json!({})).await.unwrap();
    assert_eq!(text(&fits).len(), 60_000 + "Hello, !".len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_others_reach_needs_a_token() {
    let folder = Folder::new();
    folder.plugin("hello");
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let ended = folder.run(&["serve", "--listen", listen, "plugins/hello.wasm"], &[]).await;
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(2), "{listen}: {said}");
        let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(
            lines.len() == 1 && lines[0].contains("`token` in [http]") && lines[0].contains("127.0.0.1"),
            "{listen}: {said}"
        );
    }
    folder.config("[http]\nlisten = '0.0.0.0:0'\n");
    assert_eq!(folder.run(&["serve"], &[]).await.status.code(), Some(2));
    for token in [&[("WHARF_TOKEN", "")][..], &[]] {
        folder.config("[http]\nlisten = '0.0.0.0:0'\ntoken.env = 'WHARF_TOKEN'\n");
        let ended = folder.run(&["serve"], token).await;
        assert_eq!(ended.status.code(), Some(2));
        assert!(stderr(&ended).contains("WHARF_TOKEN is not set"), "{}", stderr(&ended));
    }
    let zeros = "0".repeat(64);
    for (token, said) in
        [("fifteen-letters", "it has 15 bytes, fewer than 16"), (&zeros, "it is one character again and again")]
    {
        let ended = folder.run(&["serve"], &[("WHARF_TOKEN", token)]).await;
        assert_eq!(ended.status.code(), Some(2));
        assert!(stderr(&ended).contains("WHARF_TOKEN") && stderr(&ended).contains(said), "{}", stderr(&ended));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_is_said() {
    let (folder, server) = started("", &[]).await;
    let address = server.address.to_string();
    let ended = folder.run(&["serve", "--listen", &address], &[]).await;
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    let error = said.lines().find(|line| line.starts_with("error: ")).unwrap_or_else(|| panic!("{said}"));
    assert!(error.contains(&address) && error.contains("--listen"), "{error}");
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_streams_and_the_process() {
    let (_folder, server) = started("", &[]).await;
    let (id, address) = {
        let session = server.legacy("2025-11-25", json!({})).await;
        (session.id.clone(), server.address)
    };
    let headers = [("Accept", "text/event-stream"), ("Mcp-Session-Id", id.as_str())];
    let mut stream = server.send("GET", "/mcp", &headers, b"").await;
    assert_eq!(stream.status(), 200);
    // A connection without any data must not delay shutdown.
    let idle = server.connect(b"").await;
    let (status, took, log) = server.terminate().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(took < prompt(), "took {took:?}");
    assert_eq!(stream.event().await, None);
    assert!(idle.drain().await.is_empty());
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

/// Beyond this process's user, every user of the machine can connect to a loopback port.
#[tokio::test(flavor = "multi_thread")]
async fn who_can_call_without_a_token_is_said() {
    let said = "only programs of this user and of root are served at 127.0.0.1:";
    let (_folder, server) = started("", &[]).await;
    server.wait_for_log(said).await;
    let token = [("WHARF_TOKEN", "s3cret-of-tests-1")];
    let (_folder, server) = started("token.env = 'WHARF_TOKEN'", &token).await;
    server.wait_for_log("serving MCP at").await;
    assert!(!server.log().contains("only programs of this user"), "{}", server.log());
}
