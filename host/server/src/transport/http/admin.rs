//! The listener for those who watch over wharf: `GET /metrics`, and nothing else. It needs no token, since it tells nothing of what
//! clients ask for or get, but its requests pass the same guard as those of clients, so that no web page can read it.
//!
//! A connection is for one request, and few are open at once, each for a short time.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    connections::Remote,
    guard,
    socket::{Accepted, Socket},
};
use crate::config::{Admin, Http, Listen};

/// How many connections there may be at once. Further ones are closed.
const CONNECTIONS: usize = 16;
/// How long one may take in all.
const WITHIN: Duration = Duration::from_secs(10);
/// How much is read of a request.
const BUFFER_BYTES: usize = 16 << 10;

/// What is served.
pub struct Served {
    /// The metrics as text, and its type.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
    pub content_type: &'static str,
}

/// Serves until `stop` is cancelled. `http`: what the guard knows of the listener for clients, of which it takes none of the names.
pub async fn serve(listener: TcpListener, admin: &Admin, http: &Http, served: Served, stop: CancellationToken) {
    let (served, room) = (Arc::new(served), Arc::new(Semaphore::new(CONNECTIONS)));
    let names = Http {
        listen: Listen::Address(admin.listen),
        tls: None,
        allowed_hosts: admin.allowed_hosts.clone(),
        allowed_origins: Vec::new(),
        ..http.clone()
    };
    let (socket, mut open) = (Socket::from(listener), JoinSet::new());
    loop {
        let (stream, remote) = tokio::select! {
            accepted = socket.accept() => accepted,
            Some(_) = open.join_next() => continue,
            () = stop.cancelled() => break,
        };
        let Accepted::Tcp(stream) = stream else { continue };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
        let (served, mut names) = (Arc::clone(&served), names.clone());
        // Where it listens at all addresses, the one that was connected to is a name of it.
        if let Ok(own) = stream.local_addr() {
            names.listen = Listen::Address(own);
        }
        open.spawn(async move {
            // A connection that takes too long is closed.
            timeout(WITHIN, connection(stream, remote, &served, &names)).await.ok();
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, remote: Remote, served: &Served, names: &Http) {
    let service = service_fn(|request: Request<Incoming>| async move {
        Ok::<_, Infallible>(answer((request.method(), request.uri().path(), request.headers()), remote, served, names))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(WITHIN)
        .keep_alive(false)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!("a connection to [admin]: {error}");
    }
}

fn answer(
    (method, path, headers): (&Method, &str, &HeaderMap),
    remote: Remote,
    served: &Served,
    names: &Http,
) -> Response<String> {
    let plain = |status, text: &str| {
        let mut response = Response::new(format!("{text}\n"));
        *response.status_mut() = status;
        response
    };
    match guard::check(names, headers, remote) {
        Err(guard::Refusal::Host) => {
            plain(StatusCode::FORBIDDEN, "this host is not served here; add it to `allowed_hosts` in [admin]")
        }
        Err(_) => plain(StatusCode::FORBIDDEN, "this is not for web pages"),
        Ok(()) if path != "/metrics" => plain(StatusCode::NOT_FOUND, "there is only /metrics"),
        Ok(()) if method != Method::GET && method != Method::HEAD => {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "use GET");
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
        Ok(()) => {
            let mut response = Response::new((served.metrics)());
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(served.content_type));
            response
        }
    }
}
