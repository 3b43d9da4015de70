//! Puts everything together and runs it. The commands of the binary use this, and so does any program that embeds wharf.

#![forbid(unsafe_code)]

use std::{path::PathBuf, sync::Arc};

use anyhow::Context;
use axum::Router;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use wharf_protocol::{
    Revision,
    model::{Content, ToolResult},
};
use wharf_sandbox::{CompilerConfig, Program, Sandbox, SandboxConfig};

use self::current::{Current, Origins};
pub use self::session::Session;
pub use self::shown::ShownRole;
use wharf_base::{ledger::Ledger, paths::Stamp, principal::Principal, whole::Writing};
use wharf_config::{
    access::{approval::Approver, rehearsal::Rehearsal, scope::Scopes},
    config::{self, CommandLine, Config, Plugin},
};
use wharf_plugins::{
    audit::Log,
    observe::{
        journal::Journal,
        meter::Meter,
        observers::{All, Observers},
        record::Observer,
        trace::Tracer,
    },
    plugins::{library::Library, snapshot::PluginStatus, status::Status, watcher},
    telemetry::{
        metrics::{CONTENT_TYPE, Counters, Metrics, Sources},
        otlp::Otlp,
    },
};
use wharf_serve::{
    client::server::{DRAIN_TIMEOUT, Server, Shared},
    methods::call::direct,
    transport::{self, http::admin::Served},
};

pub use wharf_serve::transport::http::tls::check as check_certificate;
pub use wharf_serve::transport::http::{listener::Listener, socket::Socket};

mod current;
#[cfg(test)]
mod limits;
mod session;
mod shown;

/// Why something did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The config is wrong; the text says where.
    #[error("{0:#}")]
    Config(anyhow::Error),
    /// The sandbox could not be started.
    #[error(transparent)]
    Sandbox(#[from] wharf_sandbox::EngineError),
    /// A plugin that the program gave does not load.
    #[error("the plugin `{id}` does not load ({stage}): {problem}")]
    Plugin {
        /// The id of the plugin.
        id: String,
        /// The stage at which it failed, such as `load`.
        stage: &'static str,
        /// What is wrong, for the person who runs the program.
        problem: String,
    },
    /// The call cannot be made: for instance there is no such tool, or the tool wants to ask its client something.
    #[error("{0}")]
    Call(String),
}

/// Configures and builds a [`Wharf`].
#[derive(Default)]
pub struct Builder {
    origins: Origins,
    no_cache: bool,
    home_ceiling: bool,
    resolved: Option<Config>,
    approver: Option<Arc<dyn Approver>>,
    observers: Vec<Box<dyn Observer>>,
    progress: Option<fn(&str)>,
    rehearsal: Option<Rehearsal>,
    sandbox: Option<Arc<Sandbox>>,
}

