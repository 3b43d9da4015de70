//! HTTP/2: many requests on one connection, and what a client may not do with it.

use std::{sync::Arc, time::Duration};

use e2e::{
    Folder, PATIENCE, Server, Value,
    http::{Over, modern_headers},
    json, modern_params,
};
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, StatusCode, body::Bytes, client::conn::http2::SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::Signal;
use tokio::time::timeout;

use crate::{
    authority::{Authority, write},
    tls::started,
};

type Body = Full<Bytes>;

async fn connected(server: &Server) -> SendRequest<Body> {
    let stream = server.open().await.unwrap();
    let connecting = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (client, connection) = connecting.await.unwrap();
    tokio::spawn(connection);
    client
}

fn request(server: &Server, params: Value, method: &str) -> Request<Body> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": modern_params(params, json!({})) });
    let mut request = Request::post(format!("https://{}/mcp", server.address))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in modern_headers(&body) {
        request = request.header(name, value);
    }
    request.body(Full::from(body.to_string())).unwrap()
}

fn call(server: &Server, ms: u64, text: &str) -> Request<Body> {
    request(server, json!({ "name": "g_t", "arguments": { "ms": ms, "text": text } }), "tools/call")
}

async fn text<B: hyper::body::Body<Data = Bytes>>(response: Response<B>) -> String
where
    B::Error: std::fmt::Debug,
{
    let bytes = timeout(PATIENCE, response.into_body().collect()).await.unwrap().unwrap().to_bytes();
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn ready() -> (Folder, Server) {
    let (folder, authority) = (Folder::new(), Authority::new());
    write(&folder, &authority.localhost());
    let mut server = started(&folder, &authority, "").await;
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
    server.over = Over::Tls(authority.client(None, &["h2", "http/1.1"]));
    (folder, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_one_connection_do_not_wait_for_each_other() {
    let (_folder, server) = ready().await;
    let mut client = connected(&server).await;
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let listening = client.send_request(request(&server, listen, "subscriptions/listen")).await.unwrap();
    assert_eq!(listening.status(), StatusCode::OK);
    let slow = client.send_request(call(&server, 1000, "slow"));
    let fast = client.send_request(call(&server, 0, "fast"));
    tokio::pin!(slow);
    tokio::select! {
        _ = &mut slow => panic!("the slow one was answered first"),
        fast = fast => {
            let fast = text(fast.unwrap()).await;
            assert!(fast.contains("\"fast\""), "{fast}");
        }
    }
    assert!(text(slow.await.unwrap()).await.contains("\"slow\""));
    // Drained: the subscription gets its result, and then the connection ends.
    server.signal(Signal::TERM);
    let ended = text(listening).await;
    assert!(ended.contains("\"result\""), "{ended}");
    let (status, took, _) = server.terminated().await;
    assert!(status.success() && took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_its_host_once() {
    let (_folder, server) = ready().await;
    for (uri, host, expected) in [
        ("localhost", None, StatusCode::OK),
        ("localhost", Some("localhost"), StatusCode::OK),
        ("evil.example", None, StatusCode::FORBIDDEN),
        ("localhost", Some("evil.example"), StatusCode::FORBIDDEN),
        ("evil.example", Some("localhost"), StatusCode::FORBIDDEN),
    ] {
        let mut client = connected(&server).await;
        let mut request = Request::get(format!("https://{uri}/healthz"));
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let answer = client.send_request(request.body(Full::default()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), expected, "{uri} {host:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_begins_requests_only_to_give_them_up_is_gone() {
    let (_folder, server) = ready().await;
    let client = connected(&server).await;
    let attacks = async {
        // Each is given up as soon as wharf has begun to answer it. Those that are given up before are bounded by the library.
        while !client.is_closed() {
            let begun: Vec<_> = (0..64)
                .map(|_| {
                    let mut client = client.clone();
                    let listen = json!({ "notifications": { "toolsListChanged": true } });
                    let request = request(&server, listen, "subscriptions/listen");
                    async move { drop(client.send_request(request).await) }
                })
                .collect();
            e2e::together(begun).await;
        }
    };
    timeout(PATIENCE, attacks).await.expect("it is still connected");
    server.wait_for_log("gives them up again and again").await;
    // Others are served all the same.
    let mut other = connected(&server).await;
    assert!(text(other.send_request(call(&server, 0, "other")).await.unwrap()).await.contains("\"other\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_get_only_so_many_answers() {
    let (_folder, server) = ready().await;
    let client = Arc::new(tokio::sync::Mutex::new(connected(&server).await));
    let mut answered = 0;
    loop {
        let mut client = client.lock().await;
        let get = Request::get("https://localhost/healthz").body(Full::default()).unwrap();
        match timeout(PATIENCE, client.send_request(get)).await.unwrap() {
            Ok(answer) => assert_eq!(answer.status(), StatusCode::OK),
            Err(_) => break,
        }
        answered += 1;
        // With the 64th it is told to go, and may have sent another one by then.
        assert!(answered <= 70, "the connection goes on");
    }
    assert!(answered >= 64, "{answered}");
}
