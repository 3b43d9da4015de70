//! The HTTP server: accepts connections and bounds their number and duration. What is at which path is in `routes`.

use std::{convert::Infallible, os::fd::AsFd, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use futures_util::{FutureExt, future::select_all};
use http::{HeaderValue, header};
use rustix::process::{Resource, getrlimit};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};

use super::{
    connections::{Connections, Peer, Place, Remote},
    forwarded::is_proxy,
    front::Front,
    one_timer::OneTimer,
    paced::{PACE_INTERVAL, Paced},
    routes::{Routes, with_page},
    socket::{Accepted, Socket},
    tls::Tls,
    unsent::{Flushed, Kept},
};
use crate::client::server::{DRAIN_TIMEOUT, Server};
use wharf_base::{
    ledger::Charge,
    refusals::{Reason, What},
};
use wharf_config::config::defaults;

/// How long a client may take to send its headers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of bytes that are read ahead on a connection, which also bounds the headers of a request.
const MAX_BUFFER_BYTES: usize = 32 << 10;
/// How long wharf waits, when it closes, for requests that are in transit on idle connections.
const IN_TRANSIT_GRACE: Duration = Duration::from_millis(300);
/// The maximum number of connections that are accepted although wharf closes, since they waited in the sockets' backlog before.
const MAX_BACKLOG: usize = 1024;
/// The maximum memory that a connection takes before a request is authenticated, and between requests: the buffers of TLS and HTTP/1.1, the
/// headers of a request, and the tasks for it. Measured: 70 to 80 KiB with unfinished headers, and 95 KiB with an unfinished TLS message.
const CONNECTION_BYTES: usize = 128 << 10;
const NO_PLACE: What = What::new(
    "a connection, because all are in use by clients that are being served (`connections` in [http])",
    Reason::Other("connections"),
);
const NO_MEMORY: What = What::new(
    "a connection, because there is no memory for it (total_host_memory_mib in [limits])",
    Reason::Other("connections"),
);
const CERTIFICATE_REJECTED: What = What::new(
    "a client whose certificate is not accepted any more: its connection was closed",
    Reason::Login("certificate_taken_away"),
);
const UNREAD: What =
    What::new("a client that does not read what it is sent: its connection was closed", Reason::Other("slow_reader"));
/// The path at which MCP is served.
const MCP_PATH: &str = "/mcp";

/// The sockets that accept clients, and what is needed to serve them. All sockets share sessions and limits.
pub struct Listener {
    server: Arc<Server>,
    sockets: Vec<Socket>,
    tls: Option<Arc<Tls>>,
    front: Arc<Front>,
}

impl Listener {
    /// Reads the certificate and opens the access log, if the config names them.
    pub async fn new(server: &Arc<Server>, sockets: Vec<Socket>) -> Result<Self> {
        let required =
            server.startup.http.tls.as_ref().and_then(|tls| tls.clients.as_ref()).is_some_and(|one| one.required);
        ensure!(
            !required || sockets.iter().all(|socket| socket.address().is_some()),
            "clients of a Unix socket have no certificates, but [http.tls] requires them; pass only sockets with addresses"
        );
        let tls = match &server.startup.http.tls {
            None => None,
            Some(files) => Some(Tls::open(files).await?),
        };
        let replica = server.cluster.as_ref().map(|cluster| &*cluster.name);
        let mut routes = Routes::new(server, MCP_PATH);
        routes.all = with_page(routes.all);
        let front = Arc::new(Front::new(routes, &server.startup.http, replica)?);
        Ok(Self { server: Arc::clone(server), sockets, tls, front })
    }

    /// Serves until wharf closes, and then until all requests under way are answered (graceful shutdown). If that takes longer than the
    /// operator allows, the remaining connections are closed.
    pub async fn serve(self) {
        let Self { server, sockets, tls, front } = self;
        let connections = Connections::new(most_connections(&server));
        let (mut open, mut waiting) = (JoinSet::new(), MAX_BACKLOG);
        if let Some(tls) = &tls {
            server.tracker.spawn(Arc::clone(tls).follow(server.reread.subscribe(), server.closing.clone()));
        }
        loop {
            let (stream, remote) = tokio::select! {
                accepted = accept(&sockets) => accepted,
                Some(_) = open.join_next() => continue,
                // Connections in the backlog are accepted first, because the system resets them when the sockets are closed.
                () = server.closing.cancelled() => match accept(&sockets).now_or_never().filter(|_| waiting > 0) {
                    Some(accepted) => {
                        waiting -= 1;
                        accepted
                    }
                    None => break,
                },
            };
            let is_proxy =
                remote.address().is_some_and(|address| is_proxy(&server.startup.http.trusted_proxies, address));
            let Ok(place) = connections.enter(remote, is_proxy, &server.ledger) else {
                server.refusals.say(NO_PLACE);
                continue;
            };
            let Some(charge) = charged(&server, &connections, &mut open).await else {
                server.refusals.say(NO_MEMORY);
                continue;
            };
            let place = (charge, place);
            let (server, front) = (Arc::clone(&server), Arc::clone(&front));
            match stream {
                Accepted::Tcp(stream) => drop(open.spawn(connect(server, stream, place, front, tls.clone()))),
                // The other end is on this machine, so that TLS is not needed.
                Accepted::Unix(stream) => drop(open.spawn(connect(server, stream, place, front, None))),
            }
        }
        drop(sockets);
        let finished = async { while open.join_next().await.is_some() {} };
        let too_long = async {
            tokio::select! {
                () = tokio::time::sleep(server.startup.http.drain) => {}
                () = async { server.stop.cancelled().await; tokio::time::sleep(DRAIN_TIMEOUT).await } => {}
            }
        };
        tokio::select! {
            () = finished => {}
            () = too_long => tracing::info!("stopped with connections open"),
        }
    }
}