impl Builder {
    /// Uses a config file, and follows its changes as long as wharf runs. wharf does not listen at the address in `listen`: the
    /// program opens its own listener.
    #[must_use]
    pub fn config_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.origins.file = Some(file.into());
        self
    }

    /// Uses this text as the config. Relative paths in it are relative to the working directory.
    #[must_use]
    pub fn config(mut self, text: impl Into<String>) -> Self {
        self.origins.text = Some(text.into());
        self
    }

    /// Adds a plugin to those of the config.
    #[must_use]
    pub fn plugin(mut self, plugin: Plugin) -> Self {
        self.origins.given.push(plugin);
        self
    }

    /// Stores compiled code in this folder, which no other user may write. By default, `$XDG_CACHE_HOME/wharf`, else
    /// `~/.cache/wharf`.
    #[must_use]
    pub fn cache_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.origins.cache_dir = Some(folder.into());
        self
    }

    /// Stores no compiled code: every start compiles all plugins again.
    #[must_use]
    pub fn no_cache(mut self) -> Self {
        self.no_cache = true;
        self
    }

    /// Asks the approver before every call of a tool, resource or prompt. No answer within ten minutes counts as no.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Tells the observer about every run of a plugin when it has ended, and about every call that was refused before it ran.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Lets clients open folders in the home directory, if the config does not say where roots may lie.
    #[must_use]
    pub fn roots_in_home(mut self) -> Self {
        self.home_ceiling = true;
        self
    }

    #[doc(hidden)]
    pub fn command_line(mut self, command_line: CommandLine) -> Self {
        self.origins.command_line = command_line;
        self
    }

    /// Uses a config that was read already, and does not watch its file.
    #[doc(hidden)]
    pub fn resolved(mut self, config: Config) -> Self {
        self.resolved = Some(config);
        self
    }

    /// Calls this function with a message when something takes long.
    #[doc(hidden)]
    pub fn progress(mut self, progress: fn(&str)) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Replaces the clock, randomness and the answers of servers, for tests of plugins.
    #[doc(hidden)]
    pub fn rehearsal(mut self, rehearsal: Rehearsal) -> Self {
        self.rehearsal = Some(rehearsal);
        self
    }

    /// Uses a shared sandbox instead of a separate one.
    #[doc(hidden)]
    pub fn sandbox(mut self, sandbox: Arc<Sandbox>) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// Puts everything together and begins to load.
    pub fn begin(self) -> Result<Begun, Error> {
        let Self {
            mut origins,
            no_cache,
            home_ceiling,
            resolved,
            approver,
            observers,
            progress,
            rehearsal,
            sandbox: shared,
        } = self;
        if origins.cache_dir.is_none() && !no_cache {
            origins.cache_dir = config::cache_dir();
        }
        let follows = resolved.is_none();
        let stamp = origins.file.as_deref().and_then(|file| Stamp::of(file).ok());
        let config = Arc::new(match resolved {
            Some(config) => config,
            None => origins.begin().map_err(Error::Config)?,
        });
        let ledger = Ledger::new(config.startup.total_host_memory_bytes);
        // Comes before the scopes, because it creates the cache folder, and the scopes look at what exists.
        let sandbox = match shared {
            Some(sandbox) => sandbox,
            None => sandbox(&config, &ledger, origins.cache_dir.clone())?,
        };
        // The audit log comes before the scopes for the same reason.
        let audit = config.startup.audit.as_ref().map(Log::open).transpose();
        let audit = audit.context("[audit]").map_err(Error::Config)?;
        let places = config.places(origins.cache_dir.as_deref());
        let scopes = Arc::new(Scopes::new(places, home_ceiling, rehearsal));
        let journal = audit.clone().map(|audit| audit as Arc<dyn Journal>);
        let otlp = config.startup.telemetry.as_ref().map(|to| Otlp::new(to, &config.egress));
        let sends = config.startup.telemetry.as_ref().is_some_and(|telemetry| telemetry.metrics_every.is_some());
        let counted = config.startup.admin.is_some() || sends;
        let counters = counted.then(Arc::<Counters>::default);
        let meter = counters.clone().map(|counters| counters as Arc<dyn Meter>);
        let tracer = otlp.clone().map(|otlp| otlp as Arc<dyn Tracer>);
        let observers = Observers::new(All { observers, journal, meter, tracer });
        let given: Vec<String> = origins.given.iter().map(|plugin| plugin.name().to_owned()).collect();
        let writing = Arc::<Writing>::default();
        let current =
            Current::new(origins, Arc::clone(&config), Arc::clone(&scopes), observers.clone(), Arc::clone(&writing));
        let (library, published, inbox) = Library::new(
            Arc::clone(&sandbox),
            Arc::clone(&ledger),
            Arc::clone(&scopes),
            current.watch(),
            observers.clone(),
            progress.unwrap_or(|_| {}),
        );
        let stop = CancellationToken::new();
        let files = Arc::clone(&inbox.files);
        let shared = Shared {
            config: current.watch(),
            ledger,
            published,
            inbox,
            scopes,
            approver,
            observers,
            stop: stop.clone(),
        };
        let server = Server::new(&config, shared).map_err(Error::Config)?;
        let metrics = counters.map(|counters| {
            let (ledger, published) = (Arc::clone(&server.ledger), server.published.clone());
            let (refusals, audit) = (Arc::clone(&server.refusals), audit.clone());
            let lost = otlp.as_ref().map(|otlp| otlp.lost());
            Arc::new(Metrics::new(counters, Sources { sandbox, ledger, published, refusals, audit, lost }))
        });
        if let Some(otlp) = &otlp {
            otlp.start(metrics.clone()).context("[telemetry]").map_err(Error::Config)?;
        }
        let watcher = follows.then(|| {
            let reload = {
                let current = Arc::clone(&current);
                move |stamp: Option<&Stamp>| current.reload_if(stamp)
            };
            watcher::run(current.watch(), stamp, files, writing, reload, stop)
        });
        let watcher = watcher.map(|watcher| Box::pin(watcher) as Watching);
        Ok(Begun { server, current, audit, metrics, otlp, library, watcher, given })
    }

    /// Puts everything together, loads all plugins and serves them until the last [`Wharf`] is dropped or stopped.
    ///
    /// # Errors
    /// If the config is wrong, or a plugin that was given with [`Builder::plugin`] does not load. If a plugin of the config
    /// does not load, that is not an error: it is served as soon as it loads.
    pub async fn build(self) -> Result<Wharf, Error> {
        let begun = self.begin()?;
        let given = begun.given.clone();
        let wharf = begun.run();
        wharf.settled(1).await;
        for id in &given {
            wharf.check(id)?;
        }
        Ok(wharf)
    }
}

