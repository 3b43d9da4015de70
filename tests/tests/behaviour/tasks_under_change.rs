//! Tasks of both forms, when something they depend on disappears: the waiting client, a question's stream, the plugin, wharf itself.

use std::time::Instant;

use e2e::{Exchange, Folder, PATIENCE, Pipe, Server, Session, Value, given, is_error, json, prompt, text};

const REVISION: &str = "2025-11-25";

/// `opt_t` may run as a task, `pre_t` too but asks first; each runs one call at a time.
fn config(folder: &Folder, plugins: &[&str]) {
    let plugin = |id: &&str| {
        let described = json!({ "task": "optional", "before": *id == "pre", "alone": true });
        given(id, &described, "limits = { concurrency = 1, timeout_ms = 25000 }")
    };
    folder.config(&plugins.iter().map(plugin).collect::<String>());
}

async fn started() -> (Folder, Server) {
    let folder = Folder::new();
    config(&folder, &["opt", "pre"]);
    let server = Server::loaded(&folder).await;
    (folder, server)
}

fn able() -> Value {
    json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

/// Begins a core task; returns the parameters that name it.
async fn begin(session: &mut Session<'_>, arguments: Value) -> Value {
    let params = json!({ "name": "opt_t", "arguments": arguments, "task": {} });
    let made = session.request("tools/call", params).await.unwrap();
    json!({ "taskId": made["task"]["taskId"] })
}

async fn status(session: &mut Session<'_>, task: &Value) -> String {
    session.request("tasks/get", task.clone()).await.unwrap()["status"].as_str().unwrap().to_owned()
}

async fn until(session: &mut Session<'_>, task: &Value, wanted: &str) {
    let began = Instant::now();
    while status(session, task).await != wanted {
        assert!(began.elapsed() < PATIENCE, "not {wanted}");
    }
}

/// The next question on a stream.
async fn question(exchange: &mut Exchange) -> Value {
    loop {
        let message = exchange.event().await.expect("a question");
        if message["method"] == "elicitation/create" {
            return message;
        }
    }
}

async fn accept(session: &Session<'_>, question: &Value) {
    let result = json!({ "action": "accept", "content": { "v": "x" } });
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
    assert_eq!(session.post(&reply).await.status(), 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stops_waiting_does_not_stop_the_task_nor_its_question() {
    let (_folder, server) = started().await;
    let mut session = server.legacy(REVISION, json!({ "elicitation": {} })).await;
    let task = begin(&mut session, json!({ "ask": [["a"]] })).await;
    let (id, mut first) = session.begin("tasks/result", task.clone()).await;
    let asked = question(&mut first).await;
    // While a person is asked, the plugin's only place is free.
    assert_eq!(text(&session.call("opt_t", json!({ "text": "free" })).await), "free");
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    assert_eq!(session.post(&cancel).await.status(), 202);
    while first.event().await.is_some() {}
    assert_eq!(status(&mut session, &task).await, "input_required");
    // The next waiting client is asked, and an answer to the previous question is not accepted any more.
    let (id, mut second) = session.begin("tasks/result", task.clone()).await;
    let again = question(&mut second).await;
    assert_ne!(again["id"], asked["id"]);
    accept(&session, &again).await;
    assert_eq!(text(&second.response(&id).await["result"]), "a");
    assert_eq!(status(&mut session, &task).await, "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_wait_one_is_asked_and_both_are_answered() {
    let (_folder, server) = started().await;
    let mut session = server.legacy(REVISION, json!({ "elicitation": {} })).await;
    let task = begin(&mut session, json!({ "ask": [["a"]] })).await;
    until(&mut session, &task, "input_required").await;
    let (first_id, mut first) = session.begin("tasks/result", task.clone()).await;
    let (second_id, mut second) = session.begin("tasks/result", task.clone()).await;
    let asked = question(&mut first).await;
    accept(&session, &asked).await;
    let answer = first.response(&first_id).await;
    assert_eq!(text(&answer["result"]), "a", "{answer}");
    let answer = second.event().await.expect("an answer");
    assert_eq!(answer["id"], second_id, "no message goes to two streams: {answer}");
    assert_eq!(text(&answer["result"]), "a");
}

/// TSKA-09: a task that waits for the user says so, wherever the question was sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_from_before_the_task_counts_as_one() {
    let (_folder, server) = started().await;
    let mut session = server.legacy(REVISION, json!({ "elicitation": {} })).await;
    let params = json!({ "name": "pre_t", "arguments": { "ask": [["a"]] }, "task": {} });
    let (id, mut exchange) = session.begin("tools/call", params).await;
    let asked = question(&mut exchange).await;
    // The task is created before the answer, because a user takes longer than a client should wait for its task.
    let made = exchange.response(&id).await["result"].take();
    let task = json!({ "taskId": made["task"]["taskId"] });
    assert_eq!(status(&mut session, &task).await, "input_required");
    accept(&session, &asked).await;
    let result = session.request("tasks/result", task.clone()).await.unwrap();
    assert_eq!(text(&result), "a");
    assert_eq!(status(&mut session, &task).await, "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_end_with_the_access_of_their_plugin() {
    let (folder, server) = started().await;
    let mut session = server.legacy(REVISION, json!({})).await;
    let core = begin(&mut session, json!({ "spin": true })).await;
    let call = json!({ "name": "pre_t", "arguments": { "spin": true } });
    let extension = server.modern("tools/call", call, able()).await.unwrap();
    let (id, mut waiting) = session.begin("tasks/result", core.clone()).await;
    // An empty file changes nothing.
    folder.config("[limits]\n");
    let answer = waiting.response(&id).await;
    let said = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(said.contains("The operator took away the tool"), "who waits is told: {answer}");
    assert_eq!(status(&mut session, &core).await, "failed");
    let began = Instant::now();
    loop {
        let params = json!({ "taskId": extension["taskId"] });
        let task = server.modern("tasks/get", params, able()).await.unwrap();
        match task["status"].as_str().unwrap() {
            "working" => assert!(began.elapsed() < PATIENCE, "it works on without its plugin"),
            "completed" => break assert!(is_error(&task["result"]), "{task}"),
            other => break assert_eq!(other, "failed", "{task}"),
        }
    }
}

/// A request that waits for a task's result is a request under way, with the operator's time limit for those.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_wharf_waits_for_no_task() {
    for awaited in [false, true] {
        let folder = Folder::new();
        config(&folder, &["opt", "pre"]);
        let text = std::fs::read_to_string(folder.join("config/wharf/wharf.toml")).unwrap();
        folder.config(&format!("{text}\n[http]\ndrain_s = {}\n", if awaited { 1 } else { 30 }));
        let server = Server::loaded(&folder).await;
        let mut session = server.legacy(REVISION, json!({ "elicitation": {} })).await;
        let asking = begin(&mut session, json!({ "ask": [["a"]] })).await;
        until(&mut session, &asking, "input_required").await;
        let spinning = begin(&mut session, json!({ "spin": true })).await;
        let call = json!({ "name": "pre_t", "arguments": { "spin": true } });
        server.modern("tools/call", call, able()).await.unwrap();
        let standing = session.stream().await;
        let mut streams = vec![standing];
        if awaited {
            streams.push(session.begin("tasks/result", spinning).await.1);
        }
        assert!(streams.iter().all(e2e::exchange::Exchange::is_stream));
        e2e::pipe::signal(server.pid(), rustix::process::Signal::TERM);
        let began = Instant::now();
        for mut stream in streams {
            while stream.frame().await.is_some() {}
        }
        let (status, _, log) = server.terminated().await;
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(began.elapsed() < prompt(), "awaited {awaited}: it took {:?}", began.elapsed());
    }
}

/// The folders of a task are determined when it is created, and it may wait long for its turn: a root that its client closed in the
/// meantime is not available any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_is_closed_while_a_task_waits_is_not_there_when_it_runs() {
    let folder = Folder::new();
    let root = folder.home().join("root");
    std::fs::create_dir_all(&root).unwrap();
    let described = json!({ "task": "optional", "alone": true });
    let opt = given("opt", &described, "limits = { concurrency = 1, timeout_ms = 25000 }");
    folder.config(&format!("{opt}roots = \"read\"\n"));
    let mut pipe = Pipe::start(&folder, &["run"]);
    let roots = json!({ "roots": [{ "uri": format!("file://{}", root.display()) }] });
    pipe.answer_with(move |method, _| (method == "roots/list").then(|| roots.clone()));
    pipe.legacy(REVISION, json!({ "roots": { "listChanged": true } })).await;
    let mut tasks = Vec::new();
    for arguments in [json!({ "spin": true }), json!({ "text": "it ran" })] {
        let params = json!({ "name": "opt_t", "arguments": arguments, "task": {} });
        let made = pipe.request("tools/call", params).await.unwrap();
        tasks.push(json!({ "taskId": made["task"]["taskId"] }));
    }
    pipe.answer_with(|method, _| (method == "roots/list").then(|| json!({ "roots": [] })));
    pipe.notify("notifications/roots/list_changed", json!({})).await;
    // The first task is stopped, since it had the root too, and the second one gets its turn.
    for task in tasks {
        let result = pipe.request("tasks/result", task).await.unwrap();
        assert!(is_error(&result) && text(&result).contains("root"), "{result}");
    }
    pipe.close().await;
}
