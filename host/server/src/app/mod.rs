//! wharf as a whole: everything behind the transports, put together and run. The binary's commands are written with this, and
//! so is any other program that wharf is a part of.

use std::{path::PathBuf, sync::Arc, time::Duration};

use axum::Router;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use wharf_protocol::{
    Revision,
    model::{Content, ToolResult},
};
use wharf_sandbox::{CompilerConfig, Program, Sandbox, SandboxConfig};

use self::current::{Current, Origins};
use crate::{
    access::{approval::Approver, scope::Scopes},
    base::{ledger::Ledger, paths::Stamp, principal::Principal},
    client::server::{Server, Shared},
    config::{self, CommandLine, Config, Plugin},
    methods::call::direct,
    observe::record::{Observer, Observers},
    plugins::{library::Library, snapshot::PluginStatus, status::Status, watcher},
    transport::{self, pipe::Client, stdio},
};

mod current;

/// How long requests under way may take to finish when wharf is stopped.
const DRAIN: Duration = Duration::from_secs(1);

/// Why something did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was configured is wrong; the text says where.
    #[error("{0:#}")]
    Config(anyhow::Error),
    /// The sandbox does not start.
    #[error(transparent)]
    Sandbox(#[from] wharf_sandbox::EngineError),
    /// A plugin that was given does not load.
    #[error("the plugin `{id}` does not load ({stage}): {problem}")]
    Plugin {
        /// Which.
        id: String,
        /// Where it went wrong, such as `load`.
        stage: &'static str,
        /// What is wrong, for whoever runs the program.
        problem: String,
    },
    /// A call that cannot be made: there is no such tool, the arguments do not fit, or the tool asks its client.
    #[error("{0}")]
    Call(String),
}

/// What a [`Wharf`] is made of.
#[derive(Default)]
pub struct Builder {
    origins: Origins,
    no_cache: bool,
    home_ceiling: bool,
    resolved: Option<Config>,
    approver: Option<Arc<dyn Approver>>,
    observers: Vec<Box<dyn Observer>>,
    progress: Option<fn(&str)>,
}

