//! What a client makes replicas store in Redis is charged to it, so it leaves room for others.

use e2e::{Exchange, Folder, Redis, Server, Value, json, text};

use super::{
    common::Replicas,
    tasks::{begin, until},
};

const VERSION: &str = "2025-11-25";

/// Starts replicas that may store a MiB, and tell clients apart by the address that a proxy names.
async fn replicas(number: usize) -> Replicas {
    let folder = Folder::new();
    let redis = Redis::start(&folder).await;
    let cluster = format!("redis = \"redis://{}\"\nmemory_mib = 1\n", redis.address);
    let proxies = "[http]\ntrusted_proxies = [\"127.0.0.1\"]\n";
    let mut replicas = Replicas::of(redis, number, proxies, |_| cluster.clone(), "").await;
    replicas.folders.push(folder);
    replicas
}

/// A client at an address of its own, and its session.
pub struct Client {
    address: &'static str,
    session: String,
}

impl Client {
    pub async fn opened(server: &Server, address: &'static str) -> Self {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": VERSION, "capabilities": { "elicitation": {} }, "clientInfo": { "name": "c", "version": "1" } } });
        let opened = server.post(&[("X-Forwarded-For", address)], &hello).await;
        Self { address, session: opened.header("mcp-session-id").expect("a session").to_owned() }
    }

    pub async fn post(&self, server: &Server, body: &Value) -> Exchange {
        let headers =
            [("X-Forwarded-For", self.address), ("Mcp-Session-Id", &self.session), ("MCP-Protocol-Version", VERSION)];
        server.post(&headers, body).await
    }

    /// Returns the answer to a request about a URI.
    async fn uri(&self, server: &Server, method: &str, uri: &str) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "uri": uri } });
        self.post(server, &body).await.response(&json!(1)).await
    }

    /// Asks for what follows an event of a call.
    pub async fn resume(&self, server: &Server, event: &str) -> Exchange {
        let headers = [
            ("Accept", "text/event-stream"),
            ("X-Forwarded-For", self.address),
            ("Mcp-Session-Id", &self.session),
            ("MCP-Protocol-Version", VERSION),
            ("Last-Event-ID", event),
        ];
        let mut exchange = server.send("GET", "/mcp", &headers, b"").await;
        exchange.asked = Some(("tools/call".into(), VERSION.into()));
        exchange
    }

    async fn delete(&self, server: &Server) -> (u16, String) {
        let headers = [("X-Forwarded-For", self.address), ("Mcp-Session-Id", &self.session)];
        let mut ended = server.send("DELETE", "/mcp", &headers, b"").await;
        let status = ended.status();
        (status, if status == 204 { String::new() } else { ended.json().await.to_string() })
    }
}

/// Returns a number that Redis says of itself.
async fn used_memory(redis: &Redis) -> usize {
    let info = String::from_utf8(redis.command(&[b"INFO", b"memory"]).await).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("it says so");
    line.trim().parse().unwrap()
}

/// Returns what is charged to all clients.
async fn held(redis: &Redis) -> usize {
    let reply = String::from_utf8(redis.command(&[b"HGET", b"wharf:held", b"total"]).await).unwrap();
    reply.lines().nth(1).and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// A session that has ended is remembered for a week. A client that ends more of them than it may keeps no other client from it.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_ends_many_sessions_leaves_room_for_others() {
    let replicas = replicas(2).await;
    let [one, other]: &[Server] = replicas.all.as_slice() else { panic!("two") };
    let before = used_memory(&replicas.redis).await;
    let mut ended = 0;
    let refused = loop {
        let server = if ended % 2 == 0 { one } else { other };
        let greedy = Client::opened(server, "192.0.2.1").await;
        match greedy.delete(server).await {
            (204, _) => ended += 1,
            refused => break refused,
        }
        assert!(ended < 2000, "it is charged");
    };
    assert!(refused.0 == 503 && refused.1.contains("memory_mib"), "{refused:?}");
    assert!(ended > 300, "{ended}");
    let (grown, charged) = (used_memory(&replicas.redis).await - before, held(&replicas.redis).await);
    // Besides values, Redis has the scripts, and what its connections take.
    assert!(grown < charged + (256 << 10), "{grown} bytes, {charged} charged");
    assert!(charged <= 1 << 19, "a half: {charged}");
    for (number, server) in [one, other].into_iter().enumerate() {
        let modest = Client::opened(server, "192.0.2.2").await;
        let said = modest.uri(server, "resources/subscribe", "note:///x").await;
        assert!(said["error"].is_null(), "{said}");
        assert_eq!(modest.delete(server).await, (204, String::new()), "{number}");
    }
}

/// What is taken away is not charged any more, and what does not fit is refused in words.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_ends_gives_its_room_back() {
    let replicas = replicas(1).await;
    let server = &replicas.all[0];
    let client = Client::opened(server, "192.0.2.1").await;
    let uri = |number: usize| format!("note:///{number:04}{}", "x".repeat(4000));
    let mut subscribed = 0;
    let refused = loop {
        let said = client.uri(server, "resources/subscribe", &uri(subscribed)).await;
        if !said["error"].is_null() {
            break said;
        }
        subscribed += 1;
        assert!(subscribed < 1000, "it is charged");
    };
    assert!(refused["error"]["message"].as_str().unwrap().contains("memory_mib"), "{refused}");
    let held_before = held(&replicas.redis).await;
    for number in 0..subscribed {
        let said = client.uri(server, "resources/unsubscribe", &uri(number)).await;
        assert!(said["error"].is_null(), "{said}");
    }
    let held_after = held(&replicas.redis).await;
    assert!(held_after < 2000 && held_before > 300 << 10, "{held_before}, then {held_after}");
    let said = client.uri(server, "resources/subscribe", &uri(0)).await;
    assert!(said["error"].is_null(), "{said}");
}

/// A task whose result does not fit has failed, and says why.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_result_does_not_fit_has_failed() {
    let replicas = replicas(2).await;
    let [one, other]: &[Server] = replicas.all.as_slice() else { panic!("two") };
    let id = begin(one, json!({ "text": "x".repeat(900 << 10) })).await;
    let failed = until(other, &id, "failed").await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("memory_mib"), "{failed}");
    let id = begin(one, json!({ "text": "small" })).await;
    assert_eq!(text(&until(other, &id, "completed").await["result"]), "small");
}

/// An answer to a question that nobody asked goes to no other replica.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_no_question_is_not_passed_on() {
    let replicas = replicas(2).await;
    let [one, other]: &[Server] = replicas.all.as_slice() else { panic!("two") };
    let client = Client::opened(one, "192.0.2.1").await;
    let members =
        String::from_utf8(replicas.redis.command(&[b"ZRANGE", b"wharf:replicas", b"0", b"-1"]).await).unwrap();
    let addresses: Vec<&str> = members.lines().filter(|line| line.len() == 32).collect();
    assert_eq!(addresses.len(), 2, "{members}");
    let mut recorded = replicas.redis.record().await;
    for address in addresses {
        for end in ["x-1", "x-1.0011223344556677"] {
            let id = format!("wharf-{address}.{end}");
            let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "decline" } });
            assert_eq!(client.post(other, &answer).await.status(), 202);
        }
    }
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "a" } });
    assert_eq!(client.post(other, &cancelled).await.status(), 202);
    let (channel, _) = recorded.next("").await;
    assert!(channel.ends_with(b":all"), "{}", String::from_utf8_lossy(&channel));
}
