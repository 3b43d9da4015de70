//! Sixteen clients of both eras at once, on one endpoint and on one pipe: each gets only its own messages.

use std::collections::BTreeMap;

use e2e::{
    Exchange, Folder, LEGACY, Pipe, SUBSCRIPTION_KEY, Server, Session, Value, given, json, plugin, text, together,
};

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
const ROUNDS: usize = 6;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.config(&format!(
        "[plugins.show]\npath = {:?}\nprefix = \"\"\n[plugins.show.grants]\nask = [\"roots\", \"elicitation\"]\n{}",
        plugin("showcase"),
        given("g", &json!({}), "limits = { concurrency = 16 }")
    ));
    folder
}

/// A call that announces, logs, reports and answers values that belong to one client.
fn work(client: usize, round: usize, token: &Value) -> Value {
    let arguments = json!({
        "updated": format!("note:///{client}"), "levels": true, "steps": 2, "ms": 3, "text": format!("{client}/{round}"),
    });
    json!({ "name": "g_t", "arguments": arguments, "_meta": { "progressToken": token } })
}

fn roots_of(client: usize) -> Value {
    json!({ "roots": [{ "uri": format!("file:///client-{client}") }] })
}

/// Messages that arrived with an answer: the client's own reports, and logs from its level on.
fn check_told<'a>(client: usize, token: &Value, told: impl Iterator<Item = &'a Value>) {
    let (mut reports, mut levels) = (0, Vec::new());
    for message in told {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("notifications/progress") => {
                assert_eq!(params["progressToken"], *token, "client {client}");
                reports += 1;
            }
            // Reports of steps are also logged, with texts of their own.
            Some("notifications/message") if !params["data"].as_str().unwrap().starts_with("step") => {
                levels.push(params["level"].as_str().unwrap().to_owned());
            }
            Some("notifications/message") => {}
            other => panic!("client {client} was told {other:?}: {message}"),
        }
    }
    assert_eq!((reports, levels.as_slice()), (2, &LEVELS.map(str::to_owned)[client % 8..]), "client {client}");
}

async fn legacy_client(server: &Server, client: usize) -> (Session<'_>, Exchange) {
    let mut session = server.legacy(LEGACY[client % 4], json!({ "roots": {} })).await;
    session.answer_with(move |method, _| (method == "roots/list").then(|| roots_of(client)));
    let mut stream = session.stream().await;
    session.request("logging/setLevel", json!({ "level": LEVELS[client % 8] })).await.unwrap();
    session.request("resources/subscribe", json!({ "uri": format!("note:///{client}") })).await.unwrap();
    // All clients use the same tokens and ids.
    let token = json!("token");
    for round in 0..ROUNDS {
        let result = session.request("tools/call", work(client, round, &token)).await.unwrap();
        assert_eq!(text(&result), format!("{client}/{round}"));
        assert_eq!(result.get("resultType"), None);
        check_told(client, &token, session.notifications.drain(..).collect::<Vec<_>>().iter());
        assert_eq!(text(&session.call("client_roots", json!({})).await), format!("file:///client-{client}"));
        let event = stream.event().await.unwrap();
        let expected = json!({ "uri": format!("note:///{client}") });
        assert_eq!((&event["method"], &event["params"]), (&json!("notifications/resources/updated"), &expected));
    }
    (session, stream)
}

