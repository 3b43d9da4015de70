//! The commands of the `wharf` binary.

use std::{io::Write, process::ExitCode};

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, error::ErrorKind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

mod accept;
mod add;
mod answers;
mod approvals;
mod arguments;
mod audit;
mod build;
mod cache;
mod call;
mod changes;
mod check;
mod dev;
mod edit;
mod entries;
mod file;
mod grant_dialogue;
mod help;
mod inspect;
mod install;
mod keys;
mod load;
mod lock_file;
mod log;
mod log_pace;
mod machine;
mod manager;
mod missing_grants;
mod new;
mod open;
mod pack;
mod packaged;
mod person;
mod program;
mod provenance;
mod revoke;
mod serve;
mod standard;
mod suggest;
mod supply;
mod test_command;
mod undo;

pub use self::{arguments::Arguments, program::Program};
use self::{
    arguments::{Command, Grant, Place, without_command},
    load::Unread,
    manager::Passed,
};
use wharf_base::{failed::is_failed, group};
use wharf_config::config::reference::SourceReference;

const SIGXFSZ: i32 = 25;
/// The exit code that shells report for a program that SIGPIPE ended, as it ends most programs whose reader has gone.
const UNREAD: u8 = 128 + 13;
const OPEN_MAX: u64 = 10_240;

/// Raises the limit on open files, since plugins and connections may need more than the usual 1,024.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = |current| setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum });
    // macOS reports an unlimited hard limit, but rejects values above OPEN_MAX. If the limit cannot be raised at all, wharf works with
    // the current one.
    raised(limit.maximum)
        .or_else(|_| raised(limit.maximum.map_or(Some(OPEN_MAX), |most| Some(most.min(OPEN_MAX)))))
        .ok();
}

/// Runs the command of the command line, and returns the exit code of the process.
pub fn run(program: &Program) -> ExitCode {
    program.provide();
    let all = help::grouped(Arguments::command());
    let words = Place::own(&all);
    let mut all = all.long_version(program::version());
    let matches = all.try_get_matches_from_mut(words).unwrap_or_else(|error| match without_command() {
        Some((word, line)) => {
            let says = format!("`{word}` is not a command of wharf, which runs that server by: {line}");
            all.error(ErrorKind::InvalidSubcommand, says).exit()
        }
        None => error.exit(),
    });
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let log = log::start(arguments.log.log_format, default_filter(&arguments.command));
    let passed = if matches!(arguments.command, Command::Serve(_)) { manager::passed() } else { Ok(Vec::new()) };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            print_error(&anyhow::Error::new(error).context("cannot start the threads of the async runtime"));
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(execute(arguments.command, passed));
    // Without this, a thread that waits for stdin would keep the process alive.
    runtime.shutdown_background();
    // `shutdown_background` does not wait until tasks are dropped, so the processes that they would have killed are killed here.
    group::kill_all();
    log::finish(log);
    match ended {
        Ok(code) => code,
        // What the command would have found out is not known, so this is not a success.
        Err(error) if error.is::<Unread>() => ExitCode::from(UNREAD),
        Err(error) => {
            print_error(&error);
            if is_failed(&error) { ExitCode::FAILURE } else { ExitCode::from(2) }
        }
    }
}

async fn execute(command: Command, passed: Result<Vec<Passed>>) -> Result<ExitCode> {
    // With a handler for SIGXFSZ, a write beyond the file size limit fails instead of killing the process.
    let _signal = signal(SignalKind::from_raw(SIGXFSZ));
    // A program that ignores SIGCHLD passes that on to what it starts; how a child has ended would then be lost, such as the compiler.
    let _children = signal(SignalKind::child());
    raise_file_limit();
    match command {
        Command::Run(run) => serve::run(&run).await.map(|()| ExitCode::SUCCESS),
        Command::Serve(serve) => serve::serve(&serve, passed?).await.map(|()| ExitCode::SUCCESS),
        Command::Install(command) => install::run(command).await,
        Command::Adopt(command) => install::adopt::run(command).await,
        Command::Call(command) => call::run(command).await,
        Command::Inspect(command) => inspect::run(command).await,
        Command::Check(command) if command.machine => machine::run(command).await,
        Command::Check(command) => check::run(command.config.config.as_deref()).await,
        Command::New(command) => new::run(&command),
        Command::Build(command) => build::run(&command).await,
        Command::Dev(command) => dev::run(command).await,
        Command::Test(command) => test_command::run(command).await,
        Command::Pack(command) => pack::run(&command),
        Command::Publish(command) => Box::pin(supply::publish::run(command)).await,
        Command::Add(command) if SourceReference::is_meant(&command.plugin) => {
            Box::pin(supply::add::run(command)).await
        }
        Command::Add(command) => Box::pin(add::add(command)).await,
        Command::Grant(Grant { of, revoke, revoke_all: false }) if revoke.is_empty() => add::grant(&of).await,
        Command::Grant(Grant { of, revoke, .. }) => revoke::run(&of, &revoke),
        Command::Remove(plugin) => supply::remove::run(&plugin),
        Command::Update(command) => Box::pin(supply::update::run(command)).await,
        Command::Lock(command) => Box::pin(supply::lock::run(command)).await,
        Command::Audit(command) => audit::run(command),
        Command::Cache(command) => cache::run(&command),
        Command::Undo(command) => undo::run(&command),
        Command::Open(command) => open::run(command).await,
        Command::Approvals(command) => approvals::run(&command),
        Command::Keys(command) => keys::run(command),
        Command::Packaged(command) => packaged::run(&command).await.map(|()| ExitCode::SUCCESS),
        Command::Print(command) => help::print(command, Arguments::command()),
    }
}

fn print_error(error: &anyhow::Error) {
    // If stderr is closed, there is nowhere to report that.
    writeln!(std::io::stderr(), "error: {error:#}").ok();
}

/// Returns the log filter that applies without RUST_LOG. Commands that do not serve print their errors themselves, so they log nothing.
fn default_filter(command: &Command) -> &'static str {
    match command {
        Command::Run(_) | Command::Packaged(_) | Command::Serve(_) | Command::Dev(_) => {
            "warn,wharf=info,wharf_sandbox=info"
        }
        // Builds take long, so their steps are logged.
        Command::Call(_) => "off,wharf_cli::authoring=info",
        Command::Build(_)
        | Command::Inspect(_)
        | Command::Install(_)
        | Command::Adopt(_)
        | Command::Add(_)
        | Command::Grant(_)
        | Command::Check(_) => "off,wharf_cli::authoring=info,wharf_plugins::plugins::lacking=info",
        _ => "off",
    }
}