type Watching = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// A wharf that is put together but does not run yet.
#[doc(hidden)]
pub struct Begun {
    server: Arc<Server>,
    current: Arc<Current>,
    audit: Option<Arc<Log>>,
    metrics: Option<Arc<Metrics>>,
    otlp: Option<Arc<Otlp>>,
    library: Library,
    watcher: Option<Watching>,
    given: Vec<String>,
}

impl Begun {
    pub fn run(self) -> Wharf {
        let Self { server, current, audit, metrics, otlp, library, watcher, given: _ } = self;
        let mut tasks = JoinSet::new();
        tasks.spawn(library.run(server.stop.clone()));
        if let Some(watcher) = watcher {
            tasks.spawn(watcher);
        }
        if server.auth.is_some() {
            let server = Arc::clone(&server);
            tasks.spawn(async move {
                if let Some(auth) = &server.auth {
                    auth.warm_up().await;
                }
            });
        }
        Wharf { inner: Arc::new(Inner { server, current, audit, metrics, otlp, tasks: Mutex::new(tasks) }) }
    }
}

/// A running wharf: it keeps its plugins loaded and up to date, and serves clients with them.
///
/// Cheap to clone; all clones are the same wharf, which stops when the last of them is dropped. It has no signal handlers and
/// no global state, so one process can have several.
///
/// Plugins are compiled in a process of their own, which is this program started again: `main` has to begin with
/// [`compile_if_asked`](crate::compile_if_asked).
#[derive(Clone)]
pub struct Wharf {
    inner: Arc<Inner>,
}

struct Inner {
    server: Arc<Server>,
    current: Arc<Current>,
    audit: Option<Arc<Log>>,
    /// None: nothing is counted.
    metrics: Option<Arc<Metrics>>,
    /// None: nothing is sent to a collector.
    otlp: Option<Arc<Otlp>>,
    /// The library and the watcher, which end when this is dropped.
    tasks: Mutex<JoinSet<()>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.server.stop.cancel();
    }
}

