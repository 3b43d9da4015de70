//! Redis puts back what replicas stored earlier, or sends a message again. Nothing is granted by that, and what a replica knows stays so.

use super::{
    common::{Replicas, able, has_ended, ping},
    tasks::{begin, until, with_tasks},
};
use e2e::{PATIENCE, Server, Session, Value, json, text};
use tokio::time::timeout;

/// Returns the only key with this beginning, and its value, once it is stored.
async fn stored(replicas: &Replicas, beginning: &str) -> (String, Vec<u8>) {
    let found = async {
        loop {
            if let Some(key) = replicas.redis.keys().await.into_iter().find(|key| key.starts_with(beginning)) {
                return key;
            }
        }
    };
    let key = timeout(PATIENCE, found).await.expect("it is stored");
    let value = replicas.redis.dump(&key).await;
    (key, value)
}

async fn set_level(session: &mut Session<'_>, level: &str) {
    session.request("logging/setLevel", json!({ "level": level })).await.unwrap();
}

/// A session stays ended at the replicas that ran when its client ended it. One that starts later cannot know, if Redis hides it.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_ended_does_not_come_back_where_that_is_known() {
    let mut replicas = Replicas::start(2).await;
    let (detached, key, before) = {
        let [one, other]: &[Server] = replicas.all.as_slice() else { panic!("two") };
        let mut session = one.legacy("2025-11-25", able()).await;
        set_level(&mut session, "debug").await;
        let (key, before) = stored(&replicas, "wharf:session:").await;
        let mut session = other.attach(session.detach());
        assert_eq!(ping(&mut session).await, 200);
        assert_eq!(session.delete().await.status(), 204);
        let mut session = one.attach(session.detach());
        has_ended(&mut session).await;
        let mut detached = session.detach();
        replicas.redis.restore(&key, &before).await;
        for server in [one, other] {
            let mut session = server.attach(detached);
            assert_eq!(ping(&mut session).await, 404);
            detached = session.detach();
        }
        (detached, key, before)
    };
    // A replica that starts later believes what is stored: its client may go on, and nobody else.
    replicas.redis.restore(&key, &before).await;
    let later = replicas.one_more().await;
    let mut session = later.attach(detached);
    assert_eq!(ping(&mut session).await, 200);
    assert_eq!(text(&session.call("g_t", json!({ "text": "done" })).await), "done");
}

/// Older settings of a session come back at replicas that make the session again, and at no others.
#[tokio::test(flavor = "multi_thread")]
async fn older_settings_of_a_session_do_not_reach_replicas_that_have_it() {
    let replicas = Replicas::start(1).await;
    let server = &replicas.all[0];
    let mut session = server.legacy("2025-11-25", able()).await;
    session.request("resources/subscribe", json!({ "uri": "note:///x" })).await.unwrap();
    let (key, before) = stored(&replicas, "wharf:session:").await;
    session.request("resources/unsubscribe", json!({ "uri": "note:///x" })).await.unwrap();
    replicas.redis.restore(&key, &before).await;
    let mut stream = session.stream().await;
    session.call("g_t", json!({ "updated": "note:///x" })).await;
    session.request("resources/subscribe", json!({ "uri": "note:///y" })).await.unwrap();
    session.call("g_t", json!({ "updated": "note:///y" })).await;
    let event = stream.event().await.expect("the stream goes on");
    assert_eq!(event["params"]["uri"], "note:///y", "{event}");
}

