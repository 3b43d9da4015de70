//! Five thousand requests with an error in the head or body, and then a valid one.

use std::{collections::BTreeMap, sync::Arc};

use e2e::{Folder, Server, json, modern_params, random::Random, text};
use tokio::task::JoinSet;

const AT_ONCE: usize = 32;

fn seeds(server: &Server, session: &str) -> Vec<Vec<u8>> {
    let greet = json!({ "name": "hello_greet", "arguments": { "name": "x" } });
    let modern =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": modern_params(greet.clone(), json!({})) });
    let legacy = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": greet });
    let post = |headers: &str, body: String| {
        let length = body.len();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             {headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}",
            server.address
        )
        .into_bytes()
    };
    let modern_headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: hello_greet\r\n";
    vec![
        post(modern_headers, modern.to_string()),
        post(&format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n"), legacy.to_string()),
        post("", json!([legacy, modern]).to_string()),
        post(
            &format!("Mcp-Session-Id: {session}\r\n"),
            json!({ "jsonrpc": "2.0", "id": "wharf-1", "result": {} }).to_string(),
        ),
        post(
            &format!("Mcp-Session-Id: {session}\r\n"),
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" }).to_string(),
        ),
        format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address).into_bytes(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_malformed_requests_change_nothing() {
    let folder = Folder::new();
    folder.plugin("hello");
    let server = Arc::new(Server::start(&folder, &["plugins/hello.wasm"]).await);
    // Until everything is loaded, `/healthz` correctly answers 503.
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
    let session = server.legacy("2025-11-25", json!({})).await.id;
    let seeds = seeds(&server, &session);
    let mut random = Random::new(47);
    let mut under_way = JoinSet::new();
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    let mut take = |answer: Vec<u8>| {
        if answer.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(&answer);
        let status = text.strip_prefix("HTTP/1.1 ").or_else(|| text.strip_prefix("HTTP/1.0 "));
        let status = status.and_then(|rest| rest.get(..3)).and_then(|code| code.parse::<u16>().ok());
        assert!(status.is_some_and(|status| (200..500).contains(&status)), "{text}");
        *statuses.entry(status.unwrap()).or_default() += 1;
    };
    for round in 0..5000 {
        let seed = random.pick(&seeds).clone();
        let body = seed.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let bytes = match round % 3 {
            // A correct head with the right length, and a damaged body.
            0 if body < seed.len() => {
                let damaged = random.damage(&seed[body..]);
                let head = String::from_utf8(seed[..body].to_vec()).unwrap();
                let right = format!("Content-Length: {}\r\n", seed.len() - body);
                let mut bytes = head.replace(&right, &format!("Content-Length: {}\r\n", damaged.len())).into_bytes();
                bytes.extend(damaged);
                bytes
            }
            1 => {
                let mut bytes = random.damage(&seed[..body]);
                bytes.extend_from_slice(&seed[body..]);
                bytes
            }
            _ if random.below(8) == 0 => {
                let length = random.below(400);
                random.bytes(length)
            }
            _ => random.damage(&seed),
        };
        let server = Arc::clone(&server);
        under_way.spawn(async move { server.connect(&bytes).await.drain().await });
        if under_way.len() >= AT_ONCE {
            take(under_way.join_next().await.unwrap().unwrap());
        }
    }
    while let Some(answer) = under_way.join_next().await {
        take(answer.unwrap());
    }
    // The damage reached every layer, not only the first one.
    for status in [200, 202, 400, 403, 404, 415] {
        assert!(statuses.contains_key(&status), "nothing was answered {status}: {statuses:?}");
    }
    assert!(statuses.values().sum::<usize>() > 1000, "{statuses:?}");
    let good = json!({ "name": "hello_greet", "arguments": { "name": "Ada" } });
    assert_eq!(text(&server.modern("tools/call", good.clone(), json!({})).await.unwrap()), "Hello, Ada!");
    let headers = [("Mcp-Session-Id", session.as_str())];
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": good });
    let mut exchange = server.post(&headers, &body).await;
    assert_eq!(text(&exchange.json().await["result"]), "Hello, Ada!", "the session is still there");
    assert!(!server.log().contains("incident") && !server.log().contains("panicked"), "{}", server.log());
    let server = Arc::into_inner(server).expect("all requests are over");
    assert_eq!(server.terminate().await.0.code(), Some(0));
}
