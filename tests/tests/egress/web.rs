//! Servers for plugins to reach: on loopback, over HTTP and HTTPS, and a proxy. Each records the requests that it received.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::any,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use e2e::{Value, json};
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::{Notify, watch},
    task::JoinSet,
};

/// The requests that a server has received.
#[derive(Default)]
pub struct Seen {
    pub connections: AtomicUsize,
    pub requests: AtomicUsize,
    /// Requests that are being answered, and their maximum so far.
    now: AtomicUsize,
    pub most: AtomicUsize,
    /// Complete uploads with the sum of their sizes, and aborted ones.
    pub complete: AtomicUsize,
    pub bytes: AtomicUsize,
    pub broken: AtomicUsize,
    /// Notified at each request, and when a body has ended.
    pub changed: Notify,
}

impl Seen {
    /// Waits until `wanted` is true.
    pub async fn until(&self, wanted: impl Fn(&Self) -> bool) {
        let waited = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if wanted(self) {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(e2e::PATIENCE, waited).await.expect("the server has not seen it");
    }
}

/// A server that runs until it is dropped.
pub struct Web {
    pub address: SocketAddr,
    pub seen: Arc<Seen>,
    /// Set when delayed answers may be sent.
    pub release: watch::Sender<bool>,
    _tasks: JoinSet<()>,
}

#[derive(Clone)]
struct Shared {
    seen: Arc<Seen>,
    release: watch::Receiver<bool>,
}

impl Web {
    pub async fn start() -> Self {
        Self::serve(None).await
    }

    /// The same over TLS.
    pub async fn start_tls(config: Arc<rustls::ServerConfig>) -> Self {
        Self::serve(Some(tokio_rustls::TlsAcceptor::from(config))).await
    }

    async fn serve(tls: Option<tokio_rustls::TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Seen> = Arc::default();
        let (release, released) = watch::channel(false);
        let shared = Shared { seen: Arc::clone(&seen), release: released };
        let router = Router::new().fallback(any(answer)).with_state(shared);
        let mut tasks = JoinSet::new();
        let counted = Arc::clone(&seen);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counted.connections.fetch_add(1, Ordering::SeqCst);
                let (tls, service) = (tls.clone(), hyper_util::service::TowerToHyperService::new(router.clone()));
                connections.spawn(async move {
                    let builder = hyper::server::conn::http1::Builder::new();
                    // A client may disconnect at any time.
                    match tls {
                        None => builder.serve_connection(hyper_util::rt::TokioIo::new(stream), service).await.ok(),
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => {
                                builder.serve_connection(hyper_util::rt::TokioIo::new(stream), service).await.ok()
                            }
                            Err(_) => None,
                        },
                    };
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { address, seen, release, _tasks: tasks }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.address.port())
    }

    pub fn requests(&self) -> usize {
        self.seen.requests.load(Ordering::SeqCst)
    }

    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }
}

async fn answer(State(shared): State<Shared>, request: Request) -> Response {
    let now = shared.seen.now.fetch_add(1, Ordering::SeqCst) + 1;
    shared.seen.most.fetch_max(now, Ordering::SeqCst);
    let seen = Arc::clone(&shared.seen);
    let response = respond(shared, request).await;
    seen.now.fetch_sub(1, Ordering::SeqCst);
    response
}

async fn respond(shared: Shared, request: Request) -> Response {
    shared.seen.requests.fetch_add(1, Ordering::SeqCst);
    shared.seen.changed.notify_waiters();
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let text = || String::from("ok");
    match path.as_str() {
        "/slow" => {
            shared.release.clone().wait_for(|released| *released).await.ok();
            text().into_response()
        }
        // The tests are about what happens while a server takes its time: the time itself is needed, and no event could stand for it.
        "/soon" => {
            tokio::time::sleep(Duration::from_millis(20)).await;
            text().into_response()
        }
        "/endless" => {
            let piece = Bytes::from(vec![b'e'; 16 << 10]);
            Body::from_stream(stream::repeat(piece).map(Ok::<_, Infallible>)).into_response()
        }
        "/big" => vec![b'b'; 3 << 20].into_response(),
        "/redirect" => {
            let to = parts.uri.query().unwrap_or_default().to_owned();
            (StatusCode::FOUND, [(header::LOCATION, to)]).into_response()
        }
        "/upload" => {
            let (mut body, mut bytes) = (body.into_data_stream(), 0);
            while let Some(piece) = body.next().await {
                match piece {
                    Ok(piece) => bytes += piece.len(),
                    Err(_) => {
                        shared.seen.broken.fetch_add(1, Ordering::SeqCst);
                        shared.seen.changed.notify_waiters();
                        return StatusCode::BAD_REQUEST.into_response();
                    }
                }
            }
            shared.seen.bytes.fetch_add(bytes, Ordering::SeqCst);
            shared.seen.complete.fetch_add(1, Ordering::SeqCst);
            shared.seen.changed.notify_waiters();
            bytes.to_string().into_response()
        }
        path if path.starts_with("/echo") => {
            let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
            echo(path, &parts.headers, &parts.uri.to_string(), &body)
        }
        _ => text().into_response(),
    }
}

