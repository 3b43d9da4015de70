//! Graceful shutdown: every accepted request is answered, unless it takes too long or the operator sends a second signal.

use std::time::{Duration, Instant};

use e2e::{Exchange, Folder, LEGACY, PATIENCE, Server, Value, given, json, prompt, scaled, text, together};
use http_body_util::BodyExt;
use hyper::{Response, body::Incoming, client::conn::http1::SendRequest, header::CONNECTION};
use rustix::process::Signal;
use tokio::time::timeout;

use crate::keeps::{Body, connected, request};

async fn started(more: &str) -> (Folder, Server) {
    let folder = Folder::new();
    folder.config(&format!("{more}\n{}", given("g", &json!({}), "limits = { timeout_ms = 60000 }")));
    let server = Server::loaded(&folder).await;
    (folder, server)
}

/// A call that waits for this long.
fn waits(ms: u64) -> Value {
    json!({ "name": "g_t", "arguments": { "ms": ms, "text": "done" } })
}

async fn ready(server: &Server) -> (u16, String) {
    let mut exchange = server.send("GET", "/readyz", &[], b"").await;
    (exchange.status(), exchange.text().await)
}

async fn listening(server: &Server) -> Exchange {
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let mut listening = server.open_modern(json!(7), "subscriptions/listen", listen, json!({})).await;
    assert_eq!(listening.event().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    listening
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_under_way_are_answered_and_what_waits_for_changes_ends() {
    let (_folder, server) = started("").await;
    let mut listening = listening(&server).await;
    let mut sessions = Vec::new();
    for revision in LEGACY {
        sessions.push(server.legacy(revision, json!({})).await);
    }
    let work = u64::try_from(scaled(Duration::from_secs(3)).as_millis()).unwrap();
    let mut streams = Vec::new();
    let mut calls = Vec::new();
    for session in &mut sessions {
        streams.push(session.stream().await);
        calls.push(session.begin("tools/call", waits(work)).await);
    }
    // It reports once before it waits, so that its answer has begun.
    let reports = json!({ "name": "g_t", "arguments": { "steps": 1, "ms": work, "text": "done" }, "_meta": { "progressToken": "p" } });
    let mut modern = server.open_modern(json!(8), "tools/call", reports, json!({})).await;
    assert!(modern.is_stream());
    let began = Instant::now();
    server.signal(Signal::TERM);
    assert_eq!(listening.response(&json!(7)).await["id"], 7);
    for (stream, revision) in streams.iter_mut().zip(LEGACY) {
        while stream.event().await.is_some() {}
        let told = stream.retry.is_some();
        assert_eq!(told, revision >= "2025-03-26", "{revision}: when to come back");
    }
    assert!(began.elapsed() < scaled(Duration::from_secs(2)), "streams end at once: {:?}", began.elapsed());
    for (id, mut call) in calls {
        assert_eq!(text(&call.response(&id).await["result"]), "done");
    }
    assert_eq!(text(&modern.response(&json!(8)).await["result"]), "done");
    let answered = began.elapsed();
    assert!(answered > Duration::from_millis(1500), "longer than the second that it used to be: {answered:?}");
    drop((sessions, listening));
    let (status, _, log) = server.terminated().await;
    assert!(status.success() && !log.contains("connections open"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_longer_than_the_operator_allows_is_ended() {
    let (_folder, server) = started("[http]\ndrain_s = 1").await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let (_, call) = session.begin("tools/call", waits(30_000)).await;
    drop(session);
    let (status, took, log) = server.terminate().await;
    drop(call);
    assert!(status.success() && log.contains("stopped with connections open"), "{log}");
    assert!(took > Duration::from_millis(900) && took < 2 * prompt(), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_at_once() {
    let (_folder, server) = started("").await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let (_, call) = session.begin("tools/call", waits(30_000)).await;
    drop(session);
    server.signal(Signal::TERM);
    server.wait_for_log("a second signal ends them").await;
    server.signal(Signal::INT);
    let (status, took, log) = server.terminated().await;
    drop(call);
    assert!(status.success() && log.contains("stopped by a second signal"), "{log}");
    assert!(took < prompt(), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_told_first_and_refuses_nobody_until_then() {
    let delay = scaled(Duration::from_secs(3));
    let (_folder, server) = started(&format!("[http]\ndrain_delay_s = {}", delay.as_secs())).await;
    assert_eq!(ready(&server).await, (200, "{\"ready\":true,\"missing\":[]}".into()));
    let began = Instant::now();
    server.signal(Signal::TERM);
    server.wait_for_log("a second signal ends them").await;
    assert_eq!(ready(&server).await, (503, "{\"ready\":false,\"missing\":[\"open\"]}".into()));
    assert_eq!(server.send("GET", "/livez", &[], b"").await.status(), 200);
    // Requests that arrive before all load balancers have noticed are served.
    let called = server.modern("tools/call", waits(0), json!({})).await;
    assert_eq!(text(&called.unwrap()), "done");
    assert!(began.elapsed() < delay, "the test is too slow for what it shows");
    let (status, _, _) = server.terminated().await;
    assert!(status.success() && began.elapsed() >= delay);
}

/// A client that keeps its connection alive, as most do.
struct Keeps<'a> {
    server: &'a Server,
    connection: SendRequest<Body>,
}

impl<'a> Keeps<'a> {
    async fn connect(server: &'a Server) -> Self {
        Self { server, connection: connected(server).await }
    }

    /// Whether the answer to a call says that the connection is closed. A request without an answer counts as lost.
    async fn call(&mut self) -> bool {
        let answered = async {
            self.connection.ready().await?;
            self.connection.send_request(request(self.server, waits(0), "tools/call")).await
        };
        let sent = timeout(PATIENCE, answered).await.expect("it takes too long");
        closes(sent.expect("a request was lost")).await
    }
}

async fn closes(response: Response<Incoming>) -> bool {
    let closes = response.headers().get(CONNECTION).is_some_and(|value| value == "close");
    let body = response.into_body().collect().await.expect("an answer was lost").to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("\"done\""), "{body:?}");
    closes
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_meanwhile_sends_its_client_elsewhere() {
    let delay = scaled(Duration::from_secs(3));
    let (_folder, server) = started(&format!("[http]\ndrain_delay_s = {}", delay.as_secs())).await;
    let (served, mut all_served) = tokio::sync::mpsc::channel(16);
    let clients = (0..16).map(|_| {
        let (server, served) = (&server, served.clone());
        async move {
            let mut client = Keeps::connect(server).await;
            assert!(!client.call().await, "nobody is sent away before");
            served.send(()).await.unwrap();
            // The connection continues until an answer closes it.
            while !client.call().await {}
            Instant::now()
        }
    });
    let ends = async {
        for _ in 0..16 {
            all_served.recv().await.unwrap();
        }
        server.signal(Signal::TERM);
        Instant::now()
    };
    let (told, began) = tokio::join!(together(clients), ends);
    for told in told {
        let after = told.duration_since(began);
        assert!(after < delay, "told while others are still served: {after:?}");
    }
    // Later requests are served as well, and get the same header.
    assert!(Keeps::connect(&server).await.call().await);
    assert!(server.terminated().await.0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_on_its_way_when_nobody_is_taken_in_any_more_is_answered() {
    let (_folder, server) = started("").await;
    let mut clients = Vec::new();
    for _ in 0..16 {
        let mut client = Keeps::connect(&server).await;
        assert!(!client.call().await);
        clients.push(client);
    }
    let mut listening = listening(&server).await;
    server.signal(Signal::TERM);
    // From this answer on, no connections are accepted.
    assert_eq!(listening.response(&json!(7)).await["id"], 7);
    let told = together(clients.into_iter().map(|mut client| async move { client.call().await })).await;
    assert!(told.iter().all(|told| *told), "{told:?}");
    let (status, took, _) = server.terminated().await;
    assert!(status.success() && took < prompt(), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sse_of_the_first_revision_ends_after_its_answers() {
    let (_folder, server) = started("[protocol]\nsse = true").await;
    let mut stream = server.send("GET", "/sse", &[("Accept", "text/event-stream")], b"").await;
    let endpoint = stream.frame().await.unwrap().data.unwrap();
    let post = async |body: Value| {
        let headers = [("Content-Type", "application/json")];
        let sent = server.send("POST", &format!("/{endpoint}"), &headers, body.to_string().as_bytes()).await;
        assert_eq!(sent.status(), 202);
    };
    let handshake =
        json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": "e2e", "version": "1" } });
    post(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake })).await;
    assert!(stream.frame().await.unwrap().data.unwrap().contains("\"result\""));
    post(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    post(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": waits(2500) })).await;
    server.signal(Signal::TERM);
    let answer = stream.frame().await.unwrap().data.unwrap();
    assert!(answer.contains("\"done\"") && answer.contains("\"id\":1"), "{answer}");
    assert_eq!(stream.frame().await, None);
    assert!(server.terminated().await.0.success());
}