/// The settings of one session are not those of another.
#[tokio::test(flavor = "multi_thread")]
async fn settings_of_another_session_are_nothing() {
    let mut replicas = Replicas::start(1).await;
    let (detached, key, foreign) = {
        let server = &replicas.all[0];
        let mut ended = server.legacy("2025-11-25", able()).await;
        let mut session = server.legacy("2025-11-25", able()).await;
        set_level(&mut ended, "debug").await;
        let (of_ended, _) = stored(&replicas, "wharf:session:").await;
        assert_eq!(ended.delete().await.status(), 204);
        let foreign = replicas.redis.dump(&of_ended).await;
        set_level(&mut session, "error").await;
        let keys = replicas.redis.keys().await;
        let key = keys.into_iter().find(|key| key.starts_with("wharf:session:") && *key != of_ended).expect("stored");
        (session.detach(), key, foreign)
    };
    replicas.redis.restore(&key, &foreign).await;
    let later = replicas.one_more().await;
    let mut session = later.attach(detached);
    assert_eq!(ping(&mut session).await, 200, "the end of another session");
    later.wait_for_log("that no replica with these keys has written").await;
}

/// A task that has ended does not run again, whatever is put back, and an answer to its question counts once.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_state_of_a_task_does_not_run_it_again() {
    let replicas = Replicas::start(2).await;
    let [one, other]: &[Server] = replicas.all.as_slice() else { panic!("two") };
    let id = begin(one, json!({ "ask": [["name"]] })).await;
    until(other, &id, "input_required").await;
    let (key, asks) = stored(&replicas, "wharf:task:").await;
    other.modern("tasks/update", answer(&id, "Ada"), with_tasks()).await.unwrap();
    assert_eq!(text(&until(other, &id, "completed").await["result"]), "name");
    replicas.redis.restore(&key, &asks).await;
    // The question can be seen again, and an answer does nothing.
    assert_eq!(until(other, &id, "input_required").await["taskId"], id);
    other.modern("tasks/update", answer(&id, "Eve"), with_tasks()).await.unwrap();
    until(other, &id, "input_required").await;
    // The replica that ran the task knows that it does not run any more.
    let failed = until(one, &id, "failed").await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("what it does is done"), "{failed}");
    until(other, &id, "failed").await;
}

fn answer(id: &Value, name: &str) -> Value {
    let replies = json!({ "name": { "action": "accept", "content": { "v": name } } });
    json!({ "taskId": id, "inputResponses": replies })
}

/// A task that was put under the name of another one is not that one, and ids in the list of another owner are not listed.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_not_another_one() {
    let replicas = Replicas::start(1).await;
    let server = &replicas.all[0];
    let mut ann = server.legacy("2025-11-25", able()).await;
    let mut ben = server.legacy("2025-11-25", able()).await;
    let mut ids = Vec::new();
    for (session, said) in [(&mut ann, "ann"), (&mut ben, "ben")] {
        let call = json!({ "name": "g_t", "arguments": { "text": said }, "task": { "ttl": 60_000 } });
        let made = session.request("tools/call", call).await.unwrap();
        ids.push(made["task"]["taskId"].clone());
        session.request("tasks/result", json!({ "taskId": ids.last() })).await.unwrap();
    }
    let keys = replicas.redis.keys().await;
    let tasks: Vec<&String> = keys.iter().filter(|key| key.starts_with("wharf:task:")).collect();
    let lists: Vec<&String> = keys.iter().filter(|key| key.starts_with("wharf:tasks:")).collect();
    assert_eq!((tasks.len(), lists.len()), (2, 2), "{keys:?}");
    for list in lists {
        for (number, task) in tasks.iter().enumerate() {
            let (number, task) = ((number + 1).to_string(), task.rsplit(':').next().unwrap());
            let words: [&[u8]; 4] = [b"ZADD", list.as_bytes(), number.as_bytes(), task.as_bytes()];
            replicas.redis.command(&words).await;
        }
    }
    let listed = ben.request("tasks/list", json!({})).await.unwrap();
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1, "{listed}");
    assert!(ben.request("tasks/get", json!({ "taskId": ids[0] })).await.is_err());
    let [first, second] = [replicas.redis.dump(tasks[0]).await, replicas.redis.dump(tasks[1]).await];
    replicas.redis.restore(tasks[0], &second).await;
    replicas.redis.restore(tasks[1], &first).await;
    for (session, id) in [(&mut ann, &ids[0]), (&mut ben, &ids[1])] {
        assert!(session.request("tasks/result", json!({ "taskId": id })).await.is_err());
    }
    server.wait_for_log("that no replica with these keys has written").await;
}

