//! Limits on calls that count over all replicas.

use e2e::{Server, json, text};

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