impl Builder {
    /// A config file, followed as long as wharf runs. Every key counts but `listen`, which is for who listens.
    #[must_use]
    pub fn config_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.origins.file = Some(file.into());
        self
    }

    /// The same as text. Relative paths in it are relative to the working directory.
    #[must_use]
    pub fn config(mut self, text: impl Into<String>) -> Self {
        self.origins.text = Some(text.into());
        self
    }

    /// A plugin, beside those of the config.
    #[must_use]
    pub fn plugin(mut self, plugin: Plugin) -> Self {
        self.origins.given.push(plugin);
        self
    }

    /// Keeps compiled code in this folder, which nobody else may write. By default, `$XDG_CACHE_HOME/wharf`, else
    /// `~/.cache/wharf`.
    #[must_use]
    pub fn cache_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.origins.cache_dir = Some(folder.into());
        self
    }

    /// Keeps no compiled code: every start compiles anew.
    #[must_use]
    pub fn no_cache(mut self) -> Self {
        self.no_cache = true;
        self
    }

    /// Asks before every call of a tool, resource or prompt. Who does not answer within ten minutes says no.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Tells of every run of a plugin when it has ended.
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

    /// Uses a config that was read already, and follows no file.
    #[doc(hidden)]
    pub fn resolved(mut self, config: Config) -> Self {
        self.resolved = Some(config);
        self
    }

    /// Who is told of what takes long.
    #[doc(hidden)]
    pub fn progress(mut self, progress: fn(&str)) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Puts everything together and begins to load.
    pub fn begin(self) -> Result<Begun, Error> {
        let Self { mut origins, no_cache, home_ceiling, resolved, approver, observers, progress } = self;
        if origins.cache_dir.is_none() && !no_cache {
            origins.cache_dir = config::cache_dir();
        }
        let follows = resolved.is_none();
        let stamp = origins.file.as_deref().and_then(|file| Stamp::of(file).ok());
        let config = Arc::new(match resolved {
            Some(config) => config,
            None => origins.read().map_err(Error::Config)?,
        });
        let ledger = Ledger::new(config.startup.total_host_memory_bytes);
        // First, because it makes the cache, which scopes must know as it is.
        let sandbox = sandbox(&config, &ledger, origins.cache_dir.clone())?;
        let scopes = Arc::new(Scopes::new(config.places(origins.cache_dir.as_deref()), home_ceiling));
        let observers = Observers::new(observers);
        let given: Vec<String> = origins.given.iter().map(|plugin| plugin.name().to_owned()).collect();
        let current = Current::new(origins, Arc::clone(&config), Arc::clone(&scopes));
        let (library, published) = Library::new(
            sandbox,
            Arc::clone(&ledger),
            Arc::clone(&scopes),
            current.watch(),
            observers.clone(),
            progress.unwrap_or(|_| {}),
        );
        let stop = CancellationToken::new();
        let files = Arc::clone(&published.files);
        let shared = Shared { ledger, published, scopes, approver, observers, stop: stop.clone() };
        let server = Server::new(&config, shared).map_err(Error::Config)?;
        let watcher = follows.then(|| {
            let reload = {
                let current = Arc::clone(&current);
                move || current.reload()
            };
            watcher::run(current.watch(), stamp, files, reload, stop)
        });
        Ok(Begun { server, current, library, watcher: watcher.map(|watcher| Box::pin(watcher) as Watching), given })
    }

    /// Puts everything together, loads all plugins and serves them until the last [`Wharf`] is dropped or stopped.
    ///
    /// # Errors
    /// If the config is wrong, or a plugin that was given with [`Builder::plugin`] does not load. One of the config that does not
    /// load is no error: it is served as soon as it does.
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

/// Everything, before anything of it runs.
#[doc(hidden)]
pub struct Begun {
    server: Arc<Server>,
    current: Arc<Current>,
    library: Library,
    watcher: Option<Watching>,
    given: Vec<String>,
}

impl Begun {
    pub fn run(self) -> Wharf {
        let Self { server, current, library, watcher, given: _ } = self;
        let mut tasks = JoinSet::new();
        tasks.spawn(library.run(server.stop.clone()));
        if let Some(watcher) = watcher {
            tasks.spawn(watcher);
        }
        Wharf { inner: Arc::new(Inner { server, current, tasks: Mutex::new(tasks) }) }
    }
}

/// A running wharf: plugins that are loaded and followed, and clients that are served by them.
///
/// Cheap to clone; all clones are one. It has no signal handlers and nothing global, so several live in one process. When the
/// last clone is gone it stops.
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
    /// End with it.
    tasks: Mutex<JoinSet<()>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.server.stop.cancel();
    }
}

impl Wharf {
    /// Says what it is to be made of.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Gives a plugin while wharf runs, in the place of the one with its id. Returns when it serves, and connected clients hear
    /// of it. Calls under way finish on what they began with.
    ///
    /// # Errors
    /// If it does not load; then the version before it serves on.
    pub async fn replace(&self, plugin: Plugin) -> Result<(), Error> {
        let id = plugin.name().to_owned();
        let number = self.inner.current.give(plugin).map_err(Error::Config)?;
        self.settled(number).await;
        self.check(&id)
    }

    /// Takes away a plugin that the program gave; false if there is no such. Calls of it that run are stopped.
    pub async fn remove(&self, id: &str) -> bool {
        match self.inner.current.take_away(id) {
            Some(number) => {
                self.settled(number).await;
                true
            }
            None => false,
        }
    }

    /// Reads the config file anew, without waiting for it to change.
    pub fn reload(&self) {
        self.inner.current.reload();
    }