/// A message counts once: what cancelled one request does not cancel the next one that has the same id.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_sent_again_counts_once() {
    let replicas = Replicas::start(2).await;
    let [one, other]: &[Server] = replicas.all.as_slice() else { panic!("two") };
    let mut recorded = replicas.redis.record().await;
    let session = one.legacy("2025-11-25", able()).await;
    let call = |arguments: Value| json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": { "name": "g_t", "arguments": arguments } });
    let mut exchange = session.post(&call(json!({ "ms": 50_000 }))).await;
    let session = other.attach(session.detach());
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "a" } });
    assert_eq!(session.post(&cancelled).await.status(), 202);
    let (channel, message) = recorded.next("all").await;
    while exchange.event().await.is_some() {}
    let session = one.attach(session.detach());
    let mut exchange = session.post(&call(json!({ "ms": 1000, "text": "done" }))).await;
    for _ in 0..3 {
        replicas.redis.command(&[b"PUBLISH", &channel, &message]).await;
    }
    let answer = exchange.response(&json!("a")).await;
    assert_eq!(text(&answer["result"]), "done", "{answer}");
}

/// Counts are plain numbers: setting them back allows more calls, of those that are allowed anyway.
#[tokio::test(flavor = "multi_thread")]
async fn counts_that_are_put_back_allow_more_calls_and_nothing_else() {
    let replicas = Replicas::with(1, "", "limits = { calls_per_hour = 2, timeout_ms = 60000 }").await;
    let server = &replicas.all[0];
    let call = async || {
        let done =
            server.modern("tools/call", json!({ "name": "g_t", "arguments": { "text": "done" } }), json!({})).await;
        done.is_ok_and(|result| text(&result) == "done")
    };
    assert!(call().await && call().await && !call().await);
    let keys = replicas.redis.keys().await;
    let key = keys.iter().find(|key| key.starts_with("wharf:limit:")).expect("it is counted");
    replicas.redis.command(&[b"HSET", key.as_bytes(), b"hours", b"1"]).await;
    assert!(call().await && !call().await);
    // A value of another kind refuses, or counts here alone.
    replicas.redis.command(&[b"SET", key.as_bytes(), b"x"]).await;
    call().await;
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
}

/// An older record of what a client was told of: it is told once more of what it knows, and everything else is as before.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_record_of_told_lists_tells_once_more() {
    let replicas = Replicas::start(1).await;
    let server = &replicas.all[0];
    let mut session = server.legacy("2025-11-25", able()).await;
    let mut stream = session.stream().await;
    let file = replicas.folders[0].join("config/wharf/wharf.toml");
    let mut records = Vec::new();
    for name in ["more", "another"] {
        let config = std::fs::read_to_string(&file).unwrap();
        let plugin = e2e::given(name, &json!({}), "").replace("\" }", "\", alone = true }");
        std::fs::write(&file, format!("{config}\n{plugin}")).unwrap();
        while stream.event().await.expect("a change")["method"] != "notifications/tools/list_changed" {}
        // It is stored a moment after the client is told.
        session.call("g_t", json!({ "text": "done" })).await;
        records.push(stored(&replicas, "wharf:told:").await);
    }
    let (key, older) = &records[0];
    replicas.redis.restore(key, older).await;
    let mut stream = session.stream().await;
    session.request("resources/subscribe", json!({ "uri": "note:///x" })).await.unwrap();
    session.call("g_t", json!({ "updated": "note:///x" })).await;
    let mut changes = 0;
    loop {
        let event = stream.event().await.expect("the stream goes on");
        match event["method"].as_str() {
            Some("notifications/tools/list_changed") => changes += 1,
            Some("notifications/resources/updated") => break,
            _ => {}
        }
    }
    assert!(changes <= 1, "{changes}");
}