impl Wharf {
    /// Begins to configure a wharf.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Adds a plugin while wharf runs, or replaces the one with its id. Returns when the plugin is served; connected clients
    /// are notified. Calls that are under way finish with the version they began with.
    ///
    /// # Errors
    /// If the plugin does not load. The version before it is then still served.
    pub async fn replace(&self, plugin: Plugin) -> Result<(), Error> {
        let id = plugin.name().to_owned();
        let number = self.inner.current.give(plugin).map_err(Error::Config)?;
        self.settled(number).await;
        self.check(&id)
    }

    /// Removes a plugin that the program gave, and stops its running calls. False if there is no such plugin.
    pub async fn remove(&self, id: &str) -> bool {
        match self.inner.current.take_away(id) {
            Some(number) => {
                self.settled(number).await;
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

    /// Waits until every plugin has been loaded or has failed once, but for at most `limit`. False: wharf began to shut down first.
    #[doc(hidden)]
    pub async fn tried(&self, limit: std::time::Duration) -> bool {
        let server = &self.inner.server;
        server.draining.run_until_cancelled(server.published.wait(limit)).await.is_some()
    }

    /// The status of every plugin, in order of their ids.
    pub fn plugins(&self) -> Vec<PluginStatus> {
        let server = &self.inner.server;
        server.published.plugins(&server.scopes, server.startup.face.instructions.as_deref())
    }

    /// Returns for each plugin the secrets that it cannot get, with the reasons.
    #[doc(hidden)]
    pub async fn missing_secrets(&self) -> Vec<(String, Vec<String>)> {
        let server = &self.inner.server;
        let catalog = server.published.catalog().await;
        let mut missing = Vec::new();
        for served in catalog.served() {
            let problems = server.scopes.egress.problems(&served.config.grants.http.0).await;
            missing.push((served.config.id.clone(), problems));
        }
        missing
    }

    /// Calls a tool by the name that clients know, without a client: the call has the grants of its plugin, and the operator's
    /// roots instead of a client's.
    ///
    /// # Errors
    /// If the call cannot be made, for instance because the config wants a person's approval of it. A tool that ran and failed is
    /// not an error: see [`ToolResult::is_error`].
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<ToolResult, Error> {
        self.call_as(tool, arguments, false).await
    }

    /// Like [`Wharf::call`]. `approved`: whether a person has approved this call, if the config demands it.
    #[doc(hidden)]
    pub async fn call_as(&self, tool: &str, arguments: Value, approved: bool) -> Result<ToolResult, Error> {
        let called = direct::call(&self.inner.server, Principal::Process, tool, &arguments, approved).await;
        called.map_err(Error::Call)
    }

    /// Whether clients over HTTP need an access token of an identity provider.
    #[doc(hidden)]
    pub fn wants_login(&self) -> bool {
        self.inner.server.auth.is_some()
    }

    /// A content block as the newest revision of the protocol writes it.
    #[doc(hidden)]
    pub fn block(&self, content: Content) -> Value {
        self.inner.server.encoder(Revision::NEWEST).content(content)
    }

    /// The `[http]` table of the config.
    #[doc(hidden)]
    pub fn http(&self) -> &config::Http {
        &self.inner.server.startup.http
    }

    /// MCP over HTTP at this path, for clients of all revisions, and `/healthz`, for any axum server. The `[http]` table of the
    /// config decides which requests are accepted, by their `Host`, `Origin` and token.
    ///
    /// If the server is made with `into_make_service_with_connect_info::<SocketAddr>()`, each client address has its own share
    /// of memory; otherwise all clients have one share together.
    pub fn router(&self, path: &str) -> Router {
        transport::http::routes::routes(&self.inner.server, path)
    }

    /// Serves HTTP on a listener, of TCP or of a Unix socket, until wharf stops or is drained, over TLS if the config names a
    /// certificate. Unlike [`Wharf::router`], this also limits the number of connections and closes slow ones.
    ///
    /// # Errors
    /// If the certificate cannot be used. Nothing has been served then.
    pub async fn serve_http(&self, listener: impl Into<Socket>) -> Result<(), Error> {
        self.listener(vec![listener.into()]).await?.serve().await;
        Ok(())
    }

    /// Reads what is needed to serve HTTP on sockets.
    #[doc(hidden)]
    pub async fn listener(&self, sockets: Vec<Socket>) -> Result<Listener, Error> {
        for address in sockets.iter().filter_map(Socket::address) {
            self.inner.server.scopes.egress.is_own(address);
        }
        Listener::new(&self.inner.server, sockets).await.map_err(Error::Config)
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

    /// The `[admin]` table of the config.
    #[doc(hidden)]
    pub fn admin(&self) -> Option<&config::Admin> {
        self.inner.server.startup.admin.as_ref()
    }

    /// Serves the metrics on a listener until wharf stops. Returns at once if the config has no `[admin]` table.
    #[doc(hidden)]
    pub async fn serve_admin(&self, listener: tokio::net::TcpListener) {
        let (server, Some(admin), Some(metrics)) = (&self.inner.server, self.admin(), self.inner.metrics.clone())
        else {
            return;
        };
        if let Ok(address) = listener.local_addr() {
            server.scopes.egress.is_own(address);
        }
        let served = Served { metrics: Box::new(move || metrics.text()), content_type: CONTENT_TYPE };
        transport::http::admin::serve(listener, admin, &server.startup.http, served, server.stop.clone()).await;
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
        self.inner.tasks.lock().abort_all();
        if let Some(otlp) = &self.inner.otlp {
            otlp.close().await;
        }
        if let Some(audit) = &self.inner.audit {
            audit.close().await;
        }
    }

    /// Stops wharf without waiting for anything but the last lines of the audit log.
    #[doc(hidden)]
    pub async fn abandon(&self) {
        self.inner.server.stop.cancel();
        self.inner.tasks.lock().abort_all();
        if let Some(audit) = &self.inner.audit {
            audit.close().await;
        }
    }

    /// Returns a token that is cancelled when wharf is to stop.
    pub fn stopping(&self) -> CancellationToken {
        self.inner.server.stop.clone()
    }

    /// Waits until every plugin of the config with this number is served or has failed.
    async fn settled(&self, number: u64) {
        let published = &self.inner.server.published;
        let (mut ready, mut settled) = (published.ready.clone(), published.settled.clone());
        // These waits fail only if the library is gone, and then there is nothing left to wait for.
        ready.wait_for(|ready| *ready).await.ok();
        settled.wait_for(|settled| *settled >= number).await.ok();
    }

    fn check(&self, id: &str) -> Result<(), Error> {
        let failed = self.plugins().into_iter().find_map(|plugin| match plugin.status {
            Status::Failed { problem, .. } if plugin.subject.is_plugin(id) => Some(problem),
            _ => None,
        });
        match failed {
            Some(problem) => {
                Err(Error::Plugin { id: id.to_owned(), stage: problem.stage.as_str(), problem: problem.text })
            }
            None => Ok(()),
        }
    }
}

/// Creates a sandbox that several wharfs of this process can share.
#[doc(hidden)]
pub fn shared_sandbox(config: &Config, cache_dir: PathBuf) -> Result<Arc<Sandbox>, Error> {
    sandbox(config, &Ledger::new(config.startup.total_host_memory_bytes), Some(cache_dir))
}

fn sandbox(config: &Config, ledger: &Ledger, cache_dir: Option<PathBuf>) -> Result<Arc<Sandbox>, Error> {
    Ok(Sandbox::new(SandboxConfig {
        total_concurrency: config.startup.total_concurrency,
        total_memory_bytes: config.startup.total_memory_bytes,
        cache_dir,
        compiler: CompilerConfig {
            program: Program::This,
            memory_bytes: config.startup.compile_memory_bytes,
            timeout: config.startup.compile_timeout,
        },
        host_memory: ledger.plugins().clone(),
    })?)
}
