//! One client starts tasks, or calls that a program has to approve, as fast as it can. Another client, at another address, is served in the
//! meantime as if it were alone.

use std::time::{Duration, Instant};

use e2e::{
    Folder, PATIENCE, Server, Value, client::Client, given, http::modern_headers, json, modern_params, prompt, scaled,
    text, together,
};

/// The time limit for 99 of 100 requests of the other client.
const SOON: Duration = Duration::from_millis(250);

/// Sends a request of a client with the tasks extension. Returns its answer.
async fn asked(client: &Client<'_>, method: &str, params: Value) -> Value {
    let able = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": modern_params(params, able) });
    let headers = modern_headers(&body);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut exchange = client.send("POST", &headers, &body.to_string()).await;
    assert!(exchange.read_head().await, "{method}");
    serde_json::from_str(&exchange.text().await).unwrap()
}

async fn begin(client: &Client<'_>) -> Value {
    asked(client, "tools/call", json!({ "name": "opt_t", "arguments": { "ms": 1, "text": "done" } })).await
}

fn p99(mut took: Vec<Duration>) -> Duration {
    took.sort();
    took[(took.len() - 1) * 99 / 100]
}

/// More tasks than are stored, each of which ends at once and is stored for ten minutes.
#[tokio::test(flavor = "multi_thread")]
async fn one_client_does_not_take_the_places_of_all_tasks() {
    let folder = Folder::new();
    folder.config(&given("opt", &json!({ "task": "optional" }), ""));
    let server = Server::loaded(&folder).await;
    let (ann, ben) = (Client::at(&server, 1), Client::at(&server, 2));
    let mut refused = Vec::new();
    for _ in 0..65 {
        let answers = together((0..16).map(|_| begin(&ann))).await;
        refused.extend(answers.into_iter().filter(|answer| answer["result"]["resultType"] != "task"));
    }
    assert!(!refused.is_empty(), "she was not greedy enough");
    let mut took = Vec::new();
    for round in 0..50 {
        let began = Instant::now();
        let begun = begin(&ben).await;
        assert_eq!(begun["result"]["resultType"], "task", "{round}: {begun}");
        took.push(began.elapsed());
        let task = json!({ "taskId": begun["result"]["taskId"] });
        loop {
            let now = asked(&ben, "tasks/get", task.clone()).await["result"].take();
            if now["status"] == "completed" {
                assert_eq!(text(&now["result"]), "done");
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{round}: {now}");
        }
    }
    let p99 = p99(took);
    assert!(p99 <= scaled(SOON), "p99 {p99:?}");
    let told = refused[0]["error"]["message"].as_str().unwrap();
    assert!(told.contains("this client holds 768 of the 1024 places for stored tasks"), "{told}");
    server.terminate().await;
}

/// The results of tasks are kept for ten minutes. Those of a client without a session are charged to it.
#[tokio::test(flavor = "multi_thread")]
async fn results_of_one_clients_tasks_leave_memory_for_those_of_others() {
    let folder = Folder::new();
    let tasks = given("opt", &json!({ "task": "optional" }), "");
    folder.config(&format!("[limits]\ntotal_host_memory_mib = 256\n{tasks}"));
    let server = Server::loaded(&folder).await;
    let (ann, ben) = (Client::at(&server, 1), Client::at(&server, 2));
    let large = "x".repeat(1 << 20);
    // Returns the task once it has ended, or the refusal.
    let ended = async |client: &Client<'_>| {
        let call = json!({ "name": "opt_t", "arguments": { "text": large } });
        let mut now = asked(client, "tools/call", call).await;
        let began = Instant::now();
        while now["result"]["taskId"].is_string() && now["result"]["status"] == "working" {
            assert!(began.elapsed() < PATIENCE, "{now}");
            now = asked(client, "tasks/get", json!({ "taskId": now["result"]["taskId"] })).await;
        }
        now
    };
    let mut kept = 0;
    let refused = loop {
        let now = ended(&ann).await;
        if now["result"]["status"] != "completed" {
            break now;
        }
        kept += 1;
        assert!(kept < 256, "more than there is");
    };
    assert!(refused.to_string().contains("total_host_memory_mib"), "{refused}");
    for _ in 0..4 {
        let now = ended(&ben).await;
        assert_eq!(now["result"]["status"], "completed", "{}", now["result"]["error"]);
    }
    server.terminate().await;
}

/// Calls that wait for a program which does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn one_client_does_not_keep_the_program_for_approvals_from_others() {
    let folder = Folder::new();
    let asked = folder.join("asked");
    let script = format!("#!/bin/sh\necho >> {asked:?}\ngrep -q greedy && exec sleep 60\necho yes\n");
    let program = folder.write("approve", script);
    folder.set_mode("approve", 0o755);
    folder.plugin("echo");
    folder.config(&format!(
        "[approvals]\nask = {{ command = [{program:?}] }}\n[plugins.echo]\npath = \"../../plugins/echo.wasm\"\nprefix = \"\"\n\
         confirm = \"all\"\n"
    ));
    let server = Server::loaded(&folder).await;
    let (ann, ben) = (Client::at(&server, 1), Client::at(&server, 2));
    let call = |message: &str| json!({ "name": "echo", "arguments": { "message": message } });
    let mut pending = Vec::new();
    for _ in 0..32 {
        pending.push(ann.begin("tools/call", call("greedy")).await);
    }
    let began = Instant::now();
    let lines = || std::fs::read(&asked).unwrap_or_default().len();
    while lines() < 6 {
        assert!(began.elapsed() < PATIENCE, "{} questions", lines());
        tokio::task::yield_now().await;
    }
    for round in 0..10 {
        let began = Instant::now();
        let mut exchange = ben.begin("tools/call", call("well")).await;
        assert!(exchange.read_head().await);
        let answer = if exchange.is_stream() { exchange.event().await.unwrap() } else { exchange.json().await };
        assert_eq!(text(&answer["result"]), "well", "{round}");
        assert!(began.elapsed() < prompt(), "{round}: {:?}", began.elapsed());
    }
    assert_eq!(lines(), 16, "six questions of hers are open, and ten of his were answered");
    drop(pending);
    server.terminate().await;
}