    /// How every plugin fares, in order of their names.
    pub fn plugins(&self) -> Vec<PluginStatus> {
        self.inner.server.published.plugins(&self.inner.server.scopes)
    }

    /// Calls a tool by the name that clients know, without any client: with the grants of its plugin and no roots.
    ///
    /// # Errors
    /// If the call cannot be made. A tool that ran and failed is no error: see [`ToolResult::is_error`].
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<ToolResult, Error> {
        let called = direct::call(&self.inner.server, Principal::Process, tool, &arguments).await;
        called.map_err(Error::Call)
    }

    /// A block of a result as the newest revision writes it.
    #[doc(hidden)]
    pub fn block(&self, content: Content) -> Value {
        self.inner.server.encoder(Revision::NEWEST).content(content)
    }

    /// What `[http]` says.
    #[doc(hidden)]
    pub fn http(&self) -> &config::Http {
        &self.inner.server.startup.http
    }

    /// MCP over HTTP, both eras, at this path, and `/healthz`, for any axum server. Requests are let in by `[http]` of the
    /// config: by the `Host` they name, by `Origin`, by token.
    ///
    /// Where the server is made with `into_make_service_with_connect_info::<SocketAddr>()`, memory is shared fairly between
    /// addresses; else all its clients have one share.
    pub fn router(&self, path: &str) -> Router {
        transport::http::routes::routes(&self.inner.server, path)
    }

    /// Serves HTTP on a listener until wharf stops, with bounds on connections that a router alone cannot have.
    pub async fn serve_http(&self, listener: TcpListener) {
        transport::http::listener::serve(Arc::clone(&self.inner.server), listener).await;
    }

    /// One client at the other end of a reader and a writer: a message per line each way.
    pub fn session<R, W>(&self, reader: R, writer: W) -> Session<R, W>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        Session {
            server: Arc::clone(&self.inner.server),
            reader,
            writer,
            principal: Principal::Process,
            roots: Vec::new(),
        }
    }

    /// Stops: no message is taken any more, and requests under way have a second to finish.
    pub async fn stop(&self) {
        let server = &self.inner.server;
        server.stop.cancel();
        server.tracker.close();
        if tokio::time::timeout(DRAIN, server.tracker.wait()).await.is_err() {
            tracing::info!("stopped with requests under way");
        }
        self.inner.tasks.lock().abort_all();
    }

    /// Cancelled when wharf is to stop.
    pub fn stopping(&self) -> CancellationToken {
        self.inner.server.stop.clone()
    }

    /// Waits until all is served that can be by a config.
    async fn settled(&self, number: u64) {
        let published = &self.inner.server.published;
        let (mut ready, mut settled) = (published.ready.clone(), published.settled.clone());
        // Both end only with the library.
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

/// One client, before it is served.
pub struct Session<R, W> {
    server: Arc<Server>,
    reader: R,
    writer: W,
    principal: Principal,
    roots: Vec<PathBuf>,
}

impl<R, W> Session<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    /// Who it is. Tasks and kept instances of one are nobody else's.
    #[must_use]
    pub fn principal(mut self, name: &str) -> Self {
        self.principal = Principal::Named(name.into());
        self
    }

    /// The folders that are open to it, whatever it says of its own.
    #[must_use]
    pub fn roots(mut self, folders: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.roots.extend(folders.into_iter().map(Into::into));
        self
    }

    /// Serves it until it stops talking or listening, or wharf stops. Requests under way then have a second to finish.
    ///
    /// # Errors
    /// If one of its folders cannot be opened; then nothing was served.
    pub async fn serve(self) -> Result<(), Error> {
        let Self { server, reader, writer, principal, roots } = self;
        let roots =
            if roots.is_empty() { None } else { Some(server.scopes.open_given(&roots).map_err(Error::Config)?) };
        stdio::serve(&server, Client { principal, roots }, reader, writer).await;
        Ok(())
    }
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
