//! Limits on calls that count over all replicas.

use e2e::{Folder, Redis, Server, json, text};

use super::common::Replicas;

const BUSY: &str = "limits = { calls_per_hour = 6, timeout_ms = 60000 }";

/// Calls until it is refused, at most so often, and returns how many calls were not.
async fn passed(servers: &[&Server], most: usize) -> usize {
    let mut passed = 0;
    for at in 0..most {
        let server = servers[at % servers.len()];
        let call = json!({ "name": "g_t", "arguments": { "text": "done" } });
        match server.modern("tools/call", call, json!({})).await {
            Ok(result) if text(&result) == "done" => passed += 1,
            _ => {}
        }
    }
    passed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_counts_the_calls_of_all_replicas() {
    let replicas = Replicas::with(3, "", BUSY).await;
    let servers: Vec<&Server> = replicas.all.iter().collect();
    assert_eq!(passed(&servers, 20).await, 6);
}

/// Without Redis, each replica allows its share, and with it again, what was counted before still counts.
#[tokio::test(flavor = "multi_thread")]
async fn each_replica_allows_its_share_while_redis_does_not_answer() {
    let mut replicas = Replicas::with(3, "", BUSY).await;
    // Each knows of the two others.
    for server in &replicas.all {
        server.modern("tools/list", json!({}), json!({})).await.unwrap();
    }
    replicas.redis.kill().await;
    let alone = &replicas.all[0];
    let allowed = passed(&[alone], 10).await;
    assert!((2..=6).contains(&allowed), "{allowed}");
}

/// Who has used up a limit gets no more calls by it that Redis does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_is_used_up_stays_so_while_redis_does_not_answer() {
    let mut replicas = Replicas::with(2, "", BUSY).await;
    let servers: Vec<&Server> = replicas.all.iter().collect();
    assert_eq!(passed(&servers, 8).await, 6);
    replicas.redis.kill().await;
    let servers: Vec<&Server> = replicas.all.iter().collect();
    assert_eq!(passed(&servers, 4).await, 0);
}

/// Where the operator wants no call that is not counted, such a call is refused for now.
#[tokio::test(flavor = "multi_thread")]
async fn calls_with_limits_are_refused_while_redis_does_not_answer() {
    let folder = Folder::new();
    let redis = Redis::start(&folder).await;
    let cluster = format!("redis = \"redis://{}\"\nlimits_without_redis = \"refuse\"\n", redis.address);
    let mut replicas = Replicas::of(redis, 1, "", |_| cluster.clone(), BUSY).await;
    let counted = json!({ "name": "g_t", "arguments": { "text": "done" } });
    let other = json!({ "name": "every_kind", "arguments": {} });
    replicas.redis.kill().await;
    let server = &replicas.all[0];
    let mut refused = server.open_modern(json!(1), "tools/call", counted.clone(), json!({})).await;
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("1")));
    let refused = refused.json().await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("cannot be counted now"), "{refused}");
    server.modern("tools/call", other, json!({})).await.unwrap();
    replicas.redis.again().await;
    replicas.all[0].wait_for_log("Redis answers again").await;
    assert_eq!(text(&replicas.all[0].modern("tools/call", counted, json!({})).await.unwrap()), "done");
}
