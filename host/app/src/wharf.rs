//! A running wharf, as programs that embed it use it.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};

use crate::{
    current::Current,
    error::Error,
    http::{HttpService, Socket},
    session::Session,
};
use wharf_config::config::{self, Plugin};
use wharf_plugins::{
    audit::Log,
    plugins::{
        snapshot::{PluginStatus, Serving},
        status::Status,
    },
    telemetry::{metrics::Metrics, otlp::Otlp},
};
use wharf_serve::{
    client::server::{DRAIN_TIMEOUT, Server},
    transport::http::{listener::Listener, routes, socket},
};

/// A running wharf: it keeps its plugins loaded and up to date, and serves clients with them.
///
/// Cheap to clone; all clones are the same wharf, which stops when the last of them is dropped. It has no signal handlers, and one
/// process can have several. On Linux, all of a process share a bound on idle memory.
///
/// Plugins are compiled in a process of their own, which is this program started again: `main` has to begin with
/// [`compile_if_asked`](wharf_sandbox::compile_if_asked).
#[derive(Clone)]
pub struct Wharf {
    pub(crate) inner: Arc<Inner>,
}

/// What the clones of a [`Wharf`] share.
pub(crate) struct Inner {
    pub(crate) server: Arc<Server>,
    pub(crate) current: Arc<Current>,
    pub(crate) audit: Option<Arc<Log>>,
    /// None: nothing is counted.
    pub(crate) metrics: Option<Arc<Metrics>>,
    /// None: nothing is sent to a collector.
    pub(crate) otlp: Option<Arc<Otlp>>,
    /// The library and the watcher, which end when this is dropped.
    pub(crate) tasks: Mutex<JoinSet<()>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.server.stop.cancel();
    }
}

impl Inner {
    /// Reads what is needed to serve HTTP on sockets.
    pub(crate) async fn listener(&self, sockets: Vec<socket::Socket>) -> Result<Listener, Error> {
        for address in sockets.iter().filter_map(socket::Socket::address) {
            self.server.scopes.egress.is_own(address);
        }
        Listener::new(&self.server, sockets).await.map_err(Error::config)
    }

    /// Waits until every plugin of the config with this number is served or has failed.
    pub(crate) async fn settled(&self, number: u64) {
        let published = &self.server.published;
        let (mut ready, mut settled) = (published.ready.clone(), published.settled.clone());
        // These waits fail only if the library is gone, and then there is nothing left to wait for.
        ready.wait_for(|ready| *ready).await.ok();
        settled.wait_for(|settled| *settled >= number).await.ok();
    }
}

impl Wharf {
    /// Adds a plugin while wharf runs, or replaces the one with its id. Returns when the plugin is served, with what was served under its
    /// id before; connected clients are notified. Calls that are under way finish with the version they began with.
    ///
    /// # Errors
    /// If the plugin does not load. The version before it is then still served.
    pub async fn put(&self, plugin: Plugin) -> Result<Option<Serving>, Error> {
        let id = config::id_of(&plugin).to_owned();
        let before = self.plugins().into_iter().find(|one| one.subject.is_plugin(&id)).and_then(|one| one.serving);
        let number = self.inner.current.give(plugin).map_err(Error::config)?;
        self.inner.settled(number).await;
        self.check(&id)?;
        Ok(before)
    }

    /// Removes a plugin that the program gave, and stops its running calls. A plugin of the config with the same id is served again.
    /// False: the program gave no such plugin.
    pub async fn remove(&self, id: &str) -> bool {
        match self.inner.current.take_away(id) {
            Some(number) => {
                self.inner.settled(number).await;
                true
            }
            None => false,
        }
    }

    /// Reads the config file and the certificate again, without waiting for them to change.
    pub fn reload(&self) {
        self.inner.current.reload();
        self.inner.server.reread.send_replace(());
    }

