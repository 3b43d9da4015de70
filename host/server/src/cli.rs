//! The command line: what can be said, and the commands that do not serve.

use std::{
    io::{IsTerminal, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    app::{self, App, Transports},
    config::{self, Access, CommandLine},
    ledger::Ledger,
};

mod call;
mod check;
mod inspect;
mod log;

/// Serves tools, resources and prompts from sandboxed WebAssembly plugins to any MCP client.
///
/// A plugin is a .wasm component. It can touch nothing unless you grant it: files of the folders that your client opens
/// (roots), folders you name, environment variables. Plugins are loaded, replaced and removed while wharf runs, and
/// every connected client hears of it.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// How log lines on stderr look. RUST_LOG sets what is logged (default: wharf=info)
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

const AFTER_HELP: &str = "\
Examples:
  wharf call hello.wasm greet name=Ada            try a tool without any client
  wharf run hello.wasm                            what an MCP client starts
  wharf run --allow roots=read-write files.wasm   let a plugin work in the folders your client opens
  wharf serve --listen 127.0.0.1:7300             serve the plugins of the config over HTTP

Config: $XDG_CONFIG_HOME/wharf/wharf.toml (else ~/.config/wharf/wharf.toml), or -c FILE.
Exit codes: 0 done, 1 it failed, 2 the command line or the config is wrong.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve MCP over stdin and stdout, as MCP clients start it
    Run(Run),
    /// Serve MCP over HTTP at /mcp
    Serve(Serve),
    /// Load the config and every plugin, say what is wrong, and exit
    Check(ConfigFile),
    /// Show what a plugin offers, what it could use, and its digest
    Inspect {
        /// The component
        plugin: PathBuf,
    },
    /// Call one tool of one plugin and print its result
    Call(Call),
}

#[derive(Debug, Args)]
struct ConfigFile {
    /// The config file
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Granted {
    /// A folder to use as a root where the client has no roots of its own
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,
    /// Grant the plugins on the command line access to roots: roots=read or roots=read-write
    #[arg(long, value_name = "GRANT", value_parser = parse_allow)]
    allow: Option<Access>,
}

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    config: ConfigFile,
    #[command(flatten)]
    granted: Granted,
    /// Plugins to serve beside those of the config
    #[arg(value_name = "PLUGIN.wasm")]
    plugins: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct Serve {
    #[command(flatten)]
    run: Run,
    /// Where to listen (default: 127.0.0.1:7300, or `listen` in [http])
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Serve stdin and stdout as well
    #[arg(long)]
    stdio: bool,
}

#[derive(Debug, Args)]
struct Call {
    #[command(flatten)]
    config: ConfigFile,
    #[command(flatten)]
    granted: Granted,
    /// The component
    plugin: PathBuf,
    /// The tool, by the name the plugin gives it
    tool: String,
    /// The arguments: one JSON object, or key=value pairs
    #[arg(value_name = "JSON | key=value")]
    arguments: Vec<String>,
}

const SIGXFSZ: i32 = 25;

/// Plugins may hold files open; the usual limit of 1,024 is for shells.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If it cannot be raised, there are fewer for each call.
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).ok();
}

fn parse_allow(text: &str) -> Result<Access> {
    match text.split_once('=') {
        Some(("roots", access)) => config::parse_access(access),
        _ => bail!("what can be allowed is roots=read or roots=read-write"),
    }
}

impl Granted {
    fn command_line(&self, plugins: &[PathBuf]) -> CommandLine {
        CommandLine { plugins: plugins.to_vec(), roots: self.roots.clone(), allow_roots: self.allow, listen: None }
    }
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

/// The only place that writes to stdout outside the stdio transport.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").context("stdout is closed")
}

/// A library that has loaded once.
async fn load_once(
    config: Arc<config::Config>,
    ledger: &Arc<Ledger>,
) -> Result<(crate::shelf::Shelf, Arc<crate::scope::Scopes>, crate::library::Library)> {
    let (mut library, shelf, scopes) = app::library(&config, ledger, true, |text| {
        // Only for somebody who watches.
        if std::io::stderr().is_terminal() {
            writeln!(std::io::stderr(), "{text}").ok();
        }
    })?;
    library.load().await;
    Ok((shelf, scopes, library))
}
