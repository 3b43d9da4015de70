//! Everything that a wharf is made from, and how it is put together and started.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, anyhow};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wharf_sandbox::{CompilerConfig, Effort, Program, Sandbox, SandboxConfig};

use crate::{
    current::{Current, Origins},
    error::Error,
    wharf::{Inner, Wharf},
    window,
};
use wharf_base::{ledger::Ledger, paths::Stamp, whole::Writing};
use wharf_cluster::{ADDRESS_BYTES, Cluster};
use wharf_config::config::{
    self, CommandLine, Config, Plugin,
    state::{self, Keeps},
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
    plugins::{library::Library, making::Making, watcher},
    telemetry::{
        metrics::{Counters, Metrics, Sources},
        otlp::Otlp,
    },
};
use wharf_policy::access::{approval::Approver, rehearsal::Rehearsal, scope::Scopes};
use wharf_serve::client::server::{Server, Shared};
use wharf_window::{board::Board, socket::WindowSocket};

/// Everything that a wharf is made from. The commands of the binary fill it themselves; [`Builder`](crate::Builder) does it for programs
/// that embed wharf.
#[derive(Default)]
pub struct Setup {
    /// The config file.
    pub file: Option<PathBuf>,
    /// The config itself, in place of the contents of a file.
    pub text: Option<String>,
    /// A config that was read already. Its file is not watched then.
    pub resolved: Option<Config>,
    pub command_line: CommandLine,
    /// Plugins that the embedding program gives.
    pub given: Vec<Plugin>,
    /// The folder for compiled code, in place of the default one.
    pub cache_dir: Option<PathBuf>,
    /// Whether no compiled code is stored.
    pub no_cache: bool,
    /// Whether clients may open folders in the home directory, if the config does not say where roots may lie.
    pub roots_in_home: bool,
    pub approver: Option<Arc<dyn Approver>>,
    pub observers: Vec<Box<dyn Observer>>,
    /// What this wharf keeps from one start to the next.
    pub keeps: Keeps,
    /// Whether the plugins of other wharfs of this user are kept from what this one executes or obeys.
    pub enters: bool,
    /// The folder of the sockets on which the windows of the user read what this wharf does. `None`: no window is told.
    pub windows: Option<PathBuf>,
    /// The components of plugins that are still being built.
    pub making: Making,
    /// Called with a message when something takes long.
    pub progress: Option<fn(&str)>,
    /// Replaces the clock, randomness and the answers of servers, for tests of plugins.
    pub rehearsal: Option<Rehearsal>,
    /// A sandbox that several wharfs share, in place of a separate one.
    pub sandbox: Option<Arc<Sandbox>>,
    /// How much work goes into compiling plugins.
    pub effort: Effort,
}

