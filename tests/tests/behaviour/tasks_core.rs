//! Tasks as in the core of 2025-11-25: the client asks for a task, waits for its result, and owns it through its session.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use e2e::{Folder, LEGACY, PATIENCE, Pipe, Server, Session, Value, given, is_error, json, prompt, text};

const REVISION: &str = "2025-11-25";
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// `opt_t` may run as a task, `req_t` only as a task, `not_t` never; each runs one call at a time.
fn folder(more: &str, limits: &str) -> Folder {
    let folder = Folder::new();
    let plugin = |id: &str, task: &str| {
        let described = json!({ "task": task, "alone": true });
        given(id, &described, &format!("limits = {{ concurrency = 1, {limits} }}"))
    };
    folder.config(&format!("{more}\n{}{}{}", plugin("opt", "optional"), plugin("req", "required"), plugin("not", "")));
    folder
}

async fn started(more: &str, limits: &str) -> (Folder, Server) {
    let folder = folder(more, limits);
    let server = Server::loaded(&folder).await;
    (folder, server)
}

const LIMITS: &str = "timeout_ms = 20000";

fn task(tool: &str, arguments: Value) -> Value {
    json!({ "name": tool, "arguments": arguments, "task": { "ttl": 60000 } })
}

/// Begins a task and returns it as created.
async fn begin(session: &mut Session<'_>, arguments: Value) -> Value {
    let made = session.request("tools/call", task("opt_t", arguments)).await.unwrap();
    assert_eq!(made.as_object().unwrap().keys().filter(|key| *key != "_meta").collect::<Vec<_>>(), ["task"], "{made}");
    assert_eq!(made["task"]["status"], "working");
    made["task"].clone()
}

async fn get(session: &mut Session<'_>, task: &Value) -> Result<Value, Value> {
    session.request("tasks/get", json!({ "taskId": task["taskId"] })).await
}

/// Polls until the task has this status.
async fn until(session: &mut Session<'_>, task: &Value, status: &str) -> Value {
    let began = Instant::now();
    loop {
        let now = get(session, task).await.unwrap();
        if now["status"] == status {
            return now;
        }
        assert!(began.elapsed() < PATIENCE, "not {status}: {now}");
    }
}

/// TSKA-01, TSKA-04 and what lists say.
#[tokio::test(flavor = "multi_thread")]
async fn one_revision_has_them() {
    let (_folder, server) = started("", LIMITS).await;
    let support = |listed: &Value, tool: &str| {
        let tools = listed["tools"].as_array().unwrap();
        let tool = tools.iter().find(|one| one["name"] == tool).unwrap().clone();
        tool.get("execution").cloned()
    };
    for revision in LEGACY {
        let mut session = server.legacy(revision, json!({})).await;
        let declared = session.initialized["capabilities"].get("tasks").cloned();
        let listed = session.request("tools/list", json!({})).await.unwrap();
        if revision == REVISION {
            assert_eq!(declared, Some(json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })));
            assert_eq!(support(&listed, "opt_t"), Some(json!({ "taskSupport": "optional" })));
            assert_eq!(support(&listed, "req_t"), Some(json!({ "taskSupport": "required" })));
            let never = support(&listed, "not_t");
            assert!(never.is_none() || never == Some(json!({ "taskSupport": "forbidden" })), "{never:?}");
        } else {
            assert_eq!((declared, support(&listed, "opt_t")), (None, None), "{revision}");
            let ignored = session.request("tools/call", task("opt_t", json!({ "text": "t" }))).await.unwrap();
            assert_eq!(text(&ignored), "t", "{revision}: an unknown member");
            for method in ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"] {
                let error = session.request(method, json!({ "taskId": "t" })).await.unwrap_err();
                assert_eq!(error["code"], -32601, "{revision} {method}");
            }
        }
    }
    let listed = server.modern("tools/list", json!({}), json!({})).await.unwrap();
    assert_eq!(support(&listed, "opt_t"), None, "no member of the modern revision");
}

