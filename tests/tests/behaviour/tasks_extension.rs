//! Tasks as in the extension of 2026-07-28: the server decides, the client polls, and the task contains its questions.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use e2e::{
    Folder, MODERN, PATIENCE, Pipe, SUBSCRIPTION_KEY, Server, Value, given, is_error, json, modern_params, prompt, text,
};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const LIMITS: &str = "timeout_ms = 20000";

/// `opt_t` may run as a task, `req_t` only as a task, `pre_t` too but asks first, `not_t` never; each runs one call at a time.
fn folder(more: &str, limits: &str) -> Folder {
    let folder = Folder::new();
    let plugin = |id: &str, task: &str, before: bool| {
        let described = json!({ "task": task, "before": before, "alone": true });
        given(id, &described, &format!("limits = {{ concurrency = 1, {limits} }}"))
    };
    let plugins = [
        plugin("opt", "optional", false),
        plugin("req", "required", false),
        plugin("pre", "optional", true),
        plugin("not", "", false),
    ];
    folder.config(&format!("{more}\n{}", plugins.concat()));
    folder
}

async fn started(more: &str, limits: &str) -> (Folder, Server) {
    let folder = folder(more, limits);
    let server = Server::loaded(&folder).await;
    (folder, server)
}

fn able() -> Value {
    json!({ "elicitation": {}, "extensions": { EXTENSION: {} } })
}

/// Begins a task and returns its id.
async fn begin(server: &Server, tool: &str, arguments: Value) -> Value {
    let made = server.modern("tools/call", json!({ "name": tool, "arguments": arguments }), able()).await.unwrap();
    assert_eq!((&made["resultType"], &made["status"]), (&json!("task"), &json!("working")), "{made}");
    made["taskId"].clone()
}

async fn get(server: &Server, id: &Value) -> Result<Value, Value> {
    server.modern("tasks/get", json!({ "taskId": id }), able()).await
}

/// Polls until the task has this status, and checks that it has no disallowed members.
async fn until(server: &Server, id: &Value, status: &str) -> Value {
    let began = Instant::now();
    loop {
        let now = get(server, id).await.unwrap();
        assert_eq!((&now["taskId"], &now["resultType"]), (id, &json!("complete")));
        if now["status"] == status {
            return now;
        }
        assert!(began.elapsed() < PATIENCE, "not {status}: {now}");
    }
}

/// TSKB-01, and TSKB-09 for methods that are gone.
#[tokio::test(flavor = "multi_thread")]
async fn discovery_names_the_extension() {
    let (_folder, server) = started("", LIMITS).await;
    let discovered = server.modern("server/discover", json!({}), json!({})).await.unwrap();
    assert_eq!(discovered["capabilities"]["extensions"].get(EXTENSION), Some(&json!({})));
    assert!(discovered["capabilities"].get("tasks").is_none());
    for (method, known) in [
        ("tasks/get", true),
        ("tasks/update", true),
        ("tasks/cancel", true),
        ("tasks/list", false),
        ("tasks/result", false),
    ] {
        let params = json!({ "taskId": "none", "inputResponses": {} });
        let mut exchange = server.open_modern(json!(1), method, params, able()).await;
        let code = exchange.json().await["error"]["code"].clone();
        let expected = if known { (200, json!(-32602)) } else { (404, json!(-32601)) };
        assert_eq!((exchange.status(), code), expected, "{method}");
    }
}

