//! `wharf run` and `wharf serve`: serve clients over stdin and stdout, over HTTP, or both.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::arguments::{Run, Serve};
use crate::{
    app::{Builder, Listener, Wharf},
    base::parent,
    config::{self, CommandLine},
};

/// What is served, and for how long.
struct Transports {
    stdio: bool,
    http: bool,
    /// Whether wharf ends when the process that started it does, even if another process still holds its pipes.
    with_parent: bool,
}

pub(super) async fn run(run: &Run) -> Result<()> {
    let command_line = run.granted.command_line(&run.plugins);
    let builder = builder(run, command_line)?.roots_in_home();
    serve_all(builder, Transports { stdio: true, http: false, with_parent: true }).await
}

pub(super) async fn serve(serve: &Serve) -> Result<()> {
    let command_line = serve.run.granted.command_line(&serve.run.plugins);
    let builder = builder(&serve.run, CommandLine { listen: serve.listen, ..command_line })?;
    serve_all(builder, Transports { stdio: serve.stdio, http: true, with_parent: false }).await
}

fn builder(run: &Run, command_line: CommandLine) -> Result<Builder> {
    let file = config::find(run.config.config.as_deref())?;
    refuse_nothing(file.as_deref(), &run.plugins)?;
    let builder = Wharf::builder().command_line(command_line).progress(|text| tracing::info!("{text}"));
    Ok(match file {
        Some(file) => builder.config_file(file),
        None => builder,
    })
}

/// Refuses to serve nothing, which is more often a mistake than intended.
fn refuse_nothing(file: Option<&Path>, plugins: &[PathBuf]) -> Result<()> {
    if file.is_none() && plugins.is_empty() {
        let default = config::default_path().map(|path| path.display().to_string()).unwrap_or_default();
        bail!("nothing to serve: name a plugin (wharf run hello.wasm), or write a config to {default}");
    }
    Ok(())
}

/// Serves until stdin or the parent process ends or SIGTERM or ctrl-c comes, whichever is first, then waits for requests under
/// way. A second signal ends at once.
async fn serve_all(builder: Builder, transports: Transports) -> Result<()> {
    let Transports { stdio, http, with_parent } = transports;
    // Handlers are installed before wharf announces itself, so that a signal right after that does not end the process at once.
    let mut ends = Ends::new()?;
    let mut hangup = signal(SignalKind::hangup()).context("SIGHUP cannot be watched")?;
    let wharf = builder.begin()?.run();
    let listener = match if http { Some(listen(&wharf).await) } else { None }.transpose() {
        Ok(listener) => listener,
        Err(error) => {
            wharf.stop().await;
            return Err(error);
        }
    };
    let stop = wharf.stopping();
    let again = CancellationToken::new();
    let mut signals = JoinSet::new();
    let reloads = wharf.clone();
    signals.spawn(async move {
        while hangup.recv().await.is_some() {
            reloads.reload();
        }
    });
    signals.spawn({
        let (stop, again, wharf) = (stop.clone(), again.clone(), wharf.clone());
        async move {
            tokio::select! {
                () = ends.next() => {}
                () = parent::ended(), if with_parent => tracing::info!("the client that started wharf is gone"),
                () = stop.cancelled() => {}
            }
            let drained = async {
                if http && !stop.is_cancelled() {
                    tracing::info!("requests under way may finish; a second signal ends them");
                    wharf.drain().await;
                } else {
                    stop.cancel();
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = drained => {}
                () = ends.next() => again.cancel(),
            }
        }
    });
    let pipe = async {
        if stdio {
            let served = wharf.session(tokio::io::stdin(), tokio::io::stdout()).serve().await;
            // The client at stdin has finished, so wharf ends, even if it serves HTTP as well.
            stop.cancel();
            served?;
        }
        Ok(())
    };
    let web = async {
        if let Some(listener) = listener {
            listener.serve().await;
            stop.cancel();
        }
    };
    let served = async {
        let (served, ()) = tokio::join!(pipe, web);
        wharf.stop().await;
        served
    };
    tokio::select! {
        served = served => served,
        () = again.cancelled() => {
            tracing::info!("ended by a second signal");
            wharf.abandon().await;
            Ok(())
        }
    }
}

/// The signals that end wharf.
struct Ends {
    terminate: Signal,
    interrupt: Signal,
}

impl Ends {
    fn new() -> Result<Self> {
        let terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
        let interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be watched")?;
        Ok(Self { terminate, interrupt })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

async fn listen(wharf: &Wharf) -> Result<Listener> {
    let http = wharf.http();
    let address = http.listen;
    let certificates = http.tls.as_ref().is_some_and(|tls| tls.clients.is_some());
    if !address.ip().is_loopback() && http.token.is_none() && !wharf.wants_login() && !certificates {
        bail!(
            "{address} can be reached from other machines, so a token is needed: name an identity provider in [auth], set \
             `token_env` in [http] to the name of an environment variable that holds one, ask for certificates of clients with \
             `client_ca` in [http.tls], or listen on 127.0.0.1"
        );
    }
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}; another program may use the port, choose another with --listen")
    })?;
    let address = listener.local_addr()?;
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    let listener = wharf.listener(listener).await?;
    tracing::info!("serving MCP at {scheme}://{address}/mcp");
    Ok(listener)
}
