//! One client takes as much as it can of everything that clients share, in every possible way. Another client, at another address, is
//! served in the meantime as if it were alone.

use std::time::{Duration, Instant};

use e2e::{Exchange, Folder, Server, client::Client, json, plugin, scaled, together};

use crate::bystander::config;

/// The time limit for 99 of 100 requests of the other client.
const SOON: Duration = Duration::from_millis(250);
/// The number of rounds of requests that it makes.
const ROUNDS: usize = 25;

/// Waits for an answer. Returns how long it took, or what was received instead.
async fn answered(began: Instant, mut exchange: Exchange) -> Result<Duration, String> {
    if !exchange.read_head().await {
        return Err("the connection was closed".into());
    }
    if exchange.status() != 200 {
        return Err(format!("{} {}", exchange.status(), exchange.text().await));
    }
    let message =
        if exchange.is_stream() { exchange.event().await.ok_or("the stream ended")? } else { exchange.json().await };
    if message.get("error").is_some() { Err(message.to_string()) } else { Ok(began.elapsed()) }
}

/// The other client's work, repeated: everything that takes a place. The error says what was lost or late.
async fn is_served(ben: &Client<'_>, during: &str) -> Result<(), String> {
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let echo = || json!({ "name": "by_echo", "arguments": { "message": "well" } });
        took.push(answered(began, ben.begin("tools/call", echo()).await).await?);
        let began = Instant::now();
        let session = match ben.initialize().await {
            Ok(session) => session,
            Err(mut refused) => return Err(format!("no session: {} {}", refused.status(), refused.text().await)),
        };
        took.push(began.elapsed());
        let began = Instant::now();
        took.push(answered(began, ben.in_session(&session, 2, "tools/call", echo()).await).await?);
        let began = Instant::now();
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        took.push(answered(began, ben.begin("subscriptions/listen", filter).await).await?);
    }
    took.sort();
    let p99 = took[(took.len() - 1) * 99 / 100];
    println!("{during}: {} requests, p99 {p99:?}, at most {:?}", took.len(), took[took.len() - 1]);
    if p99 <= scaled(SOON) { Ok(()) } else { Err(format!("p99 {p99:?}")) }
}

/// The ways in which a client takes all it can get.
#[derive(Debug, Clone, Copy)]
enum Greed {
    LongCalls,
    LongCallsAndLeaves,
    QuestionsAndLeaves,
    Sessions,
    Listens,
    Streams,
}

/// Takes it. The returned value holds what was taken.
async fn takes(ann: &Client<'_>, greed: Greed) -> Vec<Exchange> {
    let sleep = || json!({ "name": "sleep", "arguments": { "ms": 20_000 } });
    let mut held = Vec::new();
    match greed {
        Greed::LongCalls => {
            for _ in 0..300 {
                held.push(ann.begin("tools/call", sleep()).await);
            }
        }
        Greed::LongCallsAndLeaves | Greed::QuestionsAndLeaves => {
            let session = ann.initialize().await.ok().unwrap();
            let asks = matches!(greed, Greed::QuestionsAndLeaves);
            let params = || if asks { json!({ "name": "show_introduce", "arguments": {} }) } else { sleep() };
            // The response begins when a question is asked, or after a moment. Only then does the client disconnect.
            for at in 0..15 {
                let begun =
                    together((0..20).map(|one| ann.in_session(&session, at * 20 + one + 2, "tools/call", params())))
                        .await;
                for mut exchange in begun {
                    assert!(exchange.read_head().await);
                    assert!([200, 503].contains(&exchange.status()), "{greed:?}: {}", exchange.status());
                }
            }
        }
        Greed::Sessions => {
            for _ in 0..55 {
                together((0..20).map(|_| async {
                    if let Ok(session) = ann.initialize().await {
                        let mut pinged = ann.in_session(&session, 2, "ping", json!({})).await;
                        assert!(pinged.read_head().await);
                    }
                }))
                .await;
            }
        }
        Greed::Listens => {
            let filter = || json!({ "notifications": { "toolsListChanged": true } });
            for _ in 0..55 {
                held.extend(together((0..20).map(|_| ann.begin("subscriptions/listen", filter()))).await);
            }
            for exchange in &mut held {
                assert!(exchange.read_head().await);
            }
        }
        Greed::Streams => {
            for _ in 0..55 {
                let opened = together((0..20).map(|_| async {
                    let session = ann.initialize().await.ok()?;
                    let mut stream = ann.send("GET", &[("Mcp-Session-Id", session.as_str())], "").await;
                    assert!(stream.read_head().await);
                    Some(stream)
                }));
                held.extend(opened.await.into_iter().flatten());
            }
        }
    }
    held
}

