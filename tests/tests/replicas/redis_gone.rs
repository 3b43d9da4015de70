//! Redis that does not answer, comes back empty, or answers what no replica has written.

use e2e::{Server, json, text};

use super::common::{Replicas, able};

async fn calls(server: &Server, sessions: usize) {
    for _ in 0..sessions {
        let call = json!({ "name": "g_t", "arguments": { "text": "done" } });
        assert_eq!(text(&server.modern("tools/call", call, json!({})).await.unwrap()), "done");
        let mut session = server.legacy("2025-11-25", able()).await;
        for _ in 0..3 {
            assert_eq!(text(&session.call("g_t", json!({ "text": "done" })).await), "done");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_lists_go_on_without_redis_and_sharing_with_it() {
    let mut replicas = Replicas::start(3).await;
    replicas.redis.kill().await;
    calls(replicas.in_turns(), 3).await;
    for server in &replicas.all {
        server.wait_for_log("Redis does not answer").await;
    }
    let server = &replicas.all[0];
    calls(server, 3).await;
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
    // What cannot be true at other replicas is not said.
    let session = server.legacy("2025-11-25", able()).await;
    assert_eq!(session.delete().await.status(), 503);
    let with_tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let call = json!({ "name": "g_t", "arguments": { "text": "done" } });
    // A tool that may become a task does not have to.
    assert_eq!(text(&server.modern("tools/call", call, with_tasks.clone()).await.unwrap()), "done");
    let refused = server.modern("tasks/get", json!({ "taskId": "x" }), with_tasks).await.unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("cannot be reached now"), "{refused}");
    replicas.redis.again().await;
    for server in &replicas.all {
        server.wait_for_log("Redis answers again").await;
    }
    let server = &replicas.all[0];
    calls(server, 3).await;
    assert_eq!(session_ends(server).await, 204);
}

async fn session_ends(server: &Server) -> u16 {
    server.legacy("2025-11-25", able()).await.delete().await.status()
}

/// A server that does not answer, with open connections, does not make requests wait for long.
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_hangs_holds_nobody_up() {
    let mut replicas = Replicas::start(2).await;
    replicas.redis.freeze();
    for server in &replicas.all {
        server.wait_for_log("Redis does not answer").await;
    }
    calls(replicas.in_turns(), 2).await;
    replicas.redis.thaw();
    for server in &replicas.all {
        server.wait_for_log("Redis answers again").await;
    }
}

/// Anyone who can write in Redis can take away, but not give.
#[tokio::test(flavor = "multi_thread")]
async fn what_no_replica_has_written_counts_for_nothing() {
    let replicas = Replicas::with(2, "", "confirm = \"all\"").await;
    let [one, other]: &[Server] = replicas.all.as_slice() else { panic!("two") };
    let mut asks = one.legacy("2025-11-25", able()).await;
    asks.answer_with(|method, _| {
        (method == "elicitation/create").then(|| json!({ "action": "accept", "content": { "remember": "session" } }))
    });
    assert_eq!(text(&asks.call("g_t", json!({ "text": "done" })).await), "done");
    let key = replicas.redis.keys().await.into_iter().find(|key| key.contains(":approved:")).expect("it is shared");
    let sealed = replicas.redis.get(&key).await;
    // The approval of one session does not become that of another one, and neither does anything that nobody sealed.
    let session = other.legacy("2025-11-25", able()).await;
    let mut victim = session;
    victim.answer_with(|method, _| (method == "elicitation/create").then(|| json!({ "action": "decline" })));
    let refused = victim.call("g_t", json!({ "text": "done" })).await;
    assert!(text(&refused).contains("answered no"), "{refused}");
    let forged = format!("wharf:approved:{}:{}", digest_of(&victim.id), key.rsplit(':').next().unwrap());
    for value in [sealed.as_slice(), b"9999999999999", b""] {
        replicas.redis.command(&[b"SET", forged.as_bytes(), value]).await;
        let refused = victim.call("g_t", json!({ "text": "done" })).await;
        assert!(text(&refused).contains("answered no"), "{refused}");
    }
    other.wait_for_log("that no replica with these keys has written").await;
    // It is known at the other replica, and only while Redis has it.
    let mut known = other.attach(asks.detach());
    known.answer_with(|method, _| (method == "elicitation/create").then(|| json!({ "action": "decline" })));
    assert_eq!(text(&known.call("g_t", json!({ "text": "done" })).await), "done");
    replicas.redis.command(&[b"FLUSHALL"]).await;
    assert!(text(&known.call("g_t", json!({ "text": "done" })).await).contains("answered no"));
    // Messages of others are nothing either.
    replicas.redis.command(&[b"PUBLISH", b"wharf:all", b"{\"Tell\":1}"]).await;
    calls_known(other).await;
}

async fn calls_known(server: &Server) {
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
}

/// The digest under which the approvals of a session are stored.
fn digest_of(session: &str) -> String {
    use ring::digest::{SHA256, digest};
    digest(&SHA256, format!("session {session}").as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
