//! Tasks and approvals that begin at one replica and go on at others.

use std::time::Instant;

use e2e::{PATIENCE, Server, Value, json, text};
use rustix::process::Signal;

use super::common::{Replicas, able};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

pub fn with_tasks() -> Value {
    json!({ "elicitation": {}, "extensions": { EXTENSION: {} } })
}

pub async fn begin(server: &Server, arguments: Value) -> Value {
    let made =
        server.modern("tools/call", json!({ "name": "g_t", "arguments": arguments }), with_tasks()).await.unwrap();
    assert_eq!(made["resultType"], "task", "{made}");
    made["taskId"].clone()
}

pub async fn until(server: &Server, id: &Value, status: &str) -> Value {
    let began = Instant::now();
    loop {
        let now = server.modern("tasks/get", json!({ "taskId": id }), with_tasks()).await.unwrap();
        if now["status"] == status {
            return now;
        }
        assert!(began.elapsed() < PATIENCE, "not {status}: {now}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_found_answered_and_cancelled_at_any_replica() {
    let mut replicas = Replicas::start(3).await;
    let server = replicas.in_turns();
    for round in 0..3 {
        let id = begin(server, json!({ "text": "done" })).await;
        assert_eq!(text(&until(server, &id, "completed").await["result"]), "done", "{round}");
        let id = begin(server, json!({ "ask": [["name"]] })).await;
        let asks = until(server, &id, "input_required").await;
        assert!(asks["inputRequests"].get("name").is_some(), "{asks}");
        let wrong = json!({ "taskId": id, "inputResponses": { "name": 7 } });
        assert!(server.modern("tasks/update", wrong, with_tasks()).await.is_err());
        let answer = json!({ "name": { "action": "accept", "content": { "v": "Ada" } } });
        server.modern("tasks/update", json!({ "taskId": id, "inputResponses": answer }), with_tasks()).await.unwrap();
        assert_eq!(text(&until(server, &id, "completed").await["result"]), "name");
        let id = begin(server, json!({ "ms": 50_000 })).await;
        server.modern("tasks/cancel", json!({ "taskId": id }), with_tasks()).await.unwrap();
        until(server, &id, "cancelled").await;
    }
}

/// The tasks of 2025-11-25, whose result the client waits for, and whose questions come on that stream.
#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_task_is_waited_for_and_asks_at_any_replica() {
    let mut replicas = Replicas::start(3).await;
    let server = replicas.in_turns();
    let mut session = server.legacy("2025-11-25", able()).await;
    session.answer_with(|method, _| {
        (method == "elicitation/create").then(|| json!({ "action": "accept", "content": { "v": "Ada" } }))
    });
    for arguments in [json!({ "text": "done" }), json!({ "ask": [["name"]] }), json!({ "ms": 500, "text": "late" })] {
        for _ in 0..3 {
            let call = json!({ "name": "g_t", "arguments": arguments, "task": { "ttl": 60_000 } });
            let made = session.request("tools/call", call).await.unwrap();
            let id = made["task"]["taskId"].clone();
            let result = session.request("tasks/result", json!({ "taskId": id })).await.unwrap();
            let expected = arguments.get("text").and_then(Value::as_str).unwrap_or("name");
            assert_eq!(text(&result), expected, "{arguments}");
            let listed = session.request("tasks/list", json!({})).await.unwrap();
            assert!(listed["tasks"].as_array().unwrap().iter().any(|task| task["taskId"] == id), "{listed}");
        }
    }
}

/// A task whose replica is killed has failed; the result of one that had ended is still there.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_fails_with_its_replica_and_a_result_outlives_it() {
    let mut replicas = Replicas::start(2).await;
    let killed = replicas.all.remove(0);
    let done = begin(&killed, json!({ "text": "done" })).await;
    until(&killed, &done, "completed").await;
    let runs = begin(&killed, json!({ "ms": 50_000 })).await;
    killed.signal(Signal::KILL);
    killed.terminated().await;
    let other = &replicas.all[0];
    assert_eq!(text(&until(other, &done, "completed").await["result"]), "done");
    let failed = until(other, &runs, "failed").await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("has stopped"), "{failed}");
}

fn approving(state: &Value) -> Value {
    json!({
        "name": "g_t", "arguments": { "text": "done" },
        "requestState": state, "inputResponses": { "wharf.approve": { "action": "accept", "content": {} } },
    })
}

/// An approval that one replica asked for is good at each of them, once.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_good_at_any_replica_once() {
    let replicas = Replicas::with(2, "", "confirm = \"all\"").await;
    let [one, other]: &[Server] = replicas.all.as_slice() else { panic!("two") };
    let can = || json!({ "elicitation": {} });
    for (asks, runs) in [(one, other), (other, one), (one, one)] {
        let call = json!({ "name": "g_t", "arguments": { "text": "done" } });
        let asked = asks.modern("tools/call", call, can()).await.unwrap();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let state = &asked["requestState"];
        assert_eq!(text(&runs.modern("tools/call", approving(state), can()).await.unwrap()), "done");
        for again in [one, other] {
            let error = again.modern("tools/call", approving(state), can()).await.unwrap_err();
            assert!(error["message"].as_str().unwrap().contains("used already"), "{error}");
        }
    }
}
