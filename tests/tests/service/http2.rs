//! HTTP/2: many requests on one connection, and its limits for clients.

use std::sync::Arc;

use e2e::{
    Folder, PATIENCE, Server, Value, given,
    http::{Over, modern_headers},
    json, modern_params, prompt,
};
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, StatusCode, body::Bytes, client::conn::http2::SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use crate::{
    authority::{Authority, write},
    tls::started,
};

pub type Body = Full<Bytes>;

pub async fn connected(server: &Server) -> SendRequest<Body> {
    let stream = server.open().await.unwrap();
    let connecting = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (client, connection) = connecting.await.unwrap();
    tokio::spawn(connection);
    client
}

pub fn request(server: &Server, params: Value, method: &str) -> Request<Body> {
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

pub async fn text<B: hyper::body::Body<Data = Bytes>>(response: Response<B>) -> String
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
    // After draining, the subscription gets its result, and then the connection ends.
    server.signal(Signal::TERM);
    let ended = text(listening).await;
    assert!(ended.contains("\"result\""), "{ended}");
    let (status, took, _) = server.terminated().await;
    assert!(status.success() && took < 2 * prompt(), "{took:?}");
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
        // Each is reset as soon as wharf has begun to answer it. Those that are reset before are limited by the library.
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
    server.wait_for_log("resets them again and again").await;
    // Other clients are still served.
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
        // With the 64th answer it gets GOAWAY, and may have sent another request by then.
        assert!(answered <= 70, "the connection goes on");
    }
    assert!(answered >= 64, "{answered}");
}

/// The memory that wharf uses for plugins and clients, according to its metrics.
async fn host_memory(metrics: &str) -> u64 {
    let mut stream = tokio::net::TcpStream::connect(metrics).await.unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {metrics}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut text)).await.unwrap().unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("wharf_host_memory_bytes ")).expect(&text);
    line.trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_opens_no_window_is_charged_for_its_answers_until_its_connection_ends() {
    const CALLS: usize = 80;
    const BYTES: usize = 40_000;
    let (folder, authority) = (Folder::new(), Authority::new());
    write(&folder, &authority.localhost());
    folder.config(&format!(
        "[http.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n[admin]\nlisten = \"127.0.0.1:0\"\n{}",
        given("g", &json!({}), "")
    ));
    let over = Over::Tls(authority.client(None, &["h2"]));
    let server = Server::of(folder.command(&["serve", "--listen", "127.0.0.1:0"], &[]), over).await;
    let line = server.wait_for_log("serving metrics at ").await;
    let metrics = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    let mut other = connected(&server).await;
    assert!(text(other.send_request(call(&server, 0, "warm")).await.unwrap()).await.contains("warm"));
    let before = host_memory(metrics).await;
    let stream = server.open().await.unwrap();
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    // One byte of each answer may arrive, and one more for each byte that is read.
    let (client, connection) =
        builder.initial_stream_window_size(1).handshake::<_, Body>(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let long = "a".repeat(BYTES);
    let calls = (0..CALLS).map(|_| {
        let (mut client, request) = (client.clone(), call(&server, 0, &long));
        async move {
            let mut answer = client.send_request(request).await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK);
            // It is being sent.
            assert!(answer.body_mut().frame().await.unwrap().unwrap().into_data().unwrap().len() == 1);
            answer
        }
    });
    let answers = e2e::together(calls).await;
    assert_eq!(answers.len(), CALLS);
    let held = host_memory(metrics).await;
    assert!(held >= before + (CALLS * BYTES) as u64, "{held} bytes are charged, {before} before");
    server.wait_for_log("a client that does not read what it is sent").await;
    timeout(PATIENCE, connection).await.expect("the connection goes on").unwrap().ok();
    assert!(text(other.send_request(call(&server, 0, "other")).await.unwrap()).await.contains("other"));
    // The tasks of the connection's streams end a moment after it.
    let given_back = async { while host_memory(metrics).await >= before + BYTES as u64 {} };
    assert!(timeout(PATIENCE, given_back).await.is_ok(), "more is still charged than {before} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_any_size_arrive_whole() {
    let (_folder, server) = ready().await;
    let mut client = connected(&server).await;
    for length in [1, 16_000, 16_400, 65_000, 70_000, 1_000_000] {
        let long = "ab".repeat(length / 2 + 1);
        let answer = text(client.send_request(call(&server, 0, &long)).await.unwrap()).await;
        assert!(answer.contains(&format!("\"{long}\"")), "{length}: {} bytes", answer.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_told_to_go_and_stays_is_ended() {
    let (_folder, server) = ready().await;
    // Neither a client that never starts to send,
    let _silent = server.open().await.unwrap();
    // nor one that had an answer and does not read GOAWAY delays shutdown. Its runtime does not run any more after that.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let deaf = async {
        let mut client = connected(&server).await;
        let answer = text(client.send_request(call(&server, 0, "once")).await.unwrap()).await;
        assert!(answer.contains("once"), "{answer}");
        client
    };
    let client = tokio::task::block_in_place(|| runtime.block_on(deaf));
    server.signal(Signal::TERM);
    let (status, took, _) = server.terminated().await;
    assert!(status.success() && took < 4 * prompt(), "{took:?}");
    drop(client);
    runtime.shutdown_background();
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_have_a_limit() {
    let (_folder, server) = ready().await;
    // The longest allowed token, in addition to other headers.
    for (bytes, expected) in [(3 << 10, StatusCode::OK), (8 << 10, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)] {
        let mut client = connected(&server).await;
        let token = format!("Bearer {}", "a".repeat(12 << 10));
        let request = Request::get("https://localhost/livez").header("authorization", token);
        let request = request.header("x-long", "a".repeat(bytes));
        let answer = client.send_request(request.body(Full::default()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), expected, "{bytes}");
    }
}
