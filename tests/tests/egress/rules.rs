//! Which requests are allowed.

use e2e::{Folder, json, text};

use crate::{config, connected, send, web::Web};

#[tokio::test(flavor = "multi_thread")]
async fn only_what_a_rule_allows_leaves() {
    let (folder, web) = (Folder::new(), Web::start().await);
    let port = web.address.port();
    let rules = format!("{{ url = \"http://localhost:{port}/ok\", private = true }}");
    config(&folder, &rules, "");
    let mut pipe = connected(&folder, &[]).await;
    let answer = send(&mut pipe, json!({ "url": web.url("/ok/a?b=c") })).await.unwrap();
    assert_eq!((&answer["status"], &answer["body"]), (&json!(200), &json!("ok")));
    let before = (web.connections(), web.requests());
    for (method, url) in [
        ("POST", web.url("/ok")),
        ("TRACE", web.url("/ok")),
        ("CONNECT", web.url("/ok")),
        ("GET", web.url("/")),
        ("GET", web.url("/okay")),
        ("GET", web.url("/ok/../secret")),
        ("GET", web.url("/ok/%2e%2e/secret")),
        ("GET", web.url("/ok%2fx")),
        ("GET", web.url("/ok/%25%32%65%25%32%65/secret")),
        ("GET", web.url("/ok/%252%65%252%65/secret")),
        ("GET", web.url("/ok/..%25%32%66secret")),
        ("GET", web.url("/ok/..%3b/secret")),
        ("GET", web.url("/ok/%c0%ae%c0%ae/secret")),
        ("GET", web.url("//ok")),
        ("GET", format!("https://localhost:{port}/ok")),
        ("GET", format!("http://127.0.0.1:{port}/ok")),
        ("GET", format!("http://[::1]:{port}/ok")),
        ("GET", format!("http://127.1:{port}/ok")),
        ("GET", format!("http://2130706433:{port}/ok")),
        ("GET", format!("http://0x7f000001:{port}/ok")),
        ("GET", format!("http://0177.0.0.1:{port}/ok")),
        ("GET", format!("http://0:{port}/ok")),
        ("GET", format!("http://localhost.example:{port}/ok")),
        ("GET", format!("http://localhost@localhost:{port}/ok")),
        ("GET", format!("http://x.localhost:{port}/ok")),
        ("GET", format!("http://[::ffff:127.0.0.1]:{port}/ok")),
        ("GET", format!("http://localhost:{port}@evil.example/ok")),
    ] {
        let refused = send(&mut pipe, json!({ "url": url, "method": method })).await;
        assert!(refused.is_err(), "{method} {url}: {refused:?}");
    }
    assert_eq!((web.connections(), web.requests()), before, "nothing that was refused left");
    // The same host, spelled differently, is the same host.
    for url in [format!("http://LOCALHOST:{port}/ok"), format!("http://localhost.:{port}/ok")] {
        assert_eq!(send(&mut pipe, json!({ "url": url })).await.unwrap()["status"], 200, "{url}");
    }
    let line = pipe.wait_for_log("it wanted POST").await;
    let wanted = format!("{{ url = \"http://localhost:{port}/\", methods = [\"POST\"] }} of `http` would allow");
    assert!(line.contains(&wanted) && line.contains("[plugins.out.grants]"), "{line}");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_to_this_machine_needs_a_private_rule() {
    let (folder, web) = (Folder::new(), Web::start().await);
    config(&folder, &format!("\"{}\"", web.url("")), "");
    let mut pipe = connected(&folder, &[]).await;
    let refused = send(&mut pipe, json!({ "url": web.url("/ok") })).await.unwrap_err();
    assert!(refused.contains("DestinationIpProhibited"), "{refused}");
    let line = pipe.wait_for_log("not a public address").await;
    assert!(line.contains("private = true"), "{line}");
    assert_eq!(web.connections(), 0);
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_the_plugins_next_request() {
    let (folder, web, other) = (Folder::new(), Web::start().await, Web::start().await);
    config(&folder, &format!("{{ url = \"{}\", private = true }}", web.url("")), "");
    let mut pipe = connected(&folder, &[]).await;
    let elsewhere = other.url("/secret");
    let answer = send(&mut pipe, json!({ "url": web.url(&format!("/redirect?{elsewhere}")) })).await.unwrap();
    assert_eq!((&answer["status"], &answer["headers"]["location"]), (&json!(302), &json!(elsewhere)));
    assert!(send(&mut pipe, json!({ "url": elsewhere })).await.is_err());
    assert_eq!(other.connections(), 0);
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_rule_nothing_leaves_and_the_operator_is_told() {
    let (folder, web) = (Folder::new(), Web::start().await);
    config(&folder, "", "");
    let mut pipe = connected(&folder, &[]).await;
    let refused = send(&mut pipe, json!({ "url": web.url("/ok") })).await.unwrap_err();
    assert!(refused.contains("HttpRequestDenied"), "{refused}");
    let line = pipe.wait_for_log("it wanted GET").await;
    assert!(line.contains(&format!("the entry \"{}\" of `http` would allow", web.url(""))), "{line}");
    assert_eq!(web.connections(), 0);
    let failed = pipe.call("fail", json!({ "url": "", "body": "no" })).await;
    assert_eq!(text(&failed), "no", "what was not refused has no hint");
    pipe.close().await;
}
