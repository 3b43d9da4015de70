//! The commands of the binary.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    app::{App, Transports},
    config::{self, CommandLine},
};

mod arguments;
mod call;
mod check;
mod inspect;
mod load;
mod log;

pub use self::arguments::Arguments;
use self::arguments::Command;

const SIGXFSZ: i32 = 25;

/// Plugins may hold files open; the usual limit of 1,024 is for shells.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If it cannot be raised, there are fewer for each call.
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).ok();
}

/// Runs a command to its end.
pub fn run(arguments: Arguments) -> ExitCode {
    let log = log::start(arguments.log_format, default_filter(&arguments.command));
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&anyhow::Error::new(error).context("no threads to run on"));
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(execute(arguments.command));
    // A thread that waits for stdin would keep the process alive.
    runtime.shutdown_background();
    log::finish(log);
    match ended {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            ExitCode::from(2)
        }
    }
}

async fn execute(command: Command) -> Result<ExitCode> {
    // Installed so that a file size limit fails a write instead of ending the process.
    let _signal = signal(SignalKind::from_raw(SIGXFSZ));
    raise_file_limit();
    match command {
        Command::Run(run) => {
            let file = config::find(run.config.config.as_deref())?;
            refuse_nothing(file.as_deref(), &run.plugins)?;
            let app = App::start(file, run.granted.command_line(&run.plugins), true, progress)?;
            app.serve(Transports { stdio: true, http: false, with_parent: true }).await?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Serve(serve) => {
            let file = config::find(serve.run.config.config.as_deref())?;
            refuse_nothing(file.as_deref(), &serve.run.plugins)?;
            let command_line =
                CommandLine { listen: serve.listen, ..serve.run.granted.command_line(&serve.run.plugins) };
            let app = App::start(file, command_line, false, progress)?;
            app.serve(Transports { stdio: serve.stdio, http: true, with_parent: false }).await?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Check(file) => check::run(file.config.as_deref()).await,
        Command::Inspect { plugin } => inspect::run(&plugin).await,
        Command::Call(command) => call::run(command).await,
    }
}

/// Serving nothing is a mistake more often than a wish.
fn refuse_nothing(file: Option<&Path>, plugins: &[PathBuf]) -> Result<()> {
    if file.is_none() && plugins.is_empty() {
        let default = config::default_path().map(|path| path.display().to_string()).unwrap_or_default();
        bail!("nothing to serve: name a plugin (wharf run hello.wasm), or write a config to {default}");
    }
    Ok(())
}

/// Says what takes long. On stderr, which belongs to nobody else.
fn progress(text: &str) {
    tracing::info!("{text}");
}

fn complain(error: &anyhow::Error) {
    // Nowhere left to complain if stderr is closed.
    writeln!(std::io::stderr(), "error: {error:#}").ok();
}

/// Commands that do not serve say what is wrong themselves.
fn default_filter(command: &Command) -> &'static str {
    match command {
        Command::Run(_) | Command::Serve(_) => "warn,wharf=info,wharf_sandbox=info",
        _ => "off",
    }
}
