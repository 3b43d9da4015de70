//! Subscriptions to resources cover resources below them, but not those with a similar prefix, in both eras.

use e2e::{Exchange, Folder, LEGACY, Pipe, SUBSCRIPTION_KEY, Server, given, json, together};

const UPDATED: &str = "notifications/resources/updated";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.config(&given("g", &json!({}), ""));
    folder
}

/// The resources that are announced in turn, and whether a subscription to `note:///a/b` covers them. The last one is covered.
const ANNOUNCED: [(&str, bool); 9] = [
    ("note:///a/b", true),
    ("note:///a/b/c", true),
    ("note:///a/b/c/d.txt", true),
    ("note:///a", false),
    ("note:///a/bc", false),
    ("note:///a/b.txt", false),
    ("note:///A/B", false),
    ("note:///b", false),
    ("note:///a/b/last", true),
];

async fn announce(server: &Server) {
    for (uri, _) in ANNOUNCED {
        let call = json!({ "name": "g_t", "arguments": { "updated": uri } });
        server.modern("tools/call", call, json!({})).await.unwrap();
    }
}

async fn check(stream: &mut Exchange, tag: Option<&str>) {
    for (uri, heard) in ANNOUNCED {
        if heard {
            let event = stream.event().await.unwrap();
            assert_eq!((&event["method"], &event["params"]["uri"]), (&json!(UPDATED), &json!(uri)));
            assert_eq!(event["params"]["_meta"].get(SUBSCRIPTION_KEY), tag.map(|tag| json!(tag)).as_ref(), "{event}");
            assert_eq!(event["params"].as_object().unwrap().len(), 1 + usize::from(tag.is_some()), "{event}");
        }
    }
}

/// RES-14.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_hears_of_what_lies_below_it() {
    let folder = folder();
    let server = Server::start(&folder, &[]).await;
    let filter = json!({ "notifications": { "resourceSubscriptions": ["note:///a/b"] } });
    let mut modern = server.open_modern(json!("m"), "subscriptions/listen", filter, json!({})).await;
    modern.event().await.unwrap();
    let mut legacy = Vec::new();
    for revision in LEGACY {
        let mut session = server.legacy(revision, json!({})).await;
        let stream = session.stream().await;
        session.request("resources/subscribe", json!({ "uri": "note:///a/b" })).await.unwrap();
        legacy.push((session, stream));
    }
    announce(&server).await;
    check(&mut modern, Some("m")).await;
    for (session, stream) in &mut legacy {
        check(stream, None).await;
        // No more updates after unsubscribing.
        session.request("resources/unsubscribe", json!({ "uri": "note:///a/b" })).await.unwrap();
        session.request("resources/subscribe", json!({ "uri": "note:///z" })).await.unwrap();
    }
    announce(&server).await;
    let end = json!({ "name": "g_t", "arguments": { "updated": "note:///z" } });
    server.modern("tools/call", end, json!({})).await.unwrap();
    check(&mut modern, Some("m")).await;
    for (_, stream) in &mut legacy {
        assert_eq!(stream.event().await.unwrap()["params"]["uri"], "note:///z");
    }
}

/// SUB-06: each subscription gets each event once, under its own id.
#[tokio::test(flavor = "multi_thread")]
async fn overlapping_subscriptions_are_told_once_each() {
    let folder = folder();
    let mut pipe = Pipe::start(&folder, &["run"]);
    let all = json!(["note:///a", "note:///a/b", "note:///a/b/c", "note:///a/b/c"]);
    let mut ids = Vec::new();
    for uris in [all.clone(), all, json!(["note:///a/b/c"]), json!(["note:///x"])] {
        let filter = json!({ "notifications": { "resourceSubscriptions": uris } });
        ids.push(pipe.begin_modern("subscriptions/listen", filter, json!({})).await);
        pipe.notification("notifications/subscriptions/acknowledged").await;
    }
    for uri in ["note:///a/b/c", "note:///x"] {
        let call = json!({ "name": "g_t", "arguments": { "updated": uri } });
        pipe.modern("tools/call", call, json!({})).await.unwrap();
    }
    let last = pipe.find("the last update", |message| message["params"]["uri"] == "note:///x").await;
    assert_eq!(last["params"]["_meta"][SUBSCRIPTION_KEY], ids[3]);
    let mut told: Vec<_> =
        pipe.inbox().iter().map(|update| update["params"]["_meta"][SUBSCRIPTION_KEY].clone()).collect();
    told.sort_by_key(e2e::Value::as_u64);
    assert_eq!(told, ids[..3], "{:?}", pipe.inbox());
}

/// The subscription is active once the answer has arrived: later events cannot be too early.
#[tokio::test(flavor = "multi_thread")]
async fn what_follows_the_opening_of_a_stream_at_once_is_told() {
    let folder = folder();
    let server = Server::start(&folder, &[]).await;
    let clients = (0..64).map(|number| {
        let server = &server;
        async move {
            let uri = format!("note:///of/{number}");
            let mut session = server.legacy("2025-11-25", json!({})).await;
            session.request("resources/subscribe", json!({ "uri": uri })).await.unwrap();
            let mut stream = session.stream().await;
            session.call("g_t", json!({ "updated": uri })).await;
            let event = stream.event().await.unwrap();
            assert_eq!((&event["method"], &event["params"]["uri"]), (&json!(UPDATED), &json!(uri)));
        }
    });
    together(clients).await;
}