    /// The status of every plugin, in order of their ids.
    pub fn plugins(&self) -> Vec<PluginStatus> {
        let server = &self.inner.server;
        server.published.plugins(&server.scopes, server.startup.face.instructions.as_deref())
    }

    /// Returns a service that answers MCP over HTTP at this path, for clients of all revisions, `/healthz`, and what else the config turns
    /// on. Any server of the `tower` family mounts it, such as axum with `fallback_service`. The `[http]` table of the config decides which
    /// requests are accepted, by their `Host`, `Origin` and token.
    ///
    /// If the extensions of a request have the [`SocketAddr`](std::net::SocketAddr) of its client, as such or as axum 0.8's `ConnectInfo`,
    /// each client address has its own share of memory; otherwise all clients have one share together.
    ///
    /// # Panics
    /// Outside a Tokio runtime, on which it starts a task.
    pub fn http_service(&self, path: &str) -> HttpService {
        HttpService(routes::Routes::new(&self.inner.server, path).all)
    }

    /// Serves HTTP on a listener, of TCP or of a Unix socket, until wharf stops or is drained, over TLS if the config names a
    /// certificate. Unlike [`Wharf::http_service`], this also limits the number of connections and closes slow ones.
    ///
    /// # Errors
    /// If the certificate cannot be used. Nothing has been served then.
    pub async fn serve_http(&self, listener: impl Into<Socket>) -> Result<(), Error> {
        self.inner.listener(vec![listener.into().0]).await?.serve().await;
        Ok(())
    }

    /// Begins a graceful shutdown of HTTP, which loses no request: readiness fails at once; after `drain_delay_s` of the config, no more
    /// connections are accepted, and streams that only wait for changes are closed. [`Wharf::serve_http`] returns when the requests that
    /// are under way are answered, or after `drain_s`. Then stop wharf.
    pub async fn drain(&self) {
        let server = &self.inner.server;
        server.draining.cancel();
        tokio::time::sleep(server.startup.http.drain_delay).await;
        server.closing.cancel();
    }

    /// The metrics, as Prometheus reads them (OpenMetrics). None unless the config has an `[admin]` or a `[telemetry]` table.
    pub fn metrics(&self) -> Option<String> {
        self.inner.metrics.as_ref().map(|metrics| metrics.text())
    }

    /// Prepares to serve one client over a reader and a writer, with one message per line in each direction.
    pub fn session<R, W>(&self, reader: R, writer: W) -> Session<R, W>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        Session::new(Arc::clone(&self.inner.server), reader, writer)
    }

    /// Stops wharf: it accepts no more messages, and requests that are under way have a second to finish. Then the last lines of the
    /// audit log are written, and telemetry that was not sent yet is sent to the collector.
    pub async fn stop(&self) {
        let server = &self.inner.server;
        server.stop.cancel();
        server.tracker.close();
        if tokio::time::timeout(DRAIN_TIMEOUT, server.tracker.wait()).await.is_err() {
            tracing::info!("stopped with requests under way");
        }
        // What they hold, such as a socket's file, is gone when they are.
        let mut tasks = std::mem::take(&mut *self.inner.tasks.lock());
        tokio::time::timeout(DRAIN_TIMEOUT, tasks.shutdown()).await.ok();
        server.scopes.leave();
        if let Some(otlp) = &self.inner.otlp {
            otlp.close().await;
        }
        if let Some(audit) = &self.inner.audit {
            audit.close().await;
        }
    }

    /// Returns a future that resolves when wharf is to stop, or the last [`Wharf`] was dropped.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        self.inner.server.stop.clone().cancelled_owned()
    }

    /// Returns an error if the plugin with this id does not load.
    pub(crate) fn check(&self, id: &str) -> Result<(), Error> {
        let failed = self.plugins().into_iter().find_map(|plugin| match plugin.status {
            Status::Failed { problem, .. } if plugin.subject.is_plugin(id) => Some(problem),
            _ => None,
        });
        failed.map_or(Ok(()), |problem| Err(Error::of_plugin(id, problem)))
    }
}
