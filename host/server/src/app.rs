//! Puts the rooms together for a command that serves: sandbox, library, watcher, server.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result, bail};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use wharf_sandbox::{CompilerConfig, Sandbox, SandboxConfig};

use crate::{
    access::scope::Scopes,
    base::{ledger::Ledger, parent, paths::Stamp},
    client::server::Server,
    config::{self, CommandLine, Config},
    plugins::{library::Library, published::Published, watcher},
    transport,
};

/// What is served, and for how long.
pub struct Transports {
    pub stdio: bool,
    pub http: bool,
    /// Ends with the process that started it, whoever else may hold its pipes.
    pub with_parent: bool,
}

/// Everything that runs behind the transports.
pub struct App {
    pub server: Arc<Server>,
    library: JoinHandle<()>,
    terminate: Signal,
    interrupt: Signal,
}

pub fn sandbox(config: &Config, ledger: &Ledger) -> Result<Arc<Sandbox>> {
    Ok(Sandbox::new(SandboxConfig {
        total_concurrency: config.startup.total_concurrency,
        total_memory_bytes: config.startup.total_memory_bytes,
        cache_dir: config::cache_dir(),
        compiler: CompilerConfig {
            memory_bytes: config.startup.compile_memory_bytes,
            timeout: config.startup.compile_timeout,
            ..CompilerConfig::this_program()
        },
        host_memory: ledger.plugins().clone(),
    })?)
}

/// A library that is not running yet, for commands that load once and look.
pub fn library(
    config: &Arc<Config>,
    ledger: &Arc<Ledger>,
    home_ceiling: bool,
    progress: fn(&str),
) -> Result<(Library, Published, Arc<Scopes>)> {
    // First, because it makes the cache, which scopes must know as it is.
    let sandbox = sandbox(config, ledger)?;
    let scopes = Arc::new(Scopes::new(config.places(config::cache_dir().as_deref()), home_ceiling));
    let (library, published) =
        Library::new(sandbox, Arc::clone(ledger), Arc::clone(&scopes), Arc::clone(config), progress);
    Ok((library, published, scopes))
}

impl App {
    /// Starts everything but the transports. `home_ceiling`: whether client roots are of use by default.
    pub fn start(
        file: Option<PathBuf>,
        command_line: CommandLine,
        home_ceiling: bool,
        progress: fn(&str),
    ) -> Result<Self> {
        // Before anything is announced, so that there is no moment in which they would end the process at once.
        let terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
        let interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be watched")?;
        let stamp = file.as_deref().and_then(|file| Stamp::of(file).ok());
        let config = Arc::new(config::load(file.as_deref(), &command_line)?);
        let ledger = Ledger::new(config.startup.total_host_memory_bytes);
        let (library, published, scopes) = library(&config, &ledger, home_ceiling, progress)?;
        let stop = CancellationToken::new();
        let changes = published.changes.clone();
        let server = Server::new(&config, ledger, published, Arc::clone(&scopes), stop.clone())?;
        let library = tokio::spawn(library.run(stop.clone()));
        let (hangup_sender, hangup) = mpsc::channel(1);
        let mut signals = signal(SignalKind::hangup()).context("SIGHUP cannot be watched")?;
        let stopped = stop.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    signal = signals.recv() => if signal.is_none() { return },
                    () = stopped.cancelled() => return,
                }
                // Full means that a reload is under way already.
                hangup_sender.try_send(()).ok();
            }
        });
        let reload = move |current: &Config| match config::load(file.as_deref(), &command_line) {
            Ok(new) => {
                let new = Arc::new(new);
                for key in new.startup.differs(&current.startup) {
                    tracing::warn!("`{key}` changed; it takes effect when wharf starts anew");
                }
                scopes.renew(new.places(config::cache_dir().as_deref()));
                tracing::info!("the config was read anew");
                Some(new)
            }
            Err(error) => {
                tracing::error!("the config is not used, the last good one stays: {error:#}");
                None
            }
        };
        tokio::spawn(watcher::run(config, stamp, changes, hangup, reload, stop));
        Ok(Self { server, library, terminate, interrupt })
    }

    /// Ends with the transports: waits for the first of stdin's end, SIGTERM, ctrl-c and the parent's end, then for what is
    /// under way.
    pub async fn serve(self, transports: Transports) -> Result<()> {
        let Transports { stdio, http, with_parent } = transports;
        let listener = if http { Some(listen(&self.server.startup.http).await?) } else { None };
        let Self { server, library, mut terminate, mut interrupt } = self;
        let stop = server.stop.clone();
        let signals = tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                () = parent::ended(), if with_parent => tracing::info!("the client that started wharf is gone"),
                () = stop.cancelled() => {}
            }
            stop.cancel();
        });
        let pipe = async {
            if stdio {
                transport::stdio::serve(Arc::clone(&server), tokio::io::stdin(), tokio::io::stdout()).await;
            }
        };
        let web = async {
            if let Some(listener) = listener {
                transport::http::listener::serve(Arc::clone(&server), listener).await;
            }
        };
        tokio::join!(pipe, web);
        server.stop.cancel();
        signals.abort();
        library.abort();
        Ok(())
    }
}

async fn listen(http: &config::Http) -> Result<TcpListener> {
    let address = http.listen;
    if !address.ip().is_loopback() && http.token.is_none() {
        bail!(
            "{address} can be reached from other machines, so a token is needed: set `token_env` in [http] to the name of an \
             environment variable that holds one, or listen on 127.0.0.1"
        );
    }
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}; another program may use the port, choose another with --listen")
    })?;
    tracing::info!("serving MCP at http://{}/mcp", listener.local_addr()?);
    Ok(listener)
}