/// TSKA-04.
#[tokio::test(flavor = "multi_thread")]
async fn tools_say_whether_they_can_be_tasks() {
    let (_folder, server) = started("", LIMITS).await;
    let mut session = server.legacy(REVISION, json!({})).await;
    let plain = |tool: &str| json!({ "name": tool, "arguments": { "text": "t" } });
    assert_eq!(text(&session.request("tools/call", plain("opt_t")).await.unwrap()), "t");
    assert_eq!(text(&session.request("tools/call", plain("not_t")).await.unwrap()), "t");
    assert_eq!(session.request("tools/call", plain("req_t")).await.unwrap_err()["code"], -32601);
    let not = session.request("tools/call", task("not_t", json!({}))).await.unwrap_err();
    assert_eq!(not["code"], -32601);
    for tool in ["opt_t", "req_t"] {
        let made = session.request("tools/call", task(tool, json!({ "text": "t" }))).await.unwrap();
        let params = json!({ "taskId": made["task"]["taskId"] });
        assert_eq!(text(&session.request("tasks/result", params).await.unwrap()), "t", "{tool}");
    }
    let unknown = session.request("tools/call", task("none", json!({}))).await.unwrap_err();
    assert_eq!(unknown["code"], -32602);
    for wrong in [json!(7), json!([]), json!({ "ttl": "long" }), json!({ "ttl": -1 })] {
        let mut params = task("opt_t", json!({ "text": "t" }));
        params["task"] = wrong.clone();
        assert_eq!(session.request("tools/call", params).await.unwrap_err()["code"], -32602, "{wrong}");
    }
}

/// TSKA-02, TSKA-05, TSKA-06, TSKA-09.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_goes_from_working_to_its_result() {
    let (_folder, server) = started("[limits]\ntask_timeout_ms = 20000", "timeout_ms = 300").await;
    let mut session = server.legacy(REVISION, json!({})).await;
    let began = Instant::now();
    let task = begin(&mut session, json!({ "ms": 1500, "text": "done" })).await;
    assert!(task["ttl"].as_u64().is_some_and(|ttl| (1..=60_000).contains(&ttl)), "{task}");
    for time in ["createdAt", "lastUpdatedAt"] {
        let time = task[time].as_str().unwrap();
        assert!(time.len() >= 20 && &time[4..5] == "-" && &time[10..11] == "T" && time.ends_with('Z'), "{time}");
    }
    // It still works, so it was made at once, and not when the work was over.
    let (id, mut exchange) = session.begin("tasks/get", json!({ "taskId": task["taskId"] })).await;
    assert!(!exchange.is_stream());
    let got = exchange.response(&id).await["result"].take();
    assert_eq!(
        (&got["taskId"], &got["status"], &got["createdAt"]),
        (&task["taskId"], &json!("working"), &task["createdAt"])
    );
    // It blocks, and returns the same to all waiting and later requests. It may take longer than a call.
    let params = json!({ "taskId": task["taskId"] });
    let (first_id, mut first) = session.begin("tasks/result", params.clone()).await;
    let second = session.request("tasks/result", params.clone()).await.unwrap();
    assert!(began.elapsed() > Duration::from_millis(1400), "{:?}", began.elapsed());
    assert_eq!(first.response(&first_id).await["result"], second);
    assert_eq!(session.request("tasks/result", params).await.unwrap(), second);
    assert_eq!((text(&second), &second["_meta"][RELATED]), ("done", &json!({ "taskId": task["taskId"] })));
    let got = get(&mut session, &task).await.unwrap();
    assert_eq!(got["status"], "completed");
    assert!(got["lastUpdatedAt"].as_str() >= got["createdAt"].as_str());
}

