//! One replica alone is cut off from Redis, and comes back.

use std::time::Instant;

use e2e::{PATIENCE, Redis, Server, Wire, json, text};

use super::{
    common::{Replicas, able},
    tasks::{begin, until},
};

async fn calls(server: &Server) {
    let call = json!({ "name": "g_t", "arguments": { "text": "done" } });
    assert_eq!(text(&server.modern("tools/call", call, json!({})).await.unwrap()), "done");
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_cut_off_goes_on_and_learns_what_it_has_missed() {
    let folder = e2e::Folder::new();
    let redis = Redis::start(&folder).await;
    let wire = Wire::to(redis.address).await;
    let addresses = [wire.address, redis.address];
    let cluster = |at: usize| format!("redis = \"redis://{}\"\n", addresses[at]);
    let replicas = Replicas::of(redis, 2, "", cluster, "limits = { timeout_ms = 60000 }").await;
    let [alone, other]: &[Server] = replicas.all.as_slice() else { panic!("two") };
    let session = other.legacy("2025-11-25", able()).await;
    let mut session = alone.attach(session.detach());
    assert_eq!(text(&session.call("g_t", json!({ "text": "done" })).await), "done");
    let id = begin(alone, json!({ "ms": 25_000, "text": "late" })).await;
    wire.cut();
    alone.wait_for_log("Redis does not answer").await;
    for server in [alone, other] {
        calls(server).await;
    }
    // Its client ends the session at the other replica. The one that is cut off cannot know.
    let session = other.attach(session.detach());
    assert_eq!(session.delete().await.status(), 204);
    let mut session = alone.attach(session.detach());
    assert_eq!(text(&session.call("g_t", json!({ "text": "done" })).await), "done");
    // For the other one, it has stopped.
    let failed = until(other, &id, "failed").await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("has stopped"), "{failed}");
    assert!(!other.log().contains("Redis does not answer"), "{}", other.log());
    wire.mend();
    alone.wait_for_log("Redis answers again").await;
    let began = Instant::now();
    while session.begin("ping", json!({})).await.1.status() != 404 {
        assert!(began.elapsed() < PATIENCE, "the session goes on");
    }
    // The task has failed for everybody, although it ran to its end.
    until(alone, &id, "failed").await;
    let done = begin(alone, json!({ "text": "done" })).await;
    assert_eq!(text(&until(other, &done, "completed").await["result"]), "done");
}