async fn modern_client(server: &Server, client: usize) -> Exchange {
    let filter = json!({ "notifications": { "resourceSubscriptions": [format!("note:///{client}")] } });
    let mut stream = server.open_modern(json!(1), "subscriptions/listen", filter, json!({})).await;
    assert_eq!(stream.event().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    let token = json!("token");
    for round in 0..ROUNDS {
        let mut params = work(client, round, &token);
        params["_meta"][LEVEL_KEY] = LEVELS[client % 8].into();
        let mut exchange = server.open_modern(json!(2), "tools/call", params, json!({})).await;
        let mut messages = Vec::new();
        while let Some(message) = exchange.message().await {
            messages.push(message);
        }
        let answer = messages.pop().unwrap();
        assert_eq!(text(&answer["result"]), format!("{client}/{round}"));
        check_told(client, &token, messages.iter());
        let mut call = json!({ "name": "client_roots" });
        let asked = server.modern("tools/call", call.clone(), json!({ "roots": {} })).await.unwrap();
        assert_eq!(asked["inputRequests"]["roots"]["method"], "roots/list");
        call["inputResponses"] = json!({ "roots": roots_of(client) });
        let told = server.modern("tools/call", call, json!({ "roots": {} })).await.unwrap();
        assert_eq!(text(&told), format!("file:///client-{client}"));
        let event = stream.event().await.unwrap();
        let tagged = json!({ "uri": format!("note:///{client}"), "_meta": { SUBSCRIPTION_KEY: 1 } });
        assert_eq!((&event["method"], &event["params"]), (&json!("notifications/resources/updated"), &tagged));
    }
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_clients_of_one_endpoint() {
    let folder = folder();
    let server = Server::start(&folder, &[]).await;
    let (mut legacy, mut modern) = (Vec::new(), Vec::new());
    type Client<'a> = std::pin::Pin<Box<dyn Future<Output = (Option<Session<'a>>, Exchange)> + 'a>>;
    let clients = (0..16).map(|client| -> Client<'_> {
        let server = &server;
        match client {
            0..8 => Box::pin(async move {
                let (session, stream) = legacy_client(server, client).await;
                (Some(session), stream)
            }),
            _ => Box::pin(async move { (None, modern_client(server, client).await) }),
        }
    });
    for (session, stream) in together(clients).await {
        match session {
            Some(session) => legacy.push((session, stream)),
            None => modern.push(stream),
        }
    }
    // The next message that each receives is the change made for it now: no message for another client was queued.
    for client in 0..16 {
        let last = json!({ "name": "g_t", "arguments": { "updated": format!("note:///{client}") } });
        server.modern("tools/call", last, json!({})).await.unwrap();
    }
    let streams = legacy.iter_mut().map(|(_, stream)| stream).chain(&mut modern);
    for (client, stream) in streams.enumerate() {
        let event = stream.event().await.unwrap();
        assert_eq!(event["params"]["uri"], format!("note:///{client}"));
        assert_eq!(event["params"].get("_meta").is_some(), client >= 8, "{event}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_conversations_on_one_pipe() {
    let folder = folder();
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-06-18", json!({ "roots": {} })).await;
    pipe.answer_with(|method, _| (method == "roots/list").then(|| roots_of(0)));
    pipe.request("logging/setLevel", json!({ "level": LEVELS[0] })).await.unwrap();
    pipe.request("resources/subscribe", json!({ "uri": "note:///0" })).await.unwrap();
    // Ids that differ only in their type.
    let id = |client: usize| {
        if client.is_multiple_of(2) { json!(client / 2 + 7000) } else { json!(format!("{}", client / 2 + 7000)) }
    };
    for client in 1..16 {
        let filter = json!({ "resourceSubscriptions": [format!("note:///{client}")] });
        let params = e2e::modern_params(json!({ "notifications": filter }), json!({}));
        pipe.send(json!({ "jsonrpc": "2.0", "id": id(client), "method": "subscriptions/listen", "params": params }))
            .await;
    }
    for client in 1..16 {
        let tag = id(client);
        let first =
            pipe.find("an acknowledgement", |message| message["params"]["_meta"][SUBSCRIPTION_KEY] == tag).await;
        assert_eq!(first["params"]["notifications"]["resourceSubscriptions"], json!([format!("note:///{client}")]));
    }
    for round in 0..ROUNDS {
        let mut calls = Vec::new();
        for client in 0..16 {
            let mut params = work(client, round, &json!(format!("{client}/{round}")));
            let ids = if client == 0 {
                let call = pipe.begin("tools/call", params).await;
                (call, pipe.begin("tools/call", json!({ "name": "client_roots" })).await)
            } else {
                params["_meta"][LEVEL_KEY] = LEVELS[client % 8].into();
                let call = pipe.begin_modern("tools/call", params, json!({})).await;
                let answered = json!({ "roots": roots_of(client) });
                let roots = json!({ "name": "client_roots", "inputResponses": answered });
                (call, pipe.begin_modern("tools/call", roots, json!({ "roots": {} })).await)
            };
            calls.push(ids);
        }
        for (client, (call, roots)) in calls.iter().enumerate() {
            let result = pipe.answer(call).await.unwrap();
            assert_eq!(text(&result), format!("{client}/{round}"));
            assert_eq!(result.get("resultType").is_some(), client > 0);
            assert_eq!(text(&pipe.answer(roots).await.unwrap()), format!("file:///client-{client}"));
        }
    }
    // A request for each that comes after everything else, so that everything is read.
    for client in 0..16 {
        let end = json!({ "name": "g_t", "arguments": { "updated": format!("note:///{client}") } });
        pipe.modern("tools/call", end, json!({})).await.unwrap();
    }
    let is_last = |message: &Value| message["params"]["uri"] == "note:///15";
    for _ in 0..=ROUNDS {
        pipe.find("updates of the last client", is_last).await;
    }
    let (mut updates, mut reports, mut levels) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for message in pipe.inbox() {
        let params = &message["params"];
        match message["method"].as_str().unwrap() {
            "notifications/resources/updated" => {
                let client: usize = params["uri"].as_str().unwrap()["note:///".len()..].parse().unwrap();
                let tag = params["_meta"].get(SUBSCRIPTION_KEY).cloned();
                assert_eq!(tag, (client > 0).then(|| id(client)), "{message}");
                *updates.entry(client).or_insert(0) += 1;
            }
            "notifications/progress" => {
                *reports.entry(params["progressToken"].as_str().unwrap().to_owned()).or_insert(0) += 1;
            }
            "notifications/message" if params["data"] == params["level"] => {
                *levels.entry(params["level"].as_str().unwrap().to_owned()).or_insert(0) += 1;
            }
            "notifications/message" => {}
            other => panic!("{other}: {message}"),
        }
    }
    assert_eq!(updates, (0..15).map(|client| (client, ROUNDS + 1)).collect(), "each of its own, once");
    assert_eq!(reports.len(), 16 * ROUNDS);
    assert!(reports.values().all(|count| *count == 2), "{reports:?}");
    let expected = LEVELS.iter().enumerate().map(|(at, level)| ((*level).to_owned(), 2 * (at + 1) * ROUNDS));
    assert_eq!(levels, expected.collect(), "two of the sixteen begin at each level");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_ends_or_answers_what_belongs_to_another() {
    let folder = folder();
    let server = Server::start(&folder, &[]).await;
    let mut victim = server.legacy("2025-11-25", json!({ "elicitation": {} })).await;
    let other = server.legacy("2025-11-25", json!({ "elicitation": {} })).await;
    let slow = json!({ "name": "g_t", "arguments": { "steps": 15, "ms": 100, "text": "whole" }, "_meta": { "progressToken": 1 } });
    let (id, mut running) = victim.begin("tools/call", slow.clone()).await;
    running.event().await.unwrap();
    let mut modern = server.open_modern(id.clone(), "tools/call", slow, json!({})).await;
    modern.event().await.unwrap();
    // With the same id: another session, no session, and the modern era.
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    assert_eq!(other.post(&cancel).await.status(), 202);
    assert_eq!(server.post(&[("MCP-Protocol-Version", e2e::MODERN)], &cancel).await.status(), 202);
    let mut claiming = cancel.clone();
    claiming["params"] = e2e::modern_params(cancel["params"].clone(), json!({}));
    assert_eq!(server.post(&[("MCP-Protocol-Version", e2e::MODERN)], &claiming).await.status(), 202);
    // Another stream with the same id ends.
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    drop(server.open_modern(id.clone(), "subscriptions/listen", filter, json!({})).await);
    assert_eq!(text(&running.response(&id).await["result"]), "whole");
    assert_eq!(text(&modern.response(&id).await["result"]), "whole");

    // Another session cannot answer a question.
    let (id, mut asking) = victim.begin("tools/call", json!({ "name": "purge" })).await;
    let question = asking.event().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let reply = |really: bool| {
        let content = json!({ "really": really, "reason": "mine" });
        json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": content } })
    };
    let foreign = other.post(&reply(false)).await.status();
    assert!([202, 400].contains(&foreign), "{foreign}");
    assert_eq!(server.post(&[], &reply(false)).await.status(), 400);
    assert_eq!(victim.post(&reply(true)).await.status(), 202);
    assert_eq!(text(&asking.response(&id).await["result"]), "deleted: mine");
}