/// Repeats the request in the encoding that the path names.
fn echo(path: &str, headers: &HeaderMap, uri: &str, body: &[u8]) -> Response {
    let named: Value = headers
        .iter()
        .map(|(name, value)| (name.to_string(), json!(String::from_utf8_lossy(value.as_bytes()))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let text = json!({ "headers": named, "uri": uri, "body": String::from_utf8_lossy(body) }).to_string();
    let authorization = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes().to_vec()).unwrap_or_default();
    match path {
        "/echo/base64" => STANDARD.encode(&text).into_response(),
        "/echo/hex" => text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>().into_response(),
        "/echo/percent" => text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>().into_response(),
        "/echo/gzip" => ([(header::CONTENT_ENCODING, "gzip")], text).into_response(),
        "/echo/split" => {
            let bytes: Vec<_> =
                text.into_bytes().into_iter().map(|byte| Ok::<_, Infallible>(Bytes::from(vec![byte]))).collect();
            Body::from_stream(stream::iter(bytes)).into_response()
        }
        // The request is at the end, as in many error messages.
        "/echo/missing" => {
            let asked = uri.split_once('?').map_or("", |(_, query)| query);
            (StatusCode::NOT_FOUND, format!("there is no page {asked}")).into_response()
        }
        "/echo/events" => {
            let events = stream::iter([Ok::<_, Infallible>(Bytes::from("data: one\n\n"))]).chain(stream::pending());
            ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
        }
        "/echo/broken" => {
            let half = authorization.len() - 8;
            let text = [&[b'x'; 600], authorization.get(..half).unwrap_or_default()].concat();
            // The second chunk follows when the first has been sent.
            let broken = stream::iter([0, 1]).then(move |at| {
                let text = Bytes::from(text.clone());
                async move {
                    tokio::task::yield_now().await;
                    if at == 0 { Ok(text) } else { Err(std::io::Error::other("broken")) }
                }
            });
            Body::from_stream(broken).into_response()
        }
        "/echo/name" => {
            let name: String = authorization.iter().map(|byte| format!("{byte:02x}")).collect();
            let name = axum::http::HeaderName::from_bytes(format!("x-{name}").as_bytes()).unwrap();
            ([(name, "value")], "see the header").into_response()
        }
        "/echo/header" => {
            let mut response = String::from("see the header").into_response();
            response.headers_mut().insert("x-echo", authorization.as_slice().try_into().unwrap());
            response
        }
        "/echo/trailers" => {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-echo", authorization.as_slice().try_into().unwrap());
            let frames = [Ok::<_, Infallible>(Frame::data(Bytes::from("x"))), Ok(Frame::trailers(trailers))];
            let body = Body::new(StreamBody::new(stream::iter(frames)).boxed_unsync());
            ([(header::TRAILER, "x-echo")], body).into_response()
        }
        _ => text.into_response(),
    }
}

/// A proxy that supports tunnels and absolute URLs. It resolves every name to this machine.
pub struct Relay {
    pub address: SocketAddr,
    /// The first line and the authorization of each request.
    pub seen: Arc<parking_lot::Mutex<Vec<(String, String)>>>,
    _tasks: JoinSet<()>,
}

impl Relay {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<parking_lot::Mutex<Vec<(String, String)>>> = Arc::default();
        let noted = Arc::clone(&seen);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(relay(stream, Arc::clone(&noted)));
            }
        });
        Self { address, seen, _tasks: tasks }
    }
}

async fn relay(stream: TcpStream, seen: Arc<parking_lot::Mutex<Vec<(String, String)>>>) {
    let mut stream = BufReader::new(stream);
    let (mut head, mut authorization) = (Vec::new(), String::new());
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        if let Some(value) = line.to_ascii_lowercase().starts_with("proxy-authorization:").then(|| line.clone()) {
            authorization = value.split_once(':').unwrap().1.trim().to_owned();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push(line);
    }
    let first = head[0].trim().to_owned();
    seen.lock().push((first.clone(), authorization));
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let authority = target.strip_prefix("http://").unwrap_or(target).split('/').next().unwrap();
    let port = authority.rsplit(':').next().unwrap();
    let mut upstream = TcpStream::connect(format!("127.0.0.1:{port}")).await.unwrap();
    if method == "CONNECT" {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    } else {
        let path = target.splitn(4, '/').nth(3).unwrap_or_default();
        let head = format!("{method} /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
        upstream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        upstream.read_to_end(&mut answer).await.unwrap();
        stream.write_all(&answer).await.unwrap();
        return;
    }
    copy_bidirectional(&mut stream, &mut upstream).await.ok();
}
