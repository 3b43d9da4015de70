//! An unauthenticated client that causes introspection of one made-up token after the other does not lock out other clients.

use std::time::{Duration, Instant};

use e2e::{Folder, PATIENCE, Server, client::Client, http::modern_headers, json, modern_params, scaled, together};

use crate::{
    introspecting,
    issuer::{Issuer, Key},
};

async fn status(client: &Client<'_>, token: &str) -> u16 {
    let params = modern_params(json!({ "name": "echo", "arguments": { "message": "hello" } }), json!({}));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let (headers, authorization) = (modern_headers(&body), format!("Bearer {token}"));
    let mut headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.push(("Authorization", &authorization));
    let mut exchange = client.send("POST", &headers, &body.to_string()).await;
    assert!(exchange.read_head().await);
    exchange.status()
}

#[tokio::test(flavor = "multi_thread")]
async fn made_up_tokens_of_a_stranger_keep_nobody_out() {
    let (folder, key) = (Folder::new(), Key::ed("one"));
    let issuer = Issuer::start(&[&key]).await;
    introspecting(&folder, &issuer, "wharf");
    let server = Server::start(&folder, &[]).await;
    let (stranger, ben) = (Client::at(&server, 1), Client::at(&server, 2));
    let tokens: Vec<String> = (0..40).map(|number| format!("good-{number}")).collect();
    for token in &tokens {
        issuer.know(token, issuer.claims());
    }
    issuer.set_slow_about_unknown(true);
    let made_up: Vec<String> = (0..300).map(|number| format!("made-up-{number}")).collect();
    let flood = together(made_up.iter().map(|token| status(&stranger, token)));
    let served = async {
        let began = Instant::now();
        while issuer.introspected() < 12 {
            assert!(began.elapsed() < PATIENCE, "{} questions", issuer.introspected());
            tokio::task::yield_now().await;
        }
        let mut took = Vec::new();
        for token in &tokens {
            let began = Instant::now();
            assert_eq!(status(&ben, token).await, 200, "{token}");
            took.push(began.elapsed());
        }
        took.sort();
        took[(took.len() - 1) * 99 / 100]
    };
    tokio::select! {
        statuses = flood => panic!("the flood was over before: {statuses:?} {}", server.log()),
        p99 = served => assert!(p99 <= scaled(Duration::from_millis(250)), "p99 {p99:?}"),
    }
    assert!(issuer.introspected() <= 40 + 300);
    issuer.set_slow_about_unknown(false);
    server.terminate().await;
}