/// TSKB-02, TSKB-03 and TSKB-13.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_decides_and_only_for_who_declared() {
    let (folder, server) = started("", LIMITS).await;
    let call = |tool: &str| json!({ "name": tool, "arguments": { "text": "t" }, "task": { "ttl": 5 } });
    let other = json!({ "extensions": { "com.example/x": {} }, "tasks": { "requests": {} } });
    for (tool, capabilities, is_task) in [
        ("opt_t", able(), true),
        ("req_t", able(), true),
        ("not_t", able(), false),
        ("opt_t", json!({}), false),
        ("opt_t", other.clone(), false),
        ("not_t", json!({}), false),
    ] {
        let result = server.modern("tools/call", call(tool), capabilities.clone()).await.unwrap();
        assert_eq!(result["resultType"] == "task", is_task, "{tool} {capabilities}: {result}");
        assert!(is_task || text(&result) == "t", "{result}");
        // The other era's way to ask for a task has no effect here.
        assert!(result["ttlMs"].as_u64().is_none_or(|ttl| ttl > 5), "{result}");
    }
    for capabilities in [json!({}), other] {
        let mut exchange = server.open_modern(json!(1), "tools/call", call("req_t"), capabilities).await;
        assert_eq!(exchange.status(), 400);
        let error = exchange.json().await["error"].take();
        assert_eq!(
            (&error["code"], &error["data"]["requiredCapabilities"]),
            (&json!(-32021), &json!({ "extensions": { EXTENSION: {} } }))
        );
    }
    let mut pipe = Pipe::start(&folder, &["run"]);
    let result = pipe.modern("tools/call", call("req_t"), json!({})).await.unwrap_err();
    assert_eq!(result["code"], -32021);
    assert_eq!(pipe.modern("tools/call", call("req_t"), able()).await.unwrap()["resultType"], "task");
    // A legacy client can have no such task.
    let mut session = server.legacy("2025-06-18", json!({})).await;
    let refused = session.request("tools/call", call("req_t")).await;
    assert!(refused.as_ref().map_or_else(|error| error["code"].is_i64(), is_error), "{refused:?}");
}

/// TSKB-04, TSKB-15.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_there_as_soon_as_it_is_told_of() {
    let (_folder, server) = started("", LIMITS).await;
    let mut ids = HashSet::new();
    for _ in 0..50 {
        let id = begin(&server, "opt_t", json!({ "ms": 5 })).await;
        get(&server, &id).await.unwrap();
        let id = id.as_str().unwrap().to_owned();
        assert!(id.len() >= 22 && ids.insert(id.clone()), "128 bits at least: {id}");
    }
}

/// TSKB-06 and TSKB-11.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_holds_its_result_or_its_error() {
    let (_folder, server) = started("[limits]\ntask_timeout_ms = 3000", "timeout_ms = 300").await;
    let id = begin(&server, "opt_t", json!({ "ms": 1000, "text": "done" })).await;
    assert_eq!(get(&server, &id).await.unwrap()["status"], "working");
    let done = until(&server, &id, "completed").await;
    assert_eq!(text(&done["result"]), "done", "longer than a call may run");
    assert!(!done.to_string().contains("related-task"), "{done}");
    assert_eq!(get(&server, &id).await.unwrap(), done, "it stays so");
    let id = begin(&server, "req_t", json!({ "answer": [1, 2] })).await;
    assert_eq!(until(&server, &id, "completed").await["result"]["structuredContent"], json!([1, 2]));
    let id = begin(&server, "opt_t", json!({ "fail": "it is Sunday" })).await;
    let result = until(&server, &id, "completed").await["result"].take();
    assert!(is_error(&result) && text(&result) == "it is Sunday", "{result}");
    let id = begin(&server, "opt_t", json!({ "spin": true })).await;
    let result = until(&server, &id, "completed").await["result"].take();
    assert!(is_error(&result) && text(&result).contains("3000 ms"), "{result}");
    for code in [-32602, 42] {
        let id = begin(&server, "opt_t", json!({ "refuse": code })).await;
        let failed = until(&server, &id, "failed").await;
        assert_eq!((&failed["error"]["code"], &failed["error"]["message"]), (&json!(code), &json!("refused")));
    }
    // An invalid call does not become a task.
    let unknown = server.modern("tools/call", json!({ "name": "none", "arguments": {} }), able()).await;
    assert_eq!(unknown.unwrap_err()["code"], -32602);
}

