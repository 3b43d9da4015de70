//! Legacy answers over HTTP as event streams: when they are used, their event ids, and resumption after a connection broke or was closed on
//! purpose.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use e2e::{Exchange, Folder, LEGACY, PATIENCE, Server, Session, Value, given, json, prompt, scaled, text};

const WITH_IDS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

async fn started(more: &str) -> (Folder, Server) {
    let folder = Folder::new();
    folder.config(&format!("{more}\n{}", given("g", &json!({}), "limits = { concurrency = 8, timeout_ms = 20000 }")));
    let server = Server::start(&folder, &[]).await;
    // Waits for the first load, so that no request waits for it.
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
    (folder, server)
}

/// A call of `steps`, which sends a report each 100 ms, and then answers `text`.
fn steps(steps: u64, text: &str) -> Value {
    let arguments = json!({ "steps": steps, "ms": 100, "text": text });
    json!({ "name": "g_t", "arguments": arguments, "_meta": { "progressToken": text } })
}

async fn quiet(session: &mut Session<'_>) {
    session.request("logging/setLevel", json!({ "level": "emergency" })).await.unwrap();
}

/// The reports on a stream before its answer, and the answer's text. The stream ends with the answer.
async fn rest(exchange: &mut Exchange, token: &str, id: &Value) -> (Vec<u64>, String) {
    let mut reports = Vec::new();
    loop {
        let message = exchange.event().await.expect("an answer");
        if message.get("method").is_none() {
            assert_eq!(message["id"], *id);
            assert_eq!(exchange.event().await, None, "a stream ends with its answer");
            return (reports, text(&message["result"]).to_owned());
        }
        assert_eq!(message["params"]["progressToken"], token, "only what belongs to this stream: {message}");
        reports.push(message["params"]["progress"].as_u64().unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_longer_is_a_stream_and_the_newest_revision_primes_it() {
    let (_folder, server) = started("").await;
    for revision in LEGACY {
        let mut session = server.legacy(revision, json!({})).await;
        let (id, mut fast) = session.begin("tools/call", json!({ "name": "g_t", "arguments": { "text": "f" } })).await;
        assert!(!fast.is_stream(), "{revision}");
        assert_eq!(text(&fast.response(&id).await["result"]), "f");
        // It sends no message before its answer.
        let work = scaled(Duration::from_millis(700));
        let slow =
            json!({ "name": "g_t", "arguments": { "ms": u64::try_from(work.as_millis()).unwrap(), "text": "s" } });
        let began = Instant::now();
        let (id, mut slow) = session.begin("tools/call", slow).await;
        assert!(slow.is_stream() && began.elapsed() < work, "{revision}: {:?}", began.elapsed());
        let first = slow.frame().await.unwrap();
        if revision == "2025-11-25" {
            assert!(first.id.is_some() && first.data.as_deref() == Some(""), "{first:?}");
            assert!(began.elapsed() < work, "at once, not with the answer");
            assert_eq!(text(&slow.response(&id).await["result"]), "s");
        } else {
            assert_eq!(first.id.is_some(), revision > "2024-11-05", "{revision}: {first:?}");
            let answer: Value = first.data.unwrap().parse().unwrap();
            assert_eq!(text(&answer["result"]), "s", "{revision}: nothing comes before the answer");
        }
        let mut standing = session.stream().await;
        assert_eq!((standing.status(), standing.is_stream()), (200, true));
        if revision == "2025-11-25" {
            let first = standing.frame().await.unwrap();
            assert!(first.id.is_some() && first.data.as_deref() == Some(""), "{first:?}");
        }
    }
}

/// HL-14.
#[tokio::test(flavor = "multi_thread")]
async fn event_ids_are_unique_in_a_session() {
    let (_folder, server) = started("").await;
    for revision in WITH_IDS {
        let mut session = server.legacy(revision, json!({})).await;
        quiet(&mut session).await;
        let mut streams = vec![session.stream().await];
        session.request("resources/subscribe", json!({ "uri": "note:///x" })).await.unwrap();
        for name in ["a", "b", "c"] {
            streams.push(session.begin("tools/call", steps(4, name)).await.1);
        }
        session.call("g_t", json!({ "updated": "note:///x" })).await;
        let mut seen = HashSet::new();
        let (standing, calls) = streams.split_first_mut().unwrap();
        for call in calls {
            while let Some(frame) = call.frame().await {
                assert!(seen.insert(frame.id.clone().expect("an id")), "{revision}: {frame:?}");
            }
        }
        loop {
            let frame = standing.frame().await.unwrap();
            assert!(seen.insert(frame.id.clone().expect("an id")), "{revision}: {frame:?}");
            if frame.data.is_some_and(|data| data.contains("note:///x")) {
                break;
            }
        }
        assert!(seen.len() > 3 * 4, "{seen:?}");
    }
}

/// HL-15: all messages after the event, and none of another stream.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_stream_goes_on_where_it_broke() {
    let (_folder, server) = started("").await;
    for revision in WITH_IDS {
        let mut session = server.legacy(revision, json!({})).await;
        quiet(&mut session).await;
        let (other_id, mut other) = session.begin("tools/call", steps(14, "other")).await;
        let (id, mut exchange) = session.begin("tools/call", steps(12, "mine")).await;
        let mut reports = Vec::new();
        // Interrupted twice, the first time in the middle of the stream.
        for _ in 0..2 {
            for _ in 0..3 {
                let event = exchange.event().await.unwrap();
                assert_eq!(event["params"]["progressToken"], "mine", "{event}");
                reports.push(event["params"]["progress"].as_u64().unwrap());
            }
            let last = exchange.last_event_id.clone().unwrap();
            exchange = session.resume(&last, "tools/call").await;
            assert_eq!((exchange.status(), exchange.is_stream()), (200, true), "{revision}");
        }
        let (more, answer) = rest(&mut exchange, "mine", &id).await;
        reports.extend(more);
        assert_eq!((reports, answer.as_str()), ((1..=12).collect(), "mine"), "{revision}");
        let (reports, answer) = rest(&mut other, "other", &other_id).await;
        assert_eq!((reports, answer.as_str()), ((1..=14).collect(), "other"), "{revision}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_waits_for_who_lost_its_stream() {
    let (_folder, server) = started("").await;
    for revision in WITH_IDS {
        let mut session = server.legacy(revision, json!({})).await;
        quiet(&mut session).await;
        let (id, mut exchange) = session.begin("tools/call", steps(4, "mine")).await;
        exchange.event().await.unwrap();
        let first = exchange.last_event_id.clone().unwrap();
        drop(exchange);
        // This one takes longer, so the first one is finished when it is.
        let (later, mut exchange) = session.begin("tools/call", steps(8, "later")).await;
        rest(&mut exchange, "later", &later).await;
        let mut resumed = session.resume(&first, "tools/call").await;
        assert_eq!(rest(&mut resumed, "mine", &id).await, (vec![2, 3, 4], "mine".to_owned()), "{revision}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_got_lost_is_put_again() {
    let (_folder, server) = started("").await;
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut session = server.legacy(revision, json!({ "elicitation": {} })).await;
        quiet(&mut session).await;
        let call = json!({ "name": "g_t", "arguments": { "steps": 2, "ms": 100, "ask": [["a"]] }, "_meta": { "progressToken": 1 } });
        let (id, mut exchange) = session.begin("tools/call", call).await;
        exchange.event().await.unwrap();
        let last = exchange.last_event_id.clone().unwrap();
        drop(exchange);
        let mut resumed = session.resume(&last, "tools/call").await;
        let question = loop {
            let message = resumed.event().await.unwrap();
            if message["method"] == "elicitation/create" {
                break message;
            }
        };
        let result = json!({ "action": "accept", "content": { "v": "x" } });
        let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
        assert_eq!(session.post(&reply).await.status(), 202);
        let answer = loop {
            let message = resumed.event().await.expect("an answer");
            if message.get("method").is_none() {
                break message;
            }
        };
        assert_eq!((&answer["id"], text(&answer["result"])), (&id, "a"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_standing_stream_goes_on_too() {
    let (_folder, server) = started("").await;
    for revision in WITH_IDS {
        let mut session = server.legacy(revision, json!({})).await;
        session.request("resources/subscribe", json!({ "uri": "note:///x" })).await.unwrap();
        let mut stream = session.stream().await;
        let update = async |session: &mut Session<'_>, at: usize| {
            session.call("g_t", json!({ "updated": format!("note:///x/{at}") })).await;
        };
        update(&mut session, 0).await;
        assert_eq!(stream.event().await.unwrap()["params"]["uri"], "note:///x/0");
        let last = stream.last_event_id.clone().expect("an event id");
        drop(stream);
        for at in 1..4 {
            update(&mut session, at).await;
        }
        let mut resumed = session.resume(&last, "").await;
        assert_eq!((resumed.status(), resumed.is_stream()), (200, true), "{revision}");
        update(&mut session, 4).await;
        for at in 1..5 {
            let event = resumed.event().await.unwrap();
            assert_eq!(event["params"]["uri"], format!("note:///x/{at}"), "{revision}: each once, in order");
        }
    }
}

/// HL-09: only a notification cancels, also after the stream broke.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_stream_broke_can_be_cancelled() {
    let folder = Folder::new();
    folder.config(&given("g", &json!({}), "limits = { concurrency = 1, timeout_ms = 25000 }"));
    let server = Server::start(&folder, &[]).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let spin = json!({ "name": "g_t", "arguments": { "steps": 1, "spin": true }, "_meta": { "progressToken": 1 } });
    let (id, mut exchange) = session.begin("tools/call", spin).await;
    exchange.event().await.unwrap();
    let last = exchange.last_event_id.clone().unwrap();
    drop(exchange);
    // It continues, and its answer can still be fetched.
    let resumed = session.resume(&last, "tools/call").await;
    assert_eq!((resumed.status(), resumed.is_stream()), (200, true));
    drop(resumed);
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    assert_eq!(session.post(&cancel).await.status(), 202);
    let began = Instant::now();
    assert_eq!(text(&session.call("g_t", json!({ "text": "next" })).await), "next");
    assert!(began.elapsed() < prompt(), "it ran on for {:?}", began.elapsed());
}

/// HL-17.
#[tokio::test(flavor = "multi_thread")]
async fn the_newest_revision_is_made_to_poll() {
    let (_folder, server) = started("[http]\npoll_after_ms = 300").await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    quiet(&mut session).await;
    let (id, mut exchange) = session.begin("tools/call", steps(15, "mine")).await;
    let (mut reports, mut closed) = (Vec::new(), 0);
    let answer = loop {
        match exchange.event().await {
            Some(message) if message.get("method").is_none() => break message,
            Some(message) => reports.push(message["params"]["progress"].as_u64().unwrap()),
            None => {
                closed += 1;
                assert!(closed < 100, "it is never answered");
                assert!(exchange.retry.is_some(), "it says when to come back");
                let last = exchange.last_event_id.clone().unwrap();
                exchange = session.resume(&last, "tools/call").await;
                assert_eq!((exchange.status(), exchange.is_stream()), (200, true));
            }
        }
    };
    assert_eq!((&answer["id"], text(&answer["result"])), (&id, "mine"));
    assert_eq!(reports, (1..=15).collect::<Vec<u64>>(), "nothing is lost or doubled");
    assert!((2..=8).contains(&closed), "closed {closed} times in 1.5 s");
    // Older clients would treat the end of the stream as the end of the answer, and modern streams never end early.
    for revision in &LEGACY[..3] {
        let mut session = server.legacy(revision, json!({})).await;
        quiet(&mut session).await;
        let (id, mut exchange) = session.begin("tools/call", steps(8, "mine")).await;
        assert_eq!(rest(&mut exchange, "mine", &id).await, ((1..=8).collect(), "mine".to_owned()), "{revision}");
        assert_eq!(exchange.retry, None, "{revision}");
    }
    let mut exchange = server.open_modern(json!("m"), "tools/call", steps(8, "mine"), json!({})).await;
    assert_eq!(rest(&mut exchange, "mine", &json!("m")).await, ((1..=8).collect(), "mine".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_with_its_session_is_not_taken_up() {
    let (_folder, server) = started("").await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let (_, mut exchange) = session.begin("tools/call", steps(5, "mine")).await;
    exchange.event().await.unwrap();
    let last = exchange.last_event_id.clone().unwrap();
    drop(exchange);
    assert!((200..300).contains(&session.delete().await.status()));
    let mut resumed = session.resume(&last, "tools/call").await;
    assert_eq!(resumed.status(), 404);
    assert!(resumed.json().await["error"]["code"].is_i64());
}

/// By 404, clients learn that the session has ended, so an id that is not known begins a new stream.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_event_does_not_end_a_session() {
    let (_folder, server) = started("").await;
    // A session of the oldest revision has no event ids, so every id is unknown.
    for revision in LEGACY {
        let mut session = server.legacy(revision, json!({})).await;
        quiet(&mut session).await;
        for last in ["0f3a_17", "17", "1-2-none of ours"] {
            let resumed = session.resume(last, "").await;
            assert_eq!((resumed.status(), resumed.is_stream()), (200, true), "{revision} {last}");
        }
        assert_eq!(text(&session.call("g_t", json!({ "text": "next" })).await), "next");
    }
    // The answers to a batch are lost with its stream, but its session is not.
    let session = server.legacy("2025-03-26", json!({})).await;
    assert_eq!(session.resume("1-2-b", "").await.status(), 400);
}

/// Answers are stored for clients that lost them, within limits.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_fetches_have_a_bound() {
    let (_folder, server) = started("").await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let before = e2e::memory_kib(server.pid(), "VmRSS");
    for round in 0..150 {
        let call = json!({ "name": "g_t", "arguments": { "ms": 150, "bytes": 4_000_000 } });
        let (_, exchange) = session.begin("tools/call", call).await;
        assert!(exchange.is_stream(), "round {round}");
        drop(exchange);
    }
    // All of them are finished when this one is: the plugin runs calls in their order.
    let began = Instant::now();
    session.call("g_t", json!({ "ms": 300 })).await;
    assert!(began.elapsed() < PATIENCE);
    let most = e2e::memory_kib(server.pid(), "VmHWM");
    println!("{} MiB before, at most {} MiB", before >> 10, most >> 10);
    assert!(
        most < before + (200 << 10),
        "150 answers of 4 MB made it grow from {} to {} MiB",
        before >> 10,
        most >> 10
    );
    assert_eq!(session.request("ping", json!({})).await.unwrap(), json!({}));
}