/// TSKA-06 and TSKA-09: the result is that of the call, whether it succeeds or fails.
#[tokio::test(flavor = "multi_thread")]
async fn failures_of_tasks_are_failures_of_calls() {
    let (_folder, server) = started("[limits]\ntask_timeout_ms = 500", "timeout_ms = 20000").await;
    let mut session = server.legacy(REVISION, json!({})).await;
    for (arguments, status) in [
        (json!({ "answer": { "a": [1] } }), "completed"),
        (json!({ "fail": "it is Sunday" }), "failed"),
        (json!({ "refuse": -32602 }), "failed"),
        (json!({ "refuse": 42 }), "failed"),
    ] {
        let direct = session.request("tools/call", json!({ "name": "opt_t", "arguments": arguments })).await;
        let task = begin(&mut session, arguments.clone()).await;
        let mut result = session.request("tasks/result", json!({ "taskId": task["taskId"] })).await;
        match &mut result {
            Ok(result) => assert_eq!(result["_meta"].take()[RELATED], json!({ "taskId": task["taskId"] })),
            Err(error) => assert!(error["code"].is_i64()),
        }
        let strip = |outcome: Result<Value, Value>| {
            outcome.map(|mut result| {
                result.as_object_mut().unwrap().remove("_meta");
                result
            })
        };
        assert_eq!(strip(result), strip(direct), "{arguments}");
        assert_eq!(until(&mut session, &task, status).await["status"], status, "{arguments}");
    }
    // A task has its own time limit.
    let task = begin(&mut session, json!({ "spin": true })).await;
    let result = session.request("tasks/result", json!({ "taskId": task["taskId"] })).await.unwrap();
    assert!(is_error(&result) && text(&result).contains("500 ms"), "{result}");
    until(&mut session, &task, "failed").await;
}

/// TSKA-07, TSKA-12 and TSKA-13.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_belong_to_their_session() {
    let (_folder, server) = started("", LIMITS).await;
    let mut owner = server.legacy(REVISION, json!({})).await;
    let mut other = server.legacy(REVISION, json!({})).await;
    let mut ids = HashSet::new();
    for _ in 0..5 {
        let task = begin(&mut owner, json!({ "text": "secret" })).await;
        let id = task["taskId"].as_str().unwrap().to_owned();
        assert!(id.len() >= 22, "128 bits at least: {id}");
        assert!(ids.insert(id));
    }
    begin(&mut other, json!({})).await;
    let listed = async |session: &mut Session<'_>| -> HashSet<String> {
        let listed = session.request("tasks/list", json!({})).await.unwrap();
        let tasks = listed["tasks"].as_array().unwrap().iter();
        tasks.map(|task| task["taskId"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(&mut owner).await, ids);
    let others = listed(&mut other).await;
    assert!(others.len() == 1 && others.is_disjoint(&ids), "{others:?}");
    let able = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    for id in ids.iter().map(String::as_str).chain(["none", ""]) {
        let params = json!({ "taskId": id });
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            assert_eq!(other.request(method, params.clone()).await.unwrap_err()["code"], -32602, "{method} {id}");
        }
        assert_eq!(server.modern("tasks/get", params, able.clone()).await.unwrap_err()["code"], -32602, "{id}");
    }
    // When the session ends, its tasks end and their work stops: there is only one place.
    begin(&mut owner, json!({ "spin": true })).await;
    assert!((200..300).contains(&owner.delete().await.status()));
    let began = Instant::now();
    assert_eq!(text(&other.call("opt_t", json!({ "text": "next" })).await), "next");
    assert!(began.elapsed() < prompt(), "{:?}", began.elapsed());
}

/// PAG-01: `page_items` applies to every list.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_listed_in_pages() {
    let (_folder, server) = started("[limits]\npage_items = 2", LIMITS).await;
    let mut session = server.legacy(REVISION, json!({})).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(begin(&mut session, json!({})).await["taskId"].clone());
    }
    assert_eq!(session.request("tasks/list", json!({ "cursor": "none" })).await.unwrap_err()["code"], -32602);
    let (mut listed, mut params) = (Vec::new(), json!({}));
    loop {
        let page = session.request("tasks/list", params).await.unwrap();
        let tasks = page["tasks"].as_array().unwrap();
        assert!((1..=2).contains(&tasks.len()), "{} on one page", tasks.len());
        listed.extend(tasks.iter().map(|task| task["taskId"].clone()));
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    assert!(listed.len() == 5 && ids.iter().all(|id| listed.contains(id)), "each once: {listed:?}");
}