/// TSKB-07 and TSKB-12.
#[tokio::test(flavor = "multi_thread")]
async fn questions_stand_in_the_task_until_they_are_answered() {
    let (_folder, server) = started("", LIMITS).await;
    let id = begin(&server, "opt_t", json!({ "ask": [["a", "b"], ["c"]] })).await;
    let keys = |task: &Value| task["inputRequests"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let waiting = until(&server, &id, "input_required").await;
    let mut first = keys(&waiting);
    assert_eq!(first.len(), 2, "{waiting}");
    let of = |task: &Value, message: &str| {
        let requests = task["inputRequests"].as_object().unwrap();
        let (key, request) = requests.iter().find(|(_, one)| one["params"]["message"] == message).unwrap();
        assert_eq!(request["method"], "elicitation/create");
        key.clone()
    };
    let (a, b) = (of(&waiting, "[opt] a?"), of(&waiting, "[opt] b?"));
    let update = async |responses: Value| {
        let params = json!({ "taskId": id, "inputResponses": responses });
        let acknowledged = server.modern("tasks/update", params, able()).await.unwrap();
        let mut members = acknowledged.as_object().unwrap().keys().filter(|key| *key != "_meta");
        assert!(members.all(|key| key == "resultType") && acknowledged["resultType"] == "complete", "{acknowledged}");
    };
    let accepted = json!({ "action": "accept", "content": { "v": "x" } });
    update(json!({ "unasked": accepted })).await;
    assert_eq!(keys(&get(&server, &id).await.unwrap()), first, "answers to nothing change nothing");
    update(json!({ a.as_str(): accepted, "unasked": 7 })).await;
    let half = get(&server, &id).await.unwrap();
    assert_eq!((half["status"].as_str(), keys(&half)), (Some("input_required"), vec![b.clone()]));
    update(json!({ b.as_str(): accepted })).await;
    let began = Instant::now();
    // The next round has its own keys.
    let second = loop {
        let now = until(&server, &id, "input_required").await;
        if keys(&now) != [b.clone()] {
            break keys(&now);
        }
        assert!(began.elapsed() < PATIENCE);
    };
    assert!(second.len() == 1 && !first.contains(&second[0]), "{second:?}");
    first.extend(second.clone());
    // An answer of the wrong kind does not end the task.
    let params = json!({ "taskId": id, "inputResponses": { second[0].as_str(): 7 } });
    let _ = server.modern("tasks/update", params, able()).await;
    let still = get(&server, &id).await.unwrap();
    assert_eq!(still["status"], "input_required", "{still}");
    update(json!({ second[0].as_str(): { "action": "decline" } })).await;
    assert_eq!(text(&until(&server, &id, "completed").await["result"]), "a b c");
    update(json!({ a.as_str(): accepted })).await;
    assert_eq!(get(&server, &id).await.unwrap()["status"], "completed");
}

/// TSKB-12, for a plugin that asks the same question again.
#[tokio::test(flavor = "multi_thread")]
async fn no_key_stands_for_two_questions_of_a_task() {
    let (_folder, server) = started("", LIMITS).await;
    let id = begin(&server, "opt_t", json!({ "again": 3 })).await;
    let mut keys: Vec<String> = Vec::new();
    let began = Instant::now();
    loop {
        let task = get(&server, &id).await.unwrap();
        assert!(began.elapsed() < PATIENCE, "after {keys:?}: {task}");
        match task["status"].as_str().unwrap() {
            "completed" => break assert_eq!(text(&task["result"]), "asked 3 times"),
            "working" => {}
            _ => {
                let key = task["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
                assert!(!keys.contains(&key), "{key} stands for another question already");
                let answer = json!({ "action": "accept", "content": { "v": "x" } });
                let params = json!({ "taskId": id, "inputResponses": { key.as_str(): answer } });
                server.modern("tasks/update", params, able()).await.unwrap();
                keys.push(key);
            }
        }
    }
    assert_eq!(keys.len(), 3);
}

/// TSKB-05.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_before_is_asked_before_there_is_a_task() {
    let (_folder, server) = started("", LIMITS).await;
    let mut params = json!({ "name": "pre_t", "arguments": { "ask": [["a"], ["b"]], "state": "s" } });
    for key in ["a", "b"] {
        let asked = server.modern("tools/call", params.clone(), able()).await.unwrap();
        assert_eq!((asked["resultType"].as_str(), asked.get("taskId")), (Some("input_required"), None), "{asked}");
        params["requestState"] = asked["requestState"].clone();
        params["inputResponses"] = json!({ key: { "action": "accept", "content": { "v": "x" } } });
    }
    let made = server.modern("tools/call", params, able()).await.unwrap();
    assert_eq!(made["resultType"], "task", "{made}");
    assert_eq!(text(&until(&server, &made["taskId"], "completed").await["result"]), "a b");
    // Without a question, it becomes a task at once.
    begin(&server, "pre_t", json!({})).await;
}

/// TSKB-08 and TSKB-09.
#[tokio::test(flavor = "multi_thread")]
async fn cancelling_is_acknowledged_and_stops_the_work() {
    let (_folder, server) = started("", LIMITS).await;
    let cancel = async |id: &Value| server.modern("tasks/cancel", json!({ "taskId": id }), able()).await;
    let id = begin(&server, "opt_t", json!({ "spin": true })).await;
    for _ in 0..2 {
        let acknowledged = cancel(&id).await.unwrap();
        assert_eq!(acknowledged["resultType"], "complete");
        assert!(acknowledged.get("taskId").is_none() && acknowledged.get("status").is_none(), "{acknowledged}");
    }
    until(&server, &id, "cancelled").await;
    let began = Instant::now();
    let next = begin(&server, "opt_t", json!({ "text": "next" })).await;
    assert_eq!(text(&until(&server, &next, "completed").await["result"]), "next");
    assert!(began.elapsed() < prompt(), "the work went on for {:?}", began.elapsed());
    cancel(&next).await.unwrap();
    assert_eq!(get(&server, &next).await.unwrap()["status"], "completed", "it was over");
    let asking = begin(&server, "opt_t", json!({ "ask": [["a"]] })).await;
    until(&server, &asking, "input_required").await;
    cancel(&asking).await.unwrap();
    until(&server, &asking, "cancelled").await;
    assert_eq!(cancel(&json!("none")).await.unwrap_err()["code"], -32602);
}

/// TSKB-10, and HDR-04.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_request_must_say_is_checked_before_the_task() {
    let (folder, server) = started("", LIMITS).await;
    let id = begin(&server, "opt_t", json!({})).await;
    let mut pipe = Pipe::start(&folder, &["run"]);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for id in [&id, &json!("none")] {
            for capabilities in [json!({}), json!({ "tasks": {} }), json!({ "extensions": { "com.example/x": {} } })] {
                let params = json!({ "taskId": id, "inputResponses": {} });
                let mut exchange = server.open_modern(json!(1), method, params.clone(), capabilities.clone()).await;
                assert_eq!(exchange.status(), 400);
                let error = exchange.json().await["error"].take();
                assert_eq!(error["code"], -32021, "{method} {id} {capabilities}");
                assert_eq!(error["data"]["requiredCapabilities"], json!({ "extensions": { EXTENSION: {} } }));
                assert_eq!(pipe.modern(method, params, capabilities).await.unwrap_err()["code"], -32021);
            }
        }
        let params = modern_params(json!({ "taskId": id, "inputResponses": {} }), able());
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let own = id.as_str().unwrap();
        for (name, expected) in [(Some(own), 0), (None, -32020), (Some("none"), -32020), (Some(""), -32020)] {
            let mut headers = vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
            headers.extend(name.map(|name| ("Mcp-Name", name)));
            assert_eq!(server.probe(&headers, &body).await.1, expected, "{method} {name:?}");
        }
        for wrong in [json!({}), json!({ "taskId": 7 }), json!({ "taskId": null })] {
            assert_eq!(pipe.modern(method, wrong, able()).await.unwrap_err()["code"], -32602, "{method}");
        }
    }
}

