//! Sessions of which each request goes to another replica.

use e2e::{Exchange, LEGACY, Server, Session, json, text};
use rustix::process::Signal;

use super::common::{Replicas, able, has_ended, ping};

/// Uses what a session can do: calls, roots, which the server asks for, and a form, whose answer goes to another replica.
async fn works(session: &mut Session<'_>, note: &std::path::Path) {
    let revision = session.revision.clone();
    assert_eq!(text(&session.call("sum", json!({ "n": 3 })).await), "{\"sum\":6}", "{revision}");
    assert_eq!(text(&session.call("read", json!({ "path": note })).await), "of a root", "{revision}");
    if revision.as_str() >= "2025-06-18" {
        assert_eq!(text(&session.call("purge", json!({})).await), "deleted: old", "{revision}");
    }
}

fn answers(session: &mut Session<'_>, note: &std::path::Path) {
    let root = format!("file://{}", note.parent().unwrap().display());
    session.answer_with(move |method, _| match method {
        "roots/list" => Some(json!({ "roots": [{ "uri": root }] })),
        "elicitation/create" => Some(json!({ "action": "accept", "content": { "really": true, "reason": "old" } })),
        _ => None,
    });
}

/// Waits until the stream says that this resource has changed, and returns the methods of what it said before.
async fn said(stream: &mut Exchange, uri: &str) -> Vec<String> {
    let mut said = Vec::new();
    loop {
        let event = stream.event().await.expect("the stream goes on");
        if event["params"]["uri"] == uri {
            return said;
        }
        said.push(event["method"].as_str().unwrap_or_default().to_owned());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_replica_answers_any_request_of_a_session() {
    let mut replicas = Replicas::start(3).await;
    let note = replicas.note();
    let server = replicas.in_turns();
    for revision in LEGACY {
        let mut session = server.legacy(revision, able()).await;
        answers(&mut session, &note);
        for _ in 0..6 {
            works(&mut session, &note).await;
        }
    }
}

/// Subscribes at one replica, has the resource changed at the next, and listens at a third.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_sets_and_what_changes_reaches_its_stream() {
    let mut replicas = Replicas::start(3).await;
    let server = replicas.in_turns();
    let mut session = server.legacy("2025-11-25", able()).await;
    let mut stream = session.stream().await;
    for number in 0..4 {
        let uri = format!("note:///{number}");
        session.request("resources/subscribe", json!({ "uri": uri })).await.unwrap();
        session.call("g_t", json!({ "updated": uri })).await;
        assert_eq!(said(&mut stream, &uri).await, [""; 0], "the lists are the same");
    }
    // A later stream is at another replica, and the earlier one ends.
    let mut other = session.stream().await;
    assert!(stream.event().await.is_none());
    session.call("g_t", json!({ "updated": "note:///2" })).await;
    assert_eq!(said(&mut other, "note:///2").await, [""; 0]);
}

/// A client that was cut off resumes its stream at another replica, and misses nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_resumed_at_another_replica() {
    let mut replicas = Replicas::start(2).await;
    let addresses: Vec<_> = replicas.all.iter().map(|server| server.address).collect();
    let server = replicas.in_turns();
    let mut session = server.legacy("2025-11-25", able()).await;
    session.request("resources/subscribe", json!({ "uri": "note:///x" })).await.unwrap();
    let mut stream = session.stream().await;
    let first = stream.frame().await.expect("the event that opens the stream").id.expect("its id");
    drop(stream);
    session.call("g_t", json!({ "updated": "note:///x" })).await;
    // Each of them gets it from the one that has it.
    for _ in &addresses {
        let mut resumed = session.resume(&first, "").await;
        assert_eq!(resumed.status(), 200);
        assert_eq!(said(&mut resumed, "note:///x").await, [""; 0]);
    }
}

/// The same for the answer to a request whose client was cut off.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_fetched_from_another_replica() {
    let mut replicas = Replicas::start(2).await;
    let server = replicas.in_turns();
    let mut session = server.legacy("2025-11-25", able()).await;
    for _ in 0..2 {
        let (id, mut exchange) =
            session.begin("tools/call", json!({ "name": "g_t", "arguments": { "ms": 300 } })).await;
        let first = exchange.frame().await.expect("the event that opens the stream").id.expect("its id");
        drop(exchange);
        let mut resumed = session.resume(&first, "tools/call").await;
        let answer = resumed.response(&id).await;
        assert!(answer.get("result").is_some(), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_ended_has_ended_everywhere() {
    let replicas = Replicas::start(2).await;
    let [one, other] = replicas.all.as_slice() else { panic!("two") };
    let session = one.legacy("2025-11-25", able()).await;
    // Known at both.
    let mut session = other.attach(session.detach());
    assert_eq!(ping(&mut session).await, 200);
    assert_eq!(session.delete().await.status(), 204);
    let mut session = one.attach(session.detach());
    has_ended(&mut session).await;
    assert_eq!(session.delete().await.status(), 404);
}

/// A request that runs at one replica is cancelled at another.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_cancelled_at_another_replica() {
    let replicas = Replicas::start(2).await;
    let [one, other]: &[Server] = replicas.all.as_slice() else { panic!("two") };
    let session = one.legacy("2025-11-25", able()).await;
    let mut session = session;
    let (id, mut exchange) = session.begin("tools/call", json!({ "name": "g_t", "arguments": { "ms": 50_000 } })).await;
    let session = other.attach(session.detach());
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    assert_eq!(session.post(&cancelled).await.status(), 202);
    while exchange.event().await.is_some() {}
}

/// Ids and URIs of any length reach the replica that a client is connected to, and none of the others.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_long_is_told_to_other_replicas() {
    let replicas = Replicas::start(2).await;
    let mut session = replicas.all[0].legacy("2025-11-25", able()).await;
    let mut told = replicas.redis.record().await;
    let long = "x".repeat(1 << 20);
    let refused = session.request("resources/unsubscribe", json!({ "uri": format!("note:///{long}") })).await;
    assert!(refused.unwrap_err()["message"].as_str().unwrap().contains("8192 bytes"));
    for id in [json!(long), json!("short")] {
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        assert_eq!(session.post(&cancelled).await.status(), 202);
    }
    let (_, message) = told.next(":all").await;
    assert!(message.len() < 2048, "{} bytes", message.len());
}

/// A client whose stream was lost with its replica is told of all its resources when it comes back, since it may have missed changes.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_lost_its_stream_is_told_of_its_resources() {
    let mut replicas = Replicas::start(2).await;
    let killed = replicas.all.remove(0);
    let other = &replicas.all[0];
    let mut session = killed.legacy("2025-11-25", able()).await;
    session.request("resources/subscribe", json!({ "uri": "note:///x" })).await.unwrap();
    let mut stream = session.stream().await;
    let last = stream.frame().await.expect("the event that opens the stream").id.expect("its id");
    let detached = session.detach();
    killed.signal(Signal::KILL);
    killed.terminated().await;
    let mut session = other.attach(detached);
    session.call("g_t", json!({ "updated": "note:///x" })).await;
    let mut resumed = session.resume(&last, "").await;
    assert_eq!(said(&mut resumed, "note:///x").await, [""; 0]);
}
