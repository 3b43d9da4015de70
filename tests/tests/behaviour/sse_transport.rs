//! The transport of 2024-11-05, HTTP with SSE: a stream that names the URL for POSTs, and delivers all answers.

use std::collections::HashSet;

use e2e::{Exchange, Folder, Server, Value, given, json, modern_params, names, plugin, prompt, schema, text};

const REVISION: &str = "2024-11-05";

async fn started(more: &str) -> (Folder, Server) {
    started_with(more, &[]).await
}

async fn started_with(more: &str, environment: &[(&str, &str)]) -> (Folder, Server) {
    let folder = Folder::new();
    folder.config(&format!(
        "{more}\n[plugins.show]\npath = {:?}\nprefix = \"\"\n[plugins.show.grants]\nask = [\"sampling\", \"roots\"]\n{}",
        plugin("showcase"),
        given("g", &json!({}), "limits = { concurrency = 1, timeout_ms = 25000 }")
    ));
    let server = Server::start_with(&folder, &[], environment).await;
    (folder, server)
}

const ON: &str = "[protocol]\nsse = true";

/// A client of this transport.
struct Client<'a> {
    server: &'a Server,
    stream: Exchange,
    /// The URL for POSTs, as sent on the stream.
    path: String,
    next_id: u64,
    /// Messages that arrived while it waited for others.
    inbox: Vec<Value>,
}

impl<'a> Client<'a> {
    async fn connect(server: &'a Server) -> Self {
        let mut stream = server.send("GET", "/sse", &[("Accept", "text/event-stream")], b"").await;
        assert_eq!((stream.status(), stream.is_stream()), (200, true));
        let first = stream.frame().await.unwrap();
        assert_eq!((first.event.as_deref(), &first.id), (Some("endpoint"), &None), "{first:?}");
        let path = first.data.unwrap();
        // Relative to the stream's own path, so that it works behind a proxy with another prefix.
        assert!(path.starts_with("messages?session="), "{path}");
        let path = format!("/{path}");
        Self { server, stream, path, next_id: 0, inbox: Vec::new() }
    }

    async fn handshake(server: &'a Server, capabilities: Value) -> Self {
        let mut client = Self::connect(server).await;
        let info = json!({ "name": "x", "version": "1" });
        let params = json!({ "protocolVersion": REVISION, "capabilities": capabilities, "clientInfo": info });
        let result = client.request("initialize", params).await.unwrap();
        assert_eq!(result["protocolVersion"], REVISION);
        schema::check(REVISION, "InitializeResult", &result);
        client.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn post_raw(&self, body: &[u8]) -> Exchange {
        self.server.send("POST", &self.path, &[("Content-Type", "application/json")], body).await
    }

    async fn post(&self, body: &Value) {
        let mut exchange = self.post_raw(body.to_string().as_bytes()).await;
        assert_eq!(exchange.status(), 202, "{body}");
        let said = exchange.text().await;
        assert!(!said.contains("jsonrpc"), "answers come on the stream: {said}");
    }

    async fn begin(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        self.post(&json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params })).await;
        json!(self.next_id)
    }

    /// Returns the next message on the stream.
    async fn read(&mut self) -> Value {
        let frame = self.stream.frame().await.expect("the stream goes on");
        assert_eq!((frame.event.as_deref(), &frame.id), (Some("message"), &None), "{frame:?}");
        let message: Value = frame.data.unwrap().parse().unwrap();
        // The schema of this revision has no errors without an id.
        if message.get("id").is_some() || message.get("method").is_some() {
            schema::check(REVISION, "JSONRPCMessage", &message);
        }
        message
    }

    async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin(method, params).await;
        self.answer(&id).await
    }

    /// Returns the answer to a request, and answers the server's questions in between.
    async fn answer(&mut self, id: &Value) -> Result<Value, Value> {
        loop {
            let message = self.read().await;
            let result = match message["method"].as_str() {
                None => {
                    assert_eq!(message["id"], *id, "{message}");
                    return e2e::pipe::outcome(message);
                }
                Some("sampling/createMessage") => {
                    json!({ "role": "assistant", "content": { "type": "text", "text": "roses" }, "model": "m" })
                }
                Some("roots/list") => json!({ "roots": [{ "uri": "file:///a" }] }),
                Some(_) => {
                    schema::check(REVISION, "ServerNotification", &message);
                    self.inbox.push(message);
                    continue;
                }
            };
            schema::check(REVISION, "ServerRequest", &message);
            self.post(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).await;
        }
    }
}