/// TSKA-08 and CAN-06.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_cancelled_by_their_own_method_and_stay_so() {
    let (_folder, server) = started("", LIMITS).await;
    let mut session = server.legacy(REVISION, json!({})).await;
    let task = begin(&mut session, json!({ "spin": true })).await;
    let params = json!({ "taskId": task["taskId"] });
    let (waiting_id, mut waiting) = session.begin("tasks/result", params.clone()).await;
    let cancelled = session.request("tasks/cancel", params.clone()).await.unwrap();
    assert_eq!((&cancelled["taskId"], &cancelled["status"]), (&task["taskId"], &json!("cancelled")));
    let began = Instant::now();
    assert_eq!(text(&session.call("opt_t", json!({ "text": "next" })).await), "next");
    assert!(began.elapsed() < prompt(), "the work goes on: {:?}", began.elapsed());
    let said = waiting.response(&waiting_id).await;
    assert!(said.get("error").is_some() || is_error(&said["result"]), "who waited is told: {said}");
    assert_eq!(session.request("tasks/cancel", params).await.unwrap_err()["code"], -32602);
    assert_eq!(get(&mut session, &task).await.unwrap()["status"], "cancelled");
    let task = begin(&mut session, json!({ "text": "t" })).await;
    until(&mut session, &task, "completed").await;
    let error = session.request("tasks/cancel", json!({ "taskId": task["taskId"] })).await.unwrap_err();
    assert_eq!(error["code"], -32602, "it is over");
    assert_eq!(get(&mut session, &task).await.unwrap()["status"], "completed");

    // The notification cancels requests only, and the request is answered.
    let (id, mut exchange) = session.begin("tools/call", self::task("opt_t", json!({ "ms": 500, "text": "t" }))).await;
    let task = exchange.response(&id).await["result"]["task"].take();
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    assert_eq!(session.post(&cancel).await.status(), 202);
    let result = session.request("tasks/result", json!({ "taskId": task["taskId"] })).await.unwrap();
    assert_eq!(text(&result), "t");
}

/// TSKA-09 and TSKA-11.
#[tokio::test(flavor = "multi_thread")]
async fn questions_come_on_the_stream_of_the_result() {
    let (folder, server) = started("", LIMITS).await;
    let mut session = server.legacy(REVISION, json!({ "elicitation": {} })).await;
    let task = begin(&mut session, json!({ "ask": [["a"], ["b"]] })).await;
    assert!(until(&mut session, &task, "input_required").await.get("result").is_none());
    let (id, mut exchange) = session.begin("tasks/result", json!({ "taskId": task["taskId"] })).await;
    for question in ["[opt] a?", "[opt] b?"] {
        let request = exchange.event().await.unwrap();
        assert_eq!(
            (&request["method"], &request["params"]["message"]),
            (&json!("elicitation/create"), &json!(question))
        );
        assert_eq!(request["params"]["_meta"][RELATED], json!({ "taskId": task["taskId"] }));
        let answer = json!({ "action": "accept", "content": { "v": "x" } });
        let reply = json!({ "jsonrpc": "2.0", "id": request["id"], "result": answer });
        assert_eq!(session.post(&reply).await.status(), 202);
    }
    assert_eq!(text(&exchange.response(&id).await["result"]), "a b");
    until(&mut session, &task, "completed").await;
    // A client that cannot answer is not asked.
    let mut unable = server.legacy(REVISION, json!({})).await;
    let task = begin(&mut unable, json!({ "ask": [["a"]] })).await;
    let result = unable.request("tasks/result", json!({ "taskId": task["taskId"] })).await.unwrap();
    assert!(is_error(&result) && text(&result).contains("elicitation"), "{result}");
    until(&mut unable, &task, "failed").await;
    // On a pipe there is only one destination.
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy(REVISION, json!({ "elicitation": {} })).await;
    pipe.answer_with(|_, _| Some(json!({ "action": "accept", "content": { "v": "x" } })));
    let made = pipe.request("tools/call", self::task("opt_t", json!({ "ask": [["a", "b"]] }))).await.unwrap();
    let params = json!({ "taskId": made["task"]["taskId"] });
    assert_eq!(text(&pipe.request("tasks/result", params.clone()).await.unwrap()), "a b");
    assert!(pipe.handled.len() == 2 && pipe.handled.iter().all(|asked| asked["params"]["_meta"][RELATED] == params));
}