impl Setup {
    /// Puts everything together, and begins to load the plugins.
    pub(crate) fn start(self) -> Result<Wharf, Error> {
        let Self {
            file,
            text,
            resolved,
            command_line,
            given,
            cache_dir,
            no_cache,
            roots_in_home,
            approver,
            observers,
            keeps,
            enters,
            windows,
            making,
            progress,
            rehearsal,
            sandbox: shared,
            effort,
        } = self;
        let mut origins = Origins { file, text, used: None, command_line, given, cache_dir };
        if origins.cache_dir.is_none() && !no_cache {
            origins.cache_dir = config::cache_dir();
        }
        let follows = resolved.is_none();
        let stamp = origins.file.as_deref().and_then(|file| Stamp::of(file).ok());
        let config = Arc::new(match resolved {
            Some(config) => config,
            None => origins.begin().map_err(Error::config)?,
        });
        let ledger = Ledger::new(config.startup.total_host_memory_bytes);
        // Comes before the scopes, because it creates the state folder, and the scopes look at what exists.
        let files = state::files(config.file.as_deref(), &config.startup.http.listen);
        let kept = state::open(keeps, &config.startup.protocol, files).map_err(Error::config)?;
        let mut number = [0; ADDRESS_BYTES];
        getrandom::fill(&mut number).map_err(|error| Error::config(anyhow!("no randomness: {error}")))?;
        let cluster = match &config.startup.cluster {
            Some(settings) if keeps == Keeps::All => {
                Some(Cluster::new(settings, &kept.keys, number, &ledger).map_err(Error::config)?)
            }
            Some(_) if keeps == Keeps::Configured => {
                tracing::info!("[cluster] is for `wharf serve`; this process shares nothing with others");
                None
            }
            _ => None,
        };
        // Comes before the scopes, because it creates the cache folder, and the scopes look at what exists.
        let sandbox = match shared {
            Some(sandbox) => sandbox,
            None => sandbox(&config, &ledger, origins.cache_dir.clone(), effort)?,
        };
        // The audit log comes before the scopes for the same reason.
        let audit = config.startup.audit.as_ref().map(Log::open).transpose();
        let audit = audit.context("[audit]").map_err(Error::config)?;
        let windows = windows.and_then(|folder| {
            let bound = WindowSocket::bind(&folder);
            bound.inspect_err(|error| tracing::debug!("no window can be told what this wharf does: {error}")).ok()
        });
        let board = windows.as_ref().map(|_| Board::new(window::process(&config, &origins.command_line)));
        let rules = config.folder_rules(origins.cache_dir.as_deref());
        let scopes = Arc::new(Scopes::new(rules, roots_in_home, rehearsal, (config::registry(), enters)));
        let journal = audit.clone().map(|audit| audit as Arc<dyn Journal>);
        let otlp = config.startup.telemetry.as_ref().map(|to| Otlp::new(to, &config.egress));
        let sends = config.startup.telemetry.as_ref().is_some_and(|telemetry| telemetry.metrics_every.is_some());
        let counted = config.startup.admin.is_some() || sends;
        let counters = counted.then(Arc::<Counters>::default);
        let meter = counters.clone().map(|counters| counters as Arc<dyn Meter>);
        let tracer = otlp.clone().map(|otlp| otlp as Arc<dyn Tracer>);
        let observers = Observers::new(All { observers, journal, meter, tracer, board: board.clone() });
        let writing = Arc::<Writing>::default();
        let current =
            Current::new(origins, Arc::clone(&config), Arc::clone(&scopes), observers.clone(), Arc::clone(&writing));
        let (library, published, inbox) = Library::new(
            Arc::clone(&sandbox),
            Arc::clone(&ledger),
            Arc::clone(&scopes),
            current.watch(),
            observers.clone(),
            making,
            progress.unwrap_or(|_| {}),
        );
        let stop = CancellationToken::new();
        let files = Arc::clone(&inbox.files);
        let others = Arc::clone(&scopes);
        let shared = Shared {
            config: current.watch(),
            ledger,
            published,
            inbox,
            scopes,
            approver,
            observers,
            kept,
            cluster,
            number,
            stop: stop.clone(),
        };
        let server = Server::new(&config, shared).map_err(Error::config)?;
        let metrics = counters.map(|counters| {
            let (ledger, published) = (Arc::clone(&server.ledger), server.published.clone());
            let (refusals, audit, cluster) = (Arc::clone(&server.refusals), audit.clone(), server.cluster.clone());
            let lost = otlp.as_ref().map(|otlp| otlp.lost());
            Arc::new(Metrics::new(counters, Sources { sandbox, ledger, published, refusals, audit, lost, cluster }))
        });
        if let Some(otlp) = &otlp {
            otlp.start(metrics.clone()).context("[telemetry]").map_err(Error::config)?;
        }
        let watcher = follows.then(|| {
            let reload = {
                let current = Arc::clone(&current);
                move |stamp: Option<&Stamp>| current.reload_if(stamp)
            };
            watcher::run(current.watch(), stamp, (files, others), writing, reload, stop)
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(library.run(server.stop.clone()));
        if let Some(watcher) = watcher {
            tasks.spawn(watcher);
        }
        if let Some((socket, board)) = windows.zip(board) {
            tasks.spawn(socket.serve(board, window::complete(&server)));
        }
        if server.auth.is_some() {
            let server = Arc::clone(&server);
            tasks.spawn(async move {
                if let Some(auth) = &server.auth {
                    auth.warm_up().await;
                }
            });
        }
        Ok(Wharf { inner: Arc::new(Inner { server, current, audit, metrics, otlp, tasks: Mutex::new(tasks) }) })
    }
}

/// The address space of all processes that compile plugins at once.
const COMPILE_MEMORY_BYTES: usize = 4 << 30;

/// Creates a sandbox as the config describes it.
pub(crate) fn sandbox(
    config: &Config,
    ledger: &Ledger,
    cache_dir: Option<PathBuf>,
    effort: Effort,
) -> Result<Arc<Sandbox>, Error> {
    let config = SandboxConfig {
        total_concurrency: config.startup.total_concurrency,
        total_memory_bytes: config.startup.total_memory_bytes,
        cache_dir,
        compiler: CompilerConfig {
            program: Program::This,
            memory_bytes: COMPILE_MEMORY_BYTES,
            timeout: config.startup.compile_timeout,
            effort,
        },
        host_memory: ledger.plugins().clone(),
    };
    Sandbox::new(config).map_err(Error::sandbox)
}