/// TSKB-14 and SUB-12.
#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_hear_of_tasks_they_name() {
    let (folder, server) = started("", LIMITS).await;
    let (mine, other) = (
        begin(&server, "opt_t", json!({ "ask": [["a"]] })).await,
        begin(&server, "req_t", json!({ "ask": [["a"]] })).await,
    );
    for id in [&mine, &other] {
        until(&server, id, "input_required").await;
    }
    let filter = json!({ "notifications": { "taskIds": [mine, "none"] } });
    let mut stream = server.open_modern(json!("l"), "subscriptions/listen", filter.clone(), able()).await;
    let acknowledged = stream.event().await.unwrap();
    let honoured = acknowledged["params"]["notifications"]["taskIds"].as_array().unwrap();
    assert!(honoured.contains(&mine), "{acknowledged}");
    for id in [&other, &mine] {
        let answers = json!({ "a": { "action": "accept", "content": { "v": "x" } } });
        let asked = get(&server, id).await.unwrap();
        let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let params = json!({ "taskId": id, "inputResponses": { key: answers["a"] } });
        server.modern("tasks/update", params, able()).await.unwrap();
        until(&server, id, "completed").await;
    }
    loop {
        let event = stream.event().await.unwrap();
        let params = &event["params"];
        assert_eq!((&event["method"], &params["taskId"]), (&json!("notifications/tasks"), &mine), "{event}");
        assert_eq!(params["_meta"][SUBSCRIPTION_KEY], "l");
        if params["status"] == "completed" {
            assert_eq!(text(&params["result"]), "a", "the whole task");
            break;
        }
    }
    let mut refused = server.open_modern(json!("l"), "subscriptions/listen", filter.clone(), json!({})).await;
    assert_eq!((refused.status(), &refused.json().await["error"]["code"]), (400, &json!(-32021)));
    let mut pipe = Pipe::start(&folder, &["run"]);
    assert_eq!(pipe.modern("subscriptions/listen", filter, json!({})).await.unwrap_err()["code"], -32021);
}

