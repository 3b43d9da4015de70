//! What one replica sends another for a client is charged to that client there, and what does not fit is refused in words.

use e2e::{Server, Value, json, text};

use super::{charged::Client, common::Replicas};

/// Starts two replicas, of which the second one has little memory for what clients send and get.
async fn replicas() -> Replicas {
    let more = "[http]\ntrusted_proxies = [\"127.0.0.1\"]\n[limits]\ntotal_host_memory_mib = 512\noutput_kib = 8192\n";
    let mut replicas = Replicas::with(1, more, "limits = { timeout_ms = 60000 }").await;
    replicas.another("total_host_memory_mib = 512", "total_host_memory_mib = 16").await;
    replicas
}

fn call(arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": "g_t", "arguments": arguments } })
}

/// Begins a call at one replica, leaves its stream, and returns the answer that another one gives.
async fn elsewhere(client: &Client, (one, other): (&Server, &Server), said: &str) -> Value {
    let mut exchange = client.post(one, &call(&json!({ "ms": 300, "text": said }))).await;
    let first = exchange.frame().await.expect("the event that opens the stream").id.expect("its id");
    drop(exchange);
    let mut resumed = client.resume(other, &first).await;
    assert_eq!(resumed.status(), 200);
    resumed.response(&json!(7)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_another_replica_is_charged_to_who_follows_it() {
    let replicas = replicas().await;
    let [one, small]: &[Server] = replicas.all.as_slice() else { panic!("two") };
    let (greedy, modest) = (Client::opened(one, "192.0.2.1").await, Client::opened(one, "192.0.2.2").await);
    let answer = elsewhere(&greedy, (one, small), &"x".repeat(5 << 20)).await;
    let error = answer["error"]["message"].as_str().expect("an error");
    assert!(error.contains("another replica") && error.contains("total_host_memory_mib"), "{error}");
    for client in [&modest, &greedy] {
        assert_eq!(text(&elsewhere(client, (one, small), "small").await["result"]), "small");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_a_question_of_another_replica_is_charged_there() {
    let replicas = replicas().await;
    let [one, small]: &[Server] = replicas.all.as_slice() else { panic!("two") };
    let client = Client::opened(one, "192.0.2.1").await;
    let mut exchange = client.post(small, &call(&json!({ "ask": [["name"]] }))).await;
    let question = loop {
        let event = exchange.event().await.expect("it asks");
        if event["method"] == "elicitation/create" {
            break event["id"].clone();
        }
    };
    let answer = |said: &str| json!({ "jsonrpc": "2.0", "id": question, "result": { "action": "accept", "content": { "v": said } } });
    let mut refused = client.post(one, &answer(&"x".repeat(2 << 20))).await;
    assert_eq!(refused.status(), 503);
    let error = refused.json().await["error"]["message"].as_str().expect("an error").to_owned();
    assert!(error.contains("does not fit") && error.contains("total_host_memory_mib"), "{error}");
    assert_eq!(client.post(one, &answer("Ada")).await.status(), 202, "the question is still open");
    assert_eq!(text(&exchange.response(&json!(7)).await["result"]), "name");
}
