//! `wharf run` and `wharf serve`: serve clients over stdin and stdout, over HTTP, or both.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};

use super::arguments::{Run, Serve};
use crate::{
    app::{Builder, Wharf},
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
/// way.
async fn serve_all(builder: Builder, transports: Transports) -> Result<()> {
    let Transports { stdio, http, with_parent } = transports;
    // Handlers are installed before wharf announces itself, so that a signal right after that does not end the process at once.
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be watched")?;
    let mut hangup = signal(SignalKind::hangup()).context("SIGHUP cannot be watched")?;
    let wharf = builder.begin()?.run();
    let listener = match if http { Some(listen(&wharf).await) } else { None }.transpose() {
        Ok(listener) => listener,
        Err(error) => {
            wharf.stop().await;
            return Err(error);
        }
    };
    let admin = match admin(&wharf).await {
        Ok(admin) => admin,
        // Each client that starts a `wharf run` starts one with the same config, and only one of them can listen there.
        Err(error) if !http => {
            tracing::warn!("metrics are not served: {error:#}");
            None
        }
        Err(error) => {
            wharf.stop().await;
            return Err(error);
        }
    };
    let stop = wharf.stopping();
    let mut signals = JoinSet::new();
    let reloads = wharf.clone();
    signals.spawn(async move {
        while hangup.recv().await.is_some() {
            reloads.reload();
        }
    });
    signals.spawn({
        let stop = stop.clone();
        async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                () = parent::ended(), if with_parent => tracing::info!("the client that started wharf is gone"),
                () = stop.cancelled() => {}
            }
            stop.cancel();
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
            wharf.serve_http(listener).await;
        }
    };
    let watched = async {
        if let Some(listener) = admin {
            wharf.serve_admin(listener).await;
        }
    };
    let (served, (), ()) = tokio::join!(pipe, web, watched);
    wharf.stop().await;
    served
}

async fn listen(wharf: &Wharf) -> Result<TcpListener> {
    let http = wharf.http();
    let address = http.listen;
    if !address.ip().is_loopback() && http.token.is_none() && !wharf.wants_login() {
        bail!(
            "{address} can be reached from other machines, so a token is needed: name an identity provider in [auth], set \
             `token_env` in [http] to the name of an environment variable that holds one, or listen on 127.0.0.1"
        );
    }
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}; another program may use the port, choose another with --listen")
    })?;
    tracing::info!("serving MCP at http://{}/mcp", listener.local_addr()?);
    Ok(listener)
}

/// The listener for metrics, if there is to be one.
async fn admin(wharf: &Wharf) -> Result<Option<TcpListener>> {
    let Some(admin) = wharf.admin() else { return Ok(None) };
    let listener = TcpListener::bind(admin.listen).await.with_context(|| {
        format!("cannot listen on {}; another program may use the port, choose another in [admin]", admin.listen)
    })?;
    tracing::info!("serving metrics at {}", format_args!("http://{}/metrics", listener.local_addr()?));
    Ok(Some(listener))
}