/// Returns the next connection at any of the sockets.
async fn accept(sockets: &[Socket]) -> (Accepted, Remote) {
    match sockets {
        [] => std::future::pending().await,
        [socket] => socket.accept().await,
        sockets => select_all(sockets.iter().map(|socket| Box::pin(socket.accept()))).await.0,
    }
}

/// Serves a connection from its first byte to its last.
async fn connect<S>(server: Arc<Server>, stream: S, place: (Charge, Place), front: Arc<Front>, tls: Option<Arc<Tls>>)
where
    S: AsyncRead + AsyncWrite + AsFd + Unpin + Send + 'static,
{
    let (charge, place) = place;
    let peer = Arc::clone(&place.peer);
    let served = async {
        // Released before the place.
        let _charge = charge;
        over(&server, stream, &peer, &front, tls.as_deref()).await;
    };
    place.serve(Box::pin(served)).await;
}

/// Serves a connection over TLS, if there is a certificate.
async fn over<S>(server: &Arc<Server>, stream: S, peer: &Arc<Peer>, front: &Arc<Front>, tls: Option<&Tls>)
where
    S: AsyncRead + AsyncWrite + AsFd + Unpin + Send + 'static,
{
    let stream = Paced::new(stream, Arc::clone(peer), PACE_INTERVAL);
    let Some(tls) = tls else { return http1(server, stream, peer, front).await };
    let secured = tokio::select! {
        secured = tls.accept(stream) => secured,
        // The client has not made a request yet.
        () = server.closing.cancelled() => return,
    };
    match secured {
        Ok((stream, shown)) => {
            if let Some(shown) = &shown {
                peer.showed(Arc::clone(&shown.certificate));
            }
            let refused = async {
                match shown {
                    Some(shown) => shown.refused().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = http1(server, stream, peer, front) => {}
                () = refused => server.refusals.say_of(CERTIFICATE_REJECTED, || format!("from {}", peer.remote())),
            }
        }
        Err(error) => {
            server.refusals.say_of("TLS handshake failed", || format!("{error}, from {}", peer.remote()));
        }
    }
}

async fn http1<S>(server: &Arc<Server>, stream: S, peer: &Arc<Peer>, front: &Front)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let unsent = Arc::default();
    let service = hyper::service::service_fn(async |request| {
        let mut response = front.answer(request, peer).await?;
        // A client that is told to close the connection sends its next request to another server.
        if peer.has_asked_enough() || server.draining.is_cancelled() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok::<_, Infallible>(response.map(|body| Kept::new(body, &unsent)))
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(OneTimer::default())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_BUFFER_BYTES)
        .serve_connection(hyper_util::rt::TokioIo::new(Flushed::new(stream, &unsent)), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = async {
            server.closing.cancelled().await;
            // Closing an idle connection would lose a request in transit. If one arrives, its answer closes the connection.
            tokio::time::sleep(IN_TRANSIT_GRACE).await;
        } => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                // Unauthenticated connections do not delay shutdown; none are accepted while draining.
                () = async {
                    tokio::time::sleep(DRAIN_TIMEOUT.saturating_sub(IN_TRANSIT_GRACE)).await;
                    if peer.is_admitted() {
                        std::future::pending::<()>().await;
                    }
                } => return,
            }
        }
    };
    if let Err(error) = ended {
        let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
        if cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::TimedOut) {
            server.refusals.say(UNREAD);
        }
        tracing::debug!("connection: {error}");
    }
}

/// Charges for a connection that has a place. There is memory for every place, but a connection that was closed for another one releases
/// its memory a moment after its place. While there are such connections, this waits for them.
async fn charged(server: &Server, connections: &Connections, open: &mut JoinSet<()>) -> Option<Charge> {
    loop {
        if let Ok(charge) = server.ledger.connections().charge(CONNECTION_BYTES) {
            return Some(charge);
        }
        // The new connection is not open yet, and has a place.
        if open.len() < connections.taken() {
            return None;
        }
        let _ended = open.join_next().await?;
    }
}

/// Returns the maximum number of connections: what the config says, but at most as many as a quarter of the host's memory suffices for, and
/// at most half of the files that the process may open. The rest is for plugins, requests and wharf itself.
fn most_connections(server: &Server) -> usize {
    let files =
        getrlimit(Resource::Nofile).current.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    let wanted = server.startup.http.connections;
    let by_memory = server.ledger.connections().limit() / CONNECTION_BYTES;
    let most = wanted.min(by_memory).min(files / 2).max(1);
    // Only a number that the operator chose is worth a warning.
    if most < wanted && wanted as u64 != defaults::CONNECTIONS {
        let why = if by_memory <= files / 2 {
            "a quarter of total_host_memory_mib in [limits] is for all of them, at 128 KiB each"
        } else {
            "each takes a file descriptor, and half of those that the process may open (ulimit -n) are for plugins"
        };
        tracing::warn!("at most {most} connections at once, instead of {wanted} (`connections` in [http]): {why}");
    }
    most
}