async fn started() -> (Folder, Server) {
    let folder = Folder::new();
    // The defaults of a machine with few cores, whatever the machine.
    let more = format!(
        "[http]\nin_flight = 256\n[plugins.hostile]\npath = {:?}\nprefix = \"\"\n\
         [plugins.show]\npath = {:?}\n[plugins.show.grants]\nask = [\"elicitation\"]\n",
        plugin("hostile"),
        plugin("showcase")
    );
    config(&folder, &more);
    let server = Server::loaded(&folder).await;
    (folder, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_all_there_is_leaves_others_their_part() {
    let mut failed = Vec::new();
    for greed in [
        Greed::LongCalls,
        Greed::LongCallsAndLeaves,
        Greed::QuestionsAndLeaves,
        Greed::Sessions,
        Greed::Listens,
        Greed::Streams,
    ] {
        let (_folder, server) = started().await;
        let (ann, ben) = (Client::at(&server, 1), Client::at(&server, 2));
        is_served(&ben, "alone").await.unwrap();
        let held = takes(&ann, greed).await;
        if let Err(lost) = is_served(&ben, &format!("{greed:?}")).await {
            failed.push(format!("{greed:?}: {lost}"));
        }
        drop(held);
        drop(server.terminate().await);
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A client is told which share is used up, and when to retry.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_its_part_is_told_so() {
    let (_folder, server) = started().await;
    let ann = Client::at(&server, 1);
    let mut held = takes(&ann, Greed::LongCalls).await;
    let mut refused = held.pop().unwrap();
    assert!(refused.read_head().await);
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("1")));
    let told = refused.json().await["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(
        told,
        "this client holds 192 of the 256 places for requests under way, and the others are reserved for other clients \
         (`in_flight` in [http]); try again"
    );
}

/// While questions wait for a person, the client that asked them can use its places for other calls, and gets an answer to all of them.
#[tokio::test(flavor = "multi_thread")]
async fn questions_keep_no_place() {
    let (_folder, server) = started().await;
    let ann = Client::at(&server, 1);
    let session = ann.initialize().await.ok().expect("a session");
    let mut open = Vec::new();
    for at in 0..15 {
        let introduce = || json!({ "name": "show_introduce", "arguments": {} });
        open.extend(
            together((0..20).map(|one| ann.in_session(&session, at * 20 + one + 2, "tools/call", introduce()))).await,
        );
    }
    for exchange in &mut open {
        assert!(exchange.read_head().await);
        assert_eq!(exchange.status(), 200);
    }
    is_served(&ann, "300 questions open").await.unwrap();
    // All of them are answered, and no call is lost.
    for (at, exchange) in open.iter_mut().enumerate() {
        for answer in ["Ada", "Lovelace"] {
            let question = exchange.event().await.expect("a question");
            assert_eq!(question["method"], "elicitation/create", "{at}: {question}");
            let answer = json!({ "jsonrpc": "2.0", "id": question["id"],
                "result": { "action": "accept", "content": { "name": answer } } });
            let headers = [("Mcp-Session-Id", session.as_str())];
            let mut taken = ann.send("POST", &headers, &answer.to_string()).await;
            assert!(taken.read_head().await);
            assert_eq!(taken.status(), 202);
        }
        let done = exchange.event().await.expect("an answer");
        assert_eq!(e2e::text(&done["result"]), "Ada Lovelace after 2 rounds", "{at}");
    }
}

/// A client that disconnected does not lock itself out either: its abandoned calls make room for its next ones.
#[tokio::test(flavor = "multi_thread")]
async fn who_comes_back_is_served_in_place_of_what_nobody_waits_for() {
    let (_folder, server) = started().await;
    let ann = Client::at(&server, 1);
    drop(takes(&ann, Greed::LongCallsAndLeaves).await);
    let began = Instant::now();
    loop {
        let mut exchange = ann.begin("tools/call", json!({ "name": "by_echo", "arguments": { "message": "m" } })).await;
        assert!(exchange.read_head().await);
        if exchange.status() == 200 {
            break;
        }
        assert_eq!(exchange.status(), 503);
        // The calls themselves end after twenty seconds.
        assert!(began.elapsed() < scaled(Duration::from_secs(12)), "her calls keep her out");
    }
    assert!(began.elapsed() < scaled(Duration::from_secs(12)), "served after {:?}", began.elapsed());
    println!("served after {:?}", began.elapsed());
}
