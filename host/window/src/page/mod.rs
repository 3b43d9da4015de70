//! The page in the browser that shows what all wharfs of this user do, served over loopback TCP. The server writes all HTML; a small script
//! only brings it up to date. Nothing is loaded from elsewhere.

mod door;
mod events;
mod layout;
mod machine;
mod now;
mod plugins;
mod record;
mod refused;
mod routes;
mod shared;
mod waiting;
mod words;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};
use wharf_base::socket_owner;

use self::{routes::routes, shared::Shared};
use crate::{actions::Actions, viewer::Viewer};

/// The most connections at once. Further ones wait.
const MAX_CONNECTIONS: usize = 16;
/// How long a browser may take to send the head of a request, and how long a connection without requests stays open.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may last in all: longer than a stream of events.
const CONNECTION_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// The most bytes that are read ahead on a connection, which also bounds the head of a request.
const MAX_BUFFER_BYTES: usize = 32 << 10;
/// How long to wait after the system could not accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The page, which listens and is not served yet.
pub struct Page {
    listener: TcpListener,
    shared: Arc<Shared>,
    /// Whether the system says which user holds the other end of a connection. Then other users are not let in, whatever they know.
    knows_users: bool,
}

/// Makes links to a page.
#[derive(Clone)]
pub struct Links(Arc<Shared>);

impl Links {
    /// Makes a link, which works once and for ten minutes.
    pub fn fresh(&self) -> io::Result<String> {
        self.0.door.link(Instant::now())
    }
}

impl Page {
    /// Listens at a port of this machine; 0: at one that is free.
    pub async fn bind(port: u16, viewer: Arc<Viewer>, actions: Arc<dyn Actions>) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let shared = Arc::new(Shared::new(listener.local_addr()?, viewer, actions)?);
        Ok(Self { knows_users: socket_owner::is_known(&listener), listener, shared })
    }

    /// Returns what makes links to this page.
    pub fn links(&self) -> Links {
        Links(Arc::clone(&self.shared))
    }

    /// Listens to all wharfs, and serves the page, until it is dropped.
    pub async fn serve(self) {
        let Self { listener, shared, knows_users } = self;
        let (routes, places) = (routes(&shared), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
        let mut open = JoinSet::new();
        open.spawn(Arc::clone(&shared.viewer).run());
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = open.join_next() => continue,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::debug!("no connection was accepted: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // Before it takes a place, so that another user cannot take them all.
            if knows_users && !socket_owner::is_own(&stream) {
                continue;
            }
            // The semaphore is never closed.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
            let service = TowerToHyperService::new(routes.clone());
            open.spawn(async move {
                connection(stream, service).await;
                drop(place);
            });
        }
    }
}

async fn connection(stream: TcpStream, service: TowerToHyperService<axum::Router>) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    if let Ok(Err(error)) = timeout(CONNECTION_LIFETIME, served).await {
        tracing::debug!("a connection to the page: {error}");
    }
}
