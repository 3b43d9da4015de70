//! Redis that does not answer, comes back empty, or answers what no replica has written.

use e2e::{PATIENCE, Server, json, text};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

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
    let mut refused = server.open_modern(json!(1), "tasks/get", json!({ "taskId": "x" }), with_tasks).await;
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("1")));
    let refused = refused.json().await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("cannot be reached now"), "{refused}");
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

/// What Redis has no memory for is refused, and the rest goes on: that is not a Redis that does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_redis_is_not_one_that_does_not_answer() {
    let replicas = Replicas::with(2, "", "limits = { calls_per_hour = 4, timeout_ms = 60000 }").await;
    let [one, other]: &[Server] = replicas.all.as_slice() else { panic!("two") };
    let set_most = async |bytes: &[u8]| {
        assert_eq!(replicas.redis.command(&[b"CONFIG", b"SET", b"maxmemory", bytes]).await, b"+OK\r\n");
    };
    set_most(b"1").await;
    let session = one.legacy("2025-11-25", able()).await;
    assert_eq!(session.delete().await.status(), 503);
    one.wait_for_log("Redis is full").await;
    // Calls are still counted over all, and messages come through.
    for server in [one, other, one, other] {
        let call = json!({ "name": "g_t", "arguments": { "text": "done" } });
        assert_eq!(text(&server.modern("tools/call", call, json!({})).await.unwrap()), "done");
    }
    for server in [one, other] {
        let call = json!({ "name": "g_t", "arguments": { "text": "done" } });
        let refused = server.modern("tools/call", call, json!({})).await;
        assert!(!refused.is_ok_and(|result| text(&result) == "done"), "it has none left");
    }
    set_most(b"0").await;
    assert_eq!(session_ends(one).await, 204, "nothing has to be found out first");
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
    let dumped = replicas.redis.dump(&key).await;
    // The approval of one session does not become that of another one, and neither does anything that nobody sealed.
    let session = other.legacy("2025-11-25", able()).await;
    let mut victim = session;
    victim.answer_with(|method, _| (method == "elicitation/create").then(|| json!({ "action": "decline" })));
    let refused = victim.call("g_t", json!({ "text": "done" })).await;
    assert!(text(&refused).contains("answered no"), "{refused}");
    let forged = format!("wharf:approved:{}:{}", digest_of(&victim.id), key.rsplit(':').next().unwrap());
    for value in [None, Some(b"9999999999999".as_slice()), Some(b"")] {
        match value {
            None => replicas.redis.restore(&forged, &dumped).await,
            Some(value) => drop(replicas.redis.command(&[b"HSET", forged.as_bytes(), b"=", value]).await),
        }
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

/// Returns the value of a metric.
async fn metric(server: &Server, name: &str) -> Option<f64> {
    let line = server.wait_for_log("serving metrics at ").await;
    let (_, address) = line.split_once("serving metrics at http://").expect("an address");
    let address = address.split_once('/').expect("a path").0;
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut text)).await.expect("an answer").unwrap();
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

async fn until_metric(server: &Server, name: &str, value: f64) {
    let is = async { while metric(server, name).await != Some(value) {} };
    timeout(PATIENCE, is).await.unwrap_or_else(|_| panic!("{name} is not {value}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_say_whether_redis_answers_and_how_many_replicas_run() {
    let mut replicas = Replicas::with(2, "[admin]\nlisten = \"127.0.0.1:0\"\n", "").await;
    for server in &replicas.all {
        until_metric(server, "wharf_redis_up", 1.0).await;
        until_metric(server, "wharf_replicas", 2.0).await;
    }
    replicas.redis.kill().await;
    for server in &replicas.all {
        until_metric(server, "wharf_redis_up", 0.0).await;
        assert_eq!(metric(server, "wharf_replicas").await, Some(2.0), "as far as is known");
    }
    replicas.redis.again().await;
    for server in &replicas.all {
        until_metric(server, "wharf_redis_up", 1.0).await;
    }
}

/// Clients do not send an answer again, so one that cannot be passed on is held, and passed on as soon as it can be.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_waits_for_redis() {
    let mut replicas = Replicas::start(2).await;
    let [one, other]: &[Server] = replicas.all.as_slice() else { panic!("two") };
    let mut session = one.legacy("2025-11-25", able()).await;
    let call = json!({ "name": "g_t", "arguments": { "ask": [["name"]] } });
    let (id, mut exchange) = session.begin("tools/call", call).await;
    let asked = loop {
        let event = exchange.event().await.expect("a question");
        if event["method"] == "elicitation/create" {
            break event["id"].clone();
        }
    };
    let session = other.attach(session.detach());
    let answer = json!({ "jsonrpc": "2.0", "id": asked, "result": { "action": "accept", "content": { "v": "Ada" } } });
    replicas.redis.kill().await;
    other.wait_for_log("Redis does not answer").await;
    let (taken, ()) = tokio::join!(session.post(&answer), replicas.redis.again());
    assert_eq!(taken.status(), 202);
    assert_eq!(text(&exchange.response(&id).await["result"]), "name");
}

/// What clients have set is stored again by the replicas that have their sessions, after Redis has lost it.
#[tokio::test(flavor = "multi_thread")]
async fn settings_of_sessions_outlive_an_empty_redis() {
    let mut replicas = Replicas::start(2).await;
    let detached = {
        let mut session = replicas.all[0].legacy("2025-11-25", able()).await;
        session.request("resources/subscribe", json!({ "uri": "note:///x" })).await.unwrap();
        session.detach()
    };
    for restarts in [true, false] {
        if restarts {
            replicas.redis.kill().await;
            replicas.redis.again().await;
        } else {
            replicas.redis.command(&[b"FLUSHALL"]).await;
        }
        let stored = async { while !replicas.redis.keys().await.iter().any(|key| key.contains(":session:")) {} };
        timeout(PATIENCE, stored).await.expect("it is stored again");
    }
    let later = replicas.one_more().await;
    let mut session = later.attach(detached);
    let mut stream = session.stream().await;
    session.call("g_t", json!({ "updated": "note:///x" })).await;
    loop {
        let event = stream.event().await.expect("the stream goes on");
        if event["method"] == "notifications/resources/updated" {
            break;
        }
    }
}
