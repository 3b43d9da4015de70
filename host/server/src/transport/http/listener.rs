//! The HTTP server: accepts connections and bounds their number and duration. What is at which path is in `routes`.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use http::{HeaderValue, header};
use rustix::process::{Resource, getrlimit};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{
    connections::{Connections, Place},
    paced::{PACE, Paced},
    routes::routes,
};
use crate::{
    base::refusals::{Reason, What},
    client::server::{DRAIN, Server},
};

/// How long a client may take to send its headers.
const HEADERS: Duration = Duration::from_secs(10);
/// The most connections at once, if the process may open at least twice as many files.
const CONNECTIONS: usize = 4096;
/// How much of a connection is read ahead at the most, which also bounds the headers of a request.
const BUFFER_BYTES: usize = 128 << 10;
const FULL: What =
    What::new("a connection, because there are too many that are being served", Reason::Other("connections"));
const DEAF: What =
    What::new("a client that does not read what it is sent: its connection was ended", Reason::Other("slow_reader"));
/// The path at which MCP is served.
const PATH: &str = "/mcp";

/// Serves until wharf stops. Requests that are under way then have a second to finish.
pub async fn serve(server: Arc<Server>, listener: TcpListener) {
    let app = routes(&server, PATH);
    let connections = Connections::new(most_connections());
    let mut open = JoinSet::new();
    loop {
        let (stream, address) = tokio::select! {
            accepted = accept(&listener) => accepted,
            Some(_) = open.join_next() => continue,
            () = server.stop.cancelled() => break,
        };
        let Some(place) = connections.enter(address.ip(), &server.ledger) else {
            server.refusals.say(FULL);
            continue;
        };
        open.spawn(serve_connection(Arc::clone(&server), stream, place, app.clone()));
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, async { while open.join_next().await.is_some() {} }).await.is_err() {
        tracing::info!("stopped with connections open");
    }
}

async fn serve_connection(server: Arc<Server>, stream: TcpStream, place: Place, app: Router) {
    let app = hyper_util::service::TowerToHyperService::new(app);
    let peer = Arc::clone(&place.peer);
    let service = hyper::service::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(Arc::clone(&peer));
        let (answer, peer) = (hyper::service::Service::call(&app, request), Arc::clone(&peer));
        async move {
            let mut response = answer.await?;
            if peer.has_asked_enough() {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let stream = Paced::new(stream, Arc::clone(&place.peer), PACE);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(hyper_util::rt::TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(hyper_util::rt::TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        // The connection is ended to make room for another.
        () = place.peer.end.cancelled() => return,
        () = server.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
        if cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::TimedOut) {
            server.refusals.say(DEAF);
        }
        tracing::debug!("connection: {error}");
    }
}

/// How many connections there may be: the other half of the files that the process may open is for plugins and wharf itself.
fn most_connections() -> usize {
    let files =
        getrlimit(Resource::Nofile).current.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    CONNECTIONS.min(files / 2).max(1)
}

pub(super) async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Small answers are sent at once. Without this option they would only be slower, so an error does not matter.
                stream.set_nodelay(true).ok();
                return (stream, peer);
            }
            Err(error) => {
                tracing::warn!("cannot accept connections: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