/// SSE-07.
#[tokio::test(flavor = "multi_thread")]
async fn it_is_off_unless_the_operator_says_so() {
    for config in ["", "[protocol]\nsse = false"] {
        let (_folder, server) = started(config).await;
        assert_eq!(server.send("GET", "/sse", &[("Accept", "text/event-stream")], b"").await.status(), 404);
        let kind = [("Content-Type", "application/json")];
        let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert_eq!(server.send("POST", "/messages?session=x", &kind, ping).await.status(), 404);
        assert_eq!(server.send("POST", "/sse", &kind, ping).await.status(), 404);
    }
}

/// SSE-01 to SSE-03.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_from_the_endpoint_event_to_the_end() {
    let (_folder, server) = started(ON).await;
    let mut client = Client::handshake(&server, json!({ "sampling": {}, "roots": {} })).await;
    assert_eq!(client.request("ping", json!({})).await.unwrap(), json!({}));
    let listed = client.request("tools/list", json!({})).await.unwrap();
    schema::check(REVISION, "ListToolsResult", &listed);
    assert!(names(&listed, "tools").contains(&"g_t".to_owned()));
    assert!(listed["tools"].as_array().unwrap().iter().all(|tool| tool.get("annotations").is_none()), "{listed}");
    let every = client.request("tools/call", json!({ "name": "every_kind" })).await.unwrap();
    schema::check(REVISION, "CallToolResult", &every);
    let call = json!({ "name": "g_t", "arguments": { "steps": 3, "text": "t" }, "_meta": { "progressToken": "p" } });
    assert_eq!(text(&client.request("tools/call", call).await.unwrap()), "t");
    let reports = client.inbox.drain(..).filter(|message| message["method"] == "notifications/progress");
    assert_eq!(reports.count(), 3);
    // Questions come on the stream, and their answers by POST.
    assert_eq!(text(&client.request("tools/call", json!({ "name": "write_poem" })).await.unwrap()), "roses");
    assert_eq!(text(&client.request("tools/call", json!({ "name": "client_roots" })).await.unwrap()), "file:///a");
    for (method, params, code) in [
        ("no/such", json!({}), -32601),
        ("tools/call", json!({ "name": "none" }), -32602),
        ("resources/read", json!({ "uri": "none:///x" }), -32002),
    ] {
        assert_eq!(client.request(method, params).await.unwrap_err()["code"], code, "{method}");
    }
    // Notifications as well.
    client.request("resources/subscribe", json!({ "uri": "note:///x" })).await.unwrap();
    let id = client.begin("tools/call", json!({ "name": "g_t", "arguments": { "updated": "note:///x" } })).await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let message = client.read().await;
        seen.push(message["method"].as_str().map_or_else(|| message["id"].to_string(), str::to_owned));
    }
    seen.sort();
    assert_eq!(seen, [id.to_string(), "notifications/resources/updated".into()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_cancelled_by_notification_and_by_leaving() {
    let (_folder, server) = started(ON).await;
    let spin = json!({ "name": "g_t", "arguments": { "steps": 1, "spin": true }, "_meta": { "progressToken": 1 } });
    let mut client = Client::handshake(&server, json!({})).await;
    for leave in [false, true] {
        let id = client.begin("tools/call", spin.clone()).await;
        while client.read().await["method"] != "notifications/progress" {}
        if leave {
            // The answer cannot be fetched any more.
            drop(client);
            client = Client::handshake(&server, json!({})).await;
        } else {
            let cancel =
                json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
            client.post(&cancel).await;
        }
        let began = std::time::Instant::now();
        let next =
            client.request("tools/call", json!({ "name": "g_t", "arguments": { "text": "next" } })).await.unwrap();
        assert_eq!(text(&next), "next");
        assert!(began.elapsed() < prompt(), "leave: {leave}, {:?}", began.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_secret_apart_and_end_with_their_stream() {
    let (_folder, server) = started(ON).await;
    let mut one = Client::handshake(&server, json!({})).await;
    let mut two = Client::handshake(&server, json!({})).await;
    let mut paths = HashSet::from([one.path.clone(), two.path.clone()]);
    for _ in 0..8 {
        paths.insert(Client::connect(&server).await.path);
    }
    assert_eq!(paths.len(), 10);
    assert!(paths.iter().all(|path| path.len() >= "/messages?session=".len() + 22), "128 bits at least: {paths:?}");
    // The same ids at the same time.
    let call = |text: &str| json!({ "name": "g_t", "arguments": { "ms": 50, "text": text } });
    let (first, second) = (one.begin("tools/call", call("one")).await, two.begin("tools/call", call("two")).await);
    assert_eq!(first, second);
    assert_eq!(text(&two.answer(&second).await.unwrap()), "two");
    assert_eq!(text(&one.answer(&first).await.unwrap()), "one");
    let ping = br#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;
    let kind = [("Content-Type", "application/json")];
    for (path, status) in [("/messages?session=unknown", 404), ("/messages?session=", 404), ("/messages", 400)] {
        let got = server.send("POST", path, &kind, ping).await.status();
        assert!(got == status || (path != "/messages?session=unknown" && [400, 404].contains(&got)), "{path}: {got}");
    }
    // The sessions of the two transports are independent.
    let id = one.path.split_once('=').unwrap().1.to_owned();
    let headers = [("Mcp-Session-Id", id.as_str())];
    let body = json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" });
    assert_eq!(server.post(&headers, &body).await.status(), 404);
    let session = server.legacy("2025-11-25", json!({})).await;
    let path = format!("/messages?session={}", session.id);
    assert_eq!(server.send("POST", &path, &kind, ping).await.status(), 404);
    let path = one.path.clone();
    drop(one);
    let began = std::time::Instant::now();
    while server.send("POST", &path, &kind, ping).await.status() != 404 {
        assert!(began.elapsed() < e2e::PATIENCE, "a session outlives its stream");
    }
    assert_eq!(two.request("ping", json!({})).await.unwrap(), json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_post_is_said_at_once() {
    let (_folder, server) = started(&format!("{ON}\n[limits]\nmessage_kib = 64")).await;
    let mut client = Client::handshake(&server, json!({})).await;
    for (body, code) in [(&b"{"[..], -32700), (b"7", -32600), (b"[]", -32600)] {
        // In the answer to the POST, or on the stream with all answers.
        let mut exchange = client.post_raw(body).await;
        let said = match exchange.status() {
            202 => client.read().await,
            400 => exchange.text().await.parse().unwrap(),
            status => panic!("{body:?}: {status}"),
        };
        assert_eq!((&said["error"]["code"], said.get("id")), (&json!(code), None), "{body:?}: {said}");
    }
    assert_eq!(client.post_raw(&[b' '; 70_000]).await.status(), 413);
    let ping = br#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let plain = server.send("POST", &client.path, &[("Content-Type", "text/plain")], ping).await;
    assert_eq!(plain.status(), 415);
    for (method, path) in [("PUT", "/sse"), ("POST", "/sse"), ("GET", client.path.as_str()), ("DELETE", "/sse")] {
        let status = server.send(method, path, &[("Content-Type", "application/json")], ping).await.status();
        assert!([404, 405].contains(&status), "{method} {path}: {status}");
    }
    // None of that was sent on the stream.
    assert_eq!(client.request("ping", json!({})).await.unwrap(), json!({}));
    assert!(client.inbox.is_empty(), "{:?}", client.inbox);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_nobody_reads_has_a_bound() {
    let (_folder, server) = started(ON).await;
    let client = Client::handshake(&server, json!({})).await;
    let before = e2e::memory_kib(server.pid(), "VmRSS");
    let mut refused = 0;
    for id in 0..150 {
        let params = json!({ "name": "g_t", "arguments": { "bytes": 4_000_000 } });
        let body = json!({ "jsonrpc": "2.0", "id": format!("u{id}"), "method": "tools/call", "params": params });
        let mut exchange = client.post_raw(body.to_string().as_bytes()).await;
        assert!([202, 503].contains(&exchange.status()), "{}", exchange.status());
        refused += usize::from(exchange.status() == 503);
        exchange.text().await;
    }
    // The plugin runs one call at a time, so these calls follow those of the stream.
    let plain = json!({ "name": "g_t", "arguments": { "text": "m" } });
    server.modern("tools/call", plain, json!({})).await.unwrap();
    let most = e2e::memory_kib(server.pid(), "VmHWM");
    println!("150 answers of 4 MB unread, {refused} refused: {} MiB before, at most {} MiB", before >> 10, most >> 10);
    assert!(most < before + (200 << 10), "it grew from {} to {} MiB", before >> 10, most >> 10);
    drop(client);
}

/// SSE-06.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_guards_stand_before_it() {
    let config = format!("{ON}\n[http]\ntoken.env = \"WHARF_TOKEN\"");
    let (_folder, server) = started_with(&config, &[("WHARF_TOKEN", "s3cret-of-tests-1")]).await;
    let accept = ("Accept", "text/event-stream");
    let token = ("Authorization", "Bearer s3cret-of-tests-1");
    let stream = server.send("GET", "/sse", &[accept, token], b"").await;
    assert_eq!(stream.status(), 200);
    let mut stream = stream;
    let path = format!("/{}", stream.frame().await.unwrap().data.unwrap());
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (headers, status) in [
        (vec![], 401),
        (vec![("Authorization", "Bearer other")], 401),
        (vec![token, ("Host", "evil.example")], 403),
        (vec![token, ("Origin", "http://evil.example")], 403),
        (vec![token, ("Sec-Fetch-Site", "cross-site")], 403),
    ] {
        let mut get = headers.clone();
        get.push(accept);
        assert_eq!(server.send("GET", "/sse", &get, b"").await.status(), status, "{headers:?}");
        let mut post = headers.clone();
        post.push(("Content-Type", "application/json"));
        assert_eq!(server.send("POST", &path, &post, ping).await.status(), status, "{headers:?}");
    }
    let post = [token, ("Content-Type", "application/json")];
    assert_eq!(server.send("POST", &path, &post, ping).await.status(), 202);
}

/// SSE-04: in addition to the other transport, on the same server.
#[tokio::test(flavor = "multi_thread")]
async fn it_stands_beside_the_streamable_transport() {
    let (_folder, server) = started(ON).await;
    let mut client = Client::handshake(&server, json!({})).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let modern = server.modern("tools/list", json!({}), json!({})).await.unwrap();
    let old = client.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&old, "tools"), names(&modern, "tools"));
    assert_eq!(session.request("ping", json!({})).await.unwrap(), json!({}));
    // A modern client's POST there is not served in the old era.
    let claiming =
        json!({ "jsonrpc": "2.0", "id": 5, "method": "ping", "params": modern_params(json!({}), json!({})) });
    let mut refused = client.post_raw(claiming.to_string().as_bytes()).await;
    if refused.status() == 202 {
        assert!(client.answer(&json!(5)).await.is_err());
    } else {
        assert!((400..500).contains(&refused.status()) && refused.text().await.contains("jsonrpc"));
    }
    // The stream ends when the server exits.
    let (status, took, log) = server.terminate().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(took < prompt(), "took {took:?}");
}