/// TSKA-12: stored as long as promised, and then removed.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_forgotten_after_their_time_and_not_before() {
    let (_folder, server) = started("[limits]\ntask_ttl_ms = 1200", "timeout_ms = 20000").await;
    let mut session = server.legacy(REVISION, json!({})).await;
    for (asked, least) in [(json!({ "ttl": 400 }), 400), (json!({ "ttl": 3_600_000 }), 1200), (json!({}), 1200)] {
        let params = json!({ "name": "opt_t", "arguments": { "text": "t" }, "task": asked });
        let began = Instant::now();
        let task = session.request("tools/call", params).await.unwrap()["task"].take();
        assert_eq!(task["ttl"], least, "{asked}: the operator's is the most there is");
        let gone = loop {
            match get(&mut session, &task).await {
                Ok(_) => assert!(began.elapsed() < PATIENCE, "{asked}: it is never forgotten"),
                Err(error) => break error,
            }
        };
        assert_eq!(gone["code"], -32602);
        assert!(began.elapsed() >= Duration::from_millis(least), "{asked}: gone after {:?}", began.elapsed());
        let listed = session.request("tasks/list", json!({})).await.unwrap();
        assert_eq!(listed["tasks"], json!([]));
    }
}

/// TSKA-13.
#[tokio::test(flavor = "multi_thread")]
async fn there_are_only_so_many_at_once() {
    let (_folder, server) = started("[limits]\ntotal_tasks = 3", LIMITS).await;
    let mut session = server.legacy(REVISION, json!({})).await;
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(begin(&mut session, json!({ "spin": true })).await);
    }
    match session.request("tools/call", task("req_t", json!({}))).await {
        Ok(result) => assert!(is_error(&result), "{result}"),
        Err(error) => assert!(error["code"].is_i64(), "{error}"),
    }
    assert_eq!(text(&session.call("not_t", json!({ "text": "t" })).await), "t", "calls go on");
    for task in &tasks {
        session.request("tasks/cancel", json!({ "taskId": task["taskId"] })).await.unwrap();
    }
    // Expired tasks may make room or be stored for their time; new ones are refused or created, never lost.
    assert_eq!(get(&mut session, &tasks[0]).await.unwrap()["status"], "cancelled");
}

/// TSKA-14: reports of a task continue until it ends; on a pipe they have a destination.
#[tokio::test(flavor = "multi_thread")]
async fn progress_lasts_as_long_as_the_task() {
    let folder = folder("", LIMITS);
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy(REVISION, json!({})).await;
    let mut params = task("opt_t", json!({ "steps": 5, "ms": 50, "text": "t" }));
    params["_meta"] = json!({ "progressToken": "p" });
    let made = pipe.request("tools/call", params).await.unwrap();
    let related = json!({ "taskId": made["task"]["taskId"] });
    let report = pipe.notification("notifications/progress").await;
    assert_eq!((&report["params"]["progressToken"], &report["params"]["_meta"][RELATED]), (&json!("p"), &related));
    pipe.request("tasks/result", related.clone()).await.unwrap();
    assert_eq!(pipe.request("tasks/get", related.clone()).await.unwrap()["status"], "completed");
    // The notification about the status may come after the answers. It names its task itself.
    let status = pipe.notification("notifications/tasks/status").await;
    assert_eq!((&status["params"]["taskId"], &status["params"]["status"]), (&related["taskId"], &json!("completed")));
    let before = pipe.inbox().len();
    for message in pipe.inbox() {
        assert_eq!(message["params"]["_meta"][RELATED], related, "{message}");
    }
    assert_eq!(text(&pipe.call("opt_t", json!({ "ms": 200, "text": "later" })).await), "later");
    assert_eq!(pipe.inbox().len(), before, "it is over: {:?}", pipe.inbox());
}
