//! The listener for monitoring: `GET /metrics`, and nothing else. It needs no token, since metrics contain nothing that
//! clients send or get. Its requests pass the same checks as those of clients, against DNS rebinding and cross-site requests,
//! so that no web page can read it.
//!
//! A connection serves one request, and few connections are open at once, each for a short time.

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
use wharf_config::config::{Admin, Http, ListenAddress};

/// The maximum number of connections at once. Further ones are closed.
const MAX_CONNECTIONS: usize = 16;
/// How long a connection may take in all.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of bytes that are buffered of a request.
const MAX_BUFFER_BYTES: usize = 16 << 10;

/// The metrics to serve.
pub struct AdminMetrics {
    /// Returns the metrics as text of this content type.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
    pub content_type: &'static str,
}

/// Serves until `stop` is cancelled. `http`: the settings of the listener for clients, of which neither hosts nor origins apply here.
pub async fn serve(listener: TcpListener, admin: &Admin, http: &Http, served: AdminMetrics, stop: CancellationToken) {
    let (served, room) = (Arc::new(served), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
    let names = Http {
        listen: ListenAddress::Address(admin.listen),
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
        // On a listener at all addresses, the address that the client connected to is a valid `Host`.
        if let Ok(own) = stream.local_addr() {
            names.listen = ListenAddress::Address(own);
        }
        open.spawn(async move {
            // A connection that takes too long is closed.
            timeout(CONNECTION_TIMEOUT, connection(stream, remote, &served, &names)).await.ok();
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, remote: Remote, served: &AdminMetrics, names: &Http) {
    let service = service_fn(|request: Request<Incoming>| async move {
        Ok::<_, Infallible>(answer((request.method(), request.uri().path(), request.headers()), remote, served, names))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CONNECTION_TIMEOUT)
        .keep_alive(false)
        .max_buf_size(MAX_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!("a connection to [admin]: {error}");
    }
}

fn answer(
    (method, path, headers): (&Method, &str, &HeaderMap),
    remote: Remote,
    served: &AdminMetrics,
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