/// TSKB-14 and TSKB-16: a task sends no reports and no logs, and the request that created it has ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_says_nothing_and_is_not_cancelled_by_notification() {
    let folder = folder("", LIMITS);
    let mut pipe = Pipe::start(&folder, &["run"]);
    let meta = json!({ "progressToken": 1, "io.modelcontextprotocol/logLevel": "debug" });
    let call = json!({ "name": "opt_t", "arguments": { "steps": 6, "ms": 50, "text": "t" }, "_meta": meta });
    let id = pipe.begin_modern("tools/call", call, able()).await;
    let made = pipe.answer(&id).await.unwrap();
    pipe.cancel(&id).await;
    let began = Instant::now();
    loop {
        let task = pipe.modern("tasks/get", json!({ "taskId": made["taskId"] }), able()).await.unwrap();
        if task["status"] == "completed" {
            break assert_eq!(text(&task["result"]), "t");
        }
        assert!(task["status"] == "working" && began.elapsed() < PATIENCE, "{task}");
    }
    assert!(pipe.inbox().is_empty(), "{:?}", pipe.inbox());
}

/// TSKB-15.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_forgotten_after_their_time_and_not_before() {
    let (_folder, server) = started("[limits]\ntask_ttl_ms = 800", "timeout_ms = 20000").await;
    let call = json!({ "name": "opt_t", "arguments": { "text": "t" } });
    let began = Instant::now();
    let made = server.modern("tools/call", call, able()).await.unwrap();
    assert_eq!(made["ttlMs"], 800);
    let gone = loop {
        match get(&server, &made["taskId"]).await {
            Ok(task) => assert!(task["ttlMs"].is_u64() && began.elapsed() < PATIENCE, "it is never forgotten"),
            Err(error) => break error,
        }
    };
    assert_eq!(gone["code"], -32602);
    assert!(began.elapsed() >= Duration::from_millis(800), "gone after {:?}", began.elapsed());
}

/// Tasks of one era do not exist in the other, and each principal has its own; here there is one of each.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_stay_in_their_era() {
    let (folder, server) = started("[limits]\ntotal_tasks = 2", LIMITS).await;
    let id = begin(&server, "opt_t", json!({ "spin": true })).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
        assert_eq!(session.request(method, json!({ "taskId": id })).await.unwrap_err()["code"], -32602, "{method}");
    }
    assert_eq!(session.request("tasks/list", json!({})).await.unwrap()["tasks"], json!([]));
    // The limit covers both eras together; calls continue.
    let call = json!({ "name": "req_t", "arguments": { "spin": true }, "task": {} });
    assert!(session.request("tools/call", call.clone()).await.unwrap()["task"].is_object());
    let refused = server.modern("tools/call", call, able()).await;
    assert!(refused.as_ref().map_or_else(|error| error["code"].is_i64(), is_error), "{refused:?}");
    let plain = json!({ "name": "not_t", "arguments": { "text": "t" } });
    assert_eq!(text(&server.modern("tools/call", plain, able()).await.unwrap()), "t");
    // On a pipe, tasks belong to the pipe.
    let mut pipe = Pipe::start(&folder, &["run"]);
    assert_eq!(pipe.modern("tasks/get", json!({ "taskId": id }), able()).await.unwrap_err()["code"], -32602);
}
