//! Servers and plugins that are slow, endless or gone.

use std::{sync::atomic::Ordering, time::Instant};

use e2e::{Folder, Value, is_error, json, text};

use crate::{config, connected, send, web::Web};

fn any(web: &Web) -> String {
    format!("{{ url = \"{}\", methods = \"any\", private = true }}", web.url(""))
}

fn limits(lines: &str) -> String {
    format!("[limits]\n{lines}")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_call_may_do_is_bounded() {
    let (folder, web) = (Folder::new(), Web::start().await);
    config(&folder, &any(&web), &limits("http_requests = 5\nhttp_at_once = 2\nhttp_in_kib = 64\nhttp_out_kib = 16"));
    let mut pipe = connected(&folder, &[]).await;
    let told = pipe.call("many", json!({ "url": web.url("/soon"), "times": 8 })).await;
    let told: Value = serde_json::from_str(text(&told)).unwrap();
    assert_eq!((&told["200"], &told["ErrorCode::ConnectionLimitReached"]), (&json!(5), &json!(3)), "{told}");
    let most = web.seen.most.load(Ordering::SeqCst);
    assert!((1..=2).contains(&most) && web.requests() == 5, "{most} at once, {}", web.requests());
    for path in ["/big", "/endless"] {
        let answer = send(&mut pipe, json!({ "url": web.url(path) })).await.unwrap();
        assert!(
            answer["error"].as_str().is_some_and(|error| error.contains("response body size exceeds")),
            "{}",
            answer["error"]
        );
        assert!(answer["length"].as_u64().unwrap() <= 64 << 10, "{}", answer["length"]);
    }
    let body = "x".repeat(32 << 10);
    let refused = send(&mut pipe, json!({ "url": web.url("/upload"), "method": "POST", "body": body })).await;
    assert!(refused.as_ref().is_err_and(|error| error.contains("HttpRequestBodySize")), "{refused:?}");
    assert_eq!(web.seen.complete.load(Ordering::SeqCst), 0);
    for limit in ["http_requests", "http_in_kib", "http_out_kib"] {
        pipe.wait_for_log(&format!("its limit `{limit}` is used up; to allow it, edit [limits]")).await;
    }
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_requests_take_turns() {
    let (folder, web) = (Folder::new(), Web::start().await);
    config(&folder, &any(&web), &limits("concurrency = 20\nhttp_at_once = 4"));
    let mut pipe = connected(&folder, &[]).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        let arguments = json!({ "url": web.url("/ok"), "times": 50 });
        ids.push(pipe.begin("tools/call", json!({ "name": "many", "arguments": arguments })).await);
    }
    for id in &ids {
        assert_eq!(text(&pipe.answer(id).await.unwrap()), "{\"200\":50}");
    }
    assert_eq!(web.requests(), 1000);
    // As many as one plugin may have at once, so none was closed and replaced.
    assert!(web.connections() <= 96, "connections are kept: {}", web.connections());
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_deadline_and_the_guests_own_end_a_wait() {
    let (folder, web) = (Folder::new(), Web::start().await);
    config(&folder, &any(&web), &limits("timeout_ms = 1500"));
    let mut pipe = connected(&folder, &[]).await;
    let refused = send(&mut pipe, json!({ "url": web.url("/slow"), "first_byte_ms": 100 })).await.unwrap_err();
    assert!(refused.contains("Timeout"), "{refused}");
    let began = Instant::now();
    let ended = pipe.call("send", json!({ "url": web.url("/slow") })).await;
    assert!(is_error(&ended) && text(&ended).contains("`out` did not finish"), "{ended}");
    assert!(began.elapsed().as_millis() >= 1400);
    let unread = pipe.call("never_read", json!({ "url": web.url("/endless") })).await;
    assert_eq!(text(&unread), "200 true");
    assert_eq!(send(&mut pipe, json!({ "url": web.url("/ok") })).await.unwrap()["status"], 200);
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_computes_after_a_request_moves_to_the_guest_threads() {
    let (folder, web) = (Folder::new(), Web::start().await);
    config(&folder, &any(&web), &limits("timeout_ms = 2000"));
    let mut pipe = connected(&folder, &[("RUST_LOG", "wharf=info,wharf_sandbox=debug")]).await;
    pipe.call("upload", json!({ "url": web.url("/upload"), "bytes": 20_000, "then": "spin" })).await;
    pipe.wait_for_log("has computed through a tick").await;
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_was_not_finished_never_arrives_as_complete() {
    let (folder, web) = (Folder::new(), Web::start().await);
    config(&folder, &any(&web), &limits("timeout_ms = 400"));
    let mut pipe = connected(&folder, &[]).await;
    let upload = |then: &str| json!({ "url": web.url("/upload"), "bytes": 20_000, "then": then });
    // Reused connections could make a truncated upload look complete, so some exist before.
    for _ in 0..4 {
        let whole = pipe.call("upload", upload("finish")).await;
        assert!(text(&whole).contains("\"body\":\"20000\""), "{whole}");
    }
    for _ in 0..25 {
        let mut ids = Vec::new();
        for at in 0..8 {
            let then = ["trap", "spin", "wait", "drop"][at % 4];
            ids.push(pipe.begin("tools/call", json!({ "name": "upload", "arguments": upload(then) })).await);
        }
        for id in &ids {
            pipe.answer(id).await.unwrap();
        }
    }
    web.seen
        .until(|seen| {
            seen.requests.load(Ordering::SeqCst)
                == seen.complete.load(Ordering::SeqCst) + seen.broken.load(Ordering::SeqCst)
        })
        .await;
    let (complete, broken) = (web.seen.complete.load(Ordering::SeqCst), web.seen.broken.load(Ordering::SeqCst));
    assert_eq!(complete, 4, "{broken} broke off");
    assert!(broken > 100, "most of them reached the server: {broken}");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_is_taken_away_ends_the_request() {
    let (folder, web) = (Folder::new(), Web::start().await);
    config(&folder, &any(&web), "");
    let mut pipe = connected(&folder, &[]).await;
    let id = pipe.begin("tools/call", json!({ "name": "send", "arguments": { "url": web.url("/slow") } })).await;
    web.seen.until(|seen| seen.requests.load(Ordering::SeqCst) == 1).await;
    config(&folder, "", "");
    let ended = pipe.answer(&id).await.unwrap();
    assert!(is_error(&ended) && text(&ended).contains("took away access"), "{ended}");
    web.release.send_replace(true);
    let refused = send(&mut pipe, json!({ "url": web.url("/ok") })).await.unwrap_err();
    assert!(refused.contains("HttpRequestDenied"), "{refused}");
    pipe.close().await;
}
