//! The arguments of the command line.

use std::{ffi::OsString, path::PathBuf, time::SystemTime};

use anyhow::{Context, Result};
use clap::{Args, CommandFactory, Parser, Subcommand};

use self::value_names::ValueNames;
use wharf_config::config;

pub use self::{
    authors::{Build, Dev, New, Pack, PackageKind, Packaged, Test},
    call::{Call, Parts},
    install::{Adopt, AsGiven, Given, Install},
    line_place::{Place, tell_of_servers, typed, without_command},
    run::{Allowed, ConfigFile, Log, LogFormat, Run, grants, of_line, parse_allow},
    supply::{Add, Grant, Lock, OnePlugin, Publish, Update},
};

mod authors;
mod call;
mod install;
mod line_place;
mod run;
mod supply;
mod value_names;

/// Serves tools, resources and prompts from sandboxed WebAssembly plugins to any MCP client.
///
/// A plugin is a .wasm component. It can access nothing unless you grant it: the folders that your client opens (roots),
/// folders that you name, URLs, environment variables. Plugins are loaded, replaced and removed while wharf runs, and
/// connected clients are notified.
#[derive(Debug, Parser)]
#[command(name = "wharf", version, propagate_version = true, after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub log: Log,
}

const AFTER_HELP: &str = "\
Examples:
  wharf call hello.wasm greet name=Ada            call a tool once, without a client
  wharf run --builtin files ~/Documents           let a client work in a folder, with the built-in plugin `files`
  wharf install claude-desktop --builtin files ~/Documents    write the same into the config of Claude Desktop
  wharf run npx -y @scope/server                  the same line as without wharf, in the sandbox; also uvx NAME, server.py
  wharf serve --listen 127.0.0.1:7300             serve the plugins of the config over HTTP
  wharf new --lang python my-tools                create a plugin project from a template
  wharf add hello.wasm                            add a plugin to the config, with the grants that you agree to
  wharf audit show --outcome refused --since 2h   print what was refused in the last two hours (needs an audit log)

`wharf COMMAND --help` explains a command; `wharf print` prints completions, man pages and the schema of the config.
Config: $XDG_CONFIG_HOME/wharf/wharf.toml (else ~/.config/wharf/wharf.toml), or -c FILE.
Exit codes: 0 success, 1 failure, 2 error in the command line or the config, or no plugin named there loads.";

impl Arguments {
    /// Parses the words of a command line, the first of which is the program.
    pub fn read(words: Vec<OsString>) -> Result<Self, clap::Error> {
        Self::try_parse_from(Place::of(&Self::command(), &words).apart(words))
    }
}

/// The commands. `--help` lists them in the groups of `help::GROUPS`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve MCP over stdin and stdout; MCP clients start this command
    Run(Run),
    /// Serve MCP over HTTP at /mcp
    Serve(Serve),
    /// Add wharf to the config of an MCP client, with the options for `wharf run`
    Install(Install),
    /// Show the MCP servers that clients start without wharf, and put wharf before some
    Adopt(Adopt),
    /// Call one tool of one plugin and print its result
    Call(Call),
    /// Show what a plugin offers, which grants it wants and could use, and its SHA-256 digest
    Inspect(Inspect),
    /// Load and check the config and all plugins; with --machine, the clients and this machine
    Check(Check),
    /// Create a plugin project from a template, in the language of your choice
    New(New),
    /// Build the plugin in a folder as its plugin.toml says, and check that it loads
    Build(Build),
    /// Build the plugin in a folder, serve it over HTTP, and rebuild it when a source changes
    Dev(Dev),
    /// Build the plugin in a folder, and run the test cases of its tests/*.toml
    Test(Test),
    /// Make packages of a built plugin, which contain wharf: for desktop clients, npm and PyPI
    Pack(Pack),
    /// Publish a component in a registry
    Publish(Publish),
    /// Add a plugin to the config, and ask at the terminal about each grant that it wants
    Add(Add),
    /// Ask about each grant that a plugin wants and does not have; --revoke takes grants away
    Grant(Grant),
    /// Remove a plugin from the config and from wharf.lock
    Remove(OnePlugin),
    /// Take newer versions of published plugins, and ask if one says or wants something else
    Update(Update),
    /// Fetch, check, accept or undo what is locked in wharf.lock
    #[command(subcommand)]
    Lock(Lock),
    /// Verify or print the audit log that [audit] in the config turns on
    #[command(subcommand)]
    Audit(Audit),
    /// Show in the browser what all your wharfs do; allow it there, and take it back
    Open(Open),
    /// List what calls have changed in folders, and take it back
    Undo(Undo),
    /// List or revoke the permanent approvals of calls that you gave
    #[command(subcommand)]
    Approvals(Approvals),
    /// Create, list or revoke API keys for programs that use wharf over HTTP
    #[command(subcommand)]
    Keys(Keys),
    /// List what wharf has built and compiled for later, with sizes, or remove it
    Cache(Cache),
    /// Serve the plugin of a package over stdin and stdout. It may do what environment variables allow; packages start this command
    Packaged(Packaged),
    /// Print what shells, manuals and editors need
    #[command(subcommand)]
    Print(Print),
}

#[derive(Debug, Args)]
pub struct Cache {
    #[command(subcommand)]
    pub command: Option<CacheCommand>,
}

#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Remove servers whose source does not exist any more or that did not start for 30 days, and what builds them if nothing was built for as
    /// long. They are made again when they are needed
    Clean {
        /// Remove everything, also compiled code
        #[arg(long)]
        all: bool,
    },
}

/// Serves a page to this machine alone, until Ctrl-C, and opens it in the browser: the sessions and calls of all wharfs that run under your
/// account, what was refused and what would allow it, the calls that wait for you, the plugins, and what calls have changed
#[derive(Debug, Args)]
pub struct Open {
    /// The port of this machine to listen on (default: one that is free)
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Print the link, and do not start the browser
    #[arg(long)]
    pub no_browser: bool,
}

#[derive(Debug, Args)]
pub struct Undo {
    /// The call or the session, as the list names it. Without it, the calls of the last seven days are listed
    #[arg(value_name = "CALL|SESSION", conflicts_with = "last")]
    pub which: Option<String>,
    /// Take back the last call that has changed something
    #[arg(long)]
    pub last: bool,
    /// Also take back what was not kept completely or has changed since
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Subcommand)]
pub enum Print {
    /// Print the completion script for a shell: `source <(wharf print completions bash)`
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages of all commands into a folder
    Man {
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Print the JSON Schema of the config, which editors use to complete and check it
    Schema,
}

#[derive(Debug, Subcommand)]
pub enum Keys {
    /// Create a key, print it once, and write its digest into the key file. An id may have several keys at the same time, so that
    /// keys can be rotated
    New {
        /// The id, by which roles and log records name the key: lower-case letters, digits and `-`
        id: String,
        /// A scope of the key, in addition to those that every request needs; may be given more than once
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// The number of days after which the key expires (default: never)
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=36500))]
        days: Option<u32>,
        #[command(flatten)]
        file: KeysFile,
    },
    /// Print the id, the first digits of the digest and the expiry of each key
    List {
        #[command(flatten)]
        file: KeysFile,
    },
    /// Revoke the keys of an id. Every running wharf that uses the key file rejects them within a second
    Revoke {
        /// The id
        id: String,
        /// Revoke only the key whose digest begins with these digits
        #[arg(long, value_name = "DIGITS")]
        sha256: Option<String>,
        #[command(flatten)]
        file: KeysFile,
    },
}

#[derive(Debug, Args)]
pub struct KeysFile {
    /// The key file (default: `keys_file` in [auth] of the config)
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub config: ConfigFile,
}

#[derive(Debug, Subcommand)]
pub enum Approvals {
    /// Print all permanent approvals
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Revoke approvals. It takes effect at once, in every wharf that runs under your account
    #[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
    Revoke {
        /// The ids of approvals to revoke
        #[arg(value_name = "ID", group = "which")]
        ids: Vec<String>,
        /// Revoke all approvals for this plugin
        #[arg(long, value_name = "ID", group = "which")]
        plugin: Option<String>,
        /// Revoke all approvals
        #[arg(long, group = "which")]
        all: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Verify the hash chain: no line was changed, removed or moved. With --head, also that no line is missing at the end
    Verify {
        /// Audit logs, such as those of several replicas, in place of the one that the config names. Each has a chain of its own
        #[arg(value_name = "FILE", conflicts_with_all = ["config", "file"])]
        logs: Vec<PathBuf>,
        #[command(flatten)]
        log: AuditLog,
        /// A head that wharf has logged: one of the audit logs must contain a line with this hash. May be repeated
        #[arg(long = "head", value_name = "HASH", value_parser = parse_hash)]
        heads: Vec<[u8; 32]>,
    },
    /// Print the lines, oldest first
    Show(AuditLines),
    /// Print the last lines, then new lines as they are added
    Tail {
        /// The number of lines to begin with
        #[arg(short = 'n', long, default_value_t = 10)]
        lines: usize,
        #[command(flatten)]
        which: AuditLines,
    },
}

#[derive(Debug, Args)]
pub struct AuditLog {
    #[command(flatten)]
    pub config: ConfigFile,
    /// The audit log, in place of the one that the config names
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct AuditLines {
    #[command(flatten)]
    pub log: AuditLog,
    /// Print JSON, as it is in the file, even on a terminal
    #[arg(long)]
    pub json: bool,
    /// Only lines about this plugin
    #[arg(long, value_name = "ID")]
    pub plugin: Option<String>,
    /// Only lines about this tool, by the name that clients use
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// Only lines about this client, as the log names it: process, anonymous, or the beginning of "token …" or "named …"
    #[arg(long, value_name = "WHO")]
    pub principal: Option<String>,
    /// Only lines with this outcome: done, asked, failed, refused, timed_out, over_limit, crashed, revoked, cancelled
    #[arg(long)]
    pub outcome: Option<String>,
    /// Only lines since this time: a time such as 2026-11-07T10:00:00Z, or how long ago, such as 2h
    #[arg(long, value_name = "WHEN", value_parser = parse_when)]
    pub since: Option<SystemTime>,
    /// Only lines until this time
    #[arg(long, value_name = "WHEN", value_parser = parse_when)]
    pub until: Option<SystemTime>,
}

/// The plugin to inspect.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("subject").required(true))]
pub struct Inspect {
    /// The component; where one is published, such as oci://REGISTRY/REPOSITORY; or an existing MCP server in Python, TypeScript or
    /// JavaScript, of which only its files are read unless it is built
    #[arg(value_name = "PLUGIN.wasm | SOURCE | SERVER", group = "subject")]
    pub plugin: Option<PathBuf>,
    /// The line that starts an existing MCP server without wharf, such as `npx -y NAME`; the `--` before it may be left out
    #[arg(last = true, value_name = "LINE", group = "subject")]
    pub line: Vec<String>,
    /// A built-in plugin
    #[arg(long, value_name = "NAME", group = "subject", value_parser = ValueNames::builtins(), hide_possible_values = true)]
    pub builtin: Option<String>,
    /// List the packages that went into it, as far as it says
    #[arg(long)]
    pub packages: bool,
    /// Build the existing server if it is not built, which runs its package manager and its own code
    #[arg(long)]
    pub build: bool,
    /// Build the server that stdin describes, and show nothing: how wharf builds servers in the background
    #[arg(long, hide = true, group = "subject")]
    pub server_from_stdin: bool,
}

#[derive(Debug, Args)]
pub struct Check {
    /// Check how wharf is set up on this machine instead, and say how to fix each problem: the configs of clients that start wharf,
    /// wharf's own config and who may write the files that it names, cache, open files, file watches, memory, port, kernel
    #[arg(long)]
    pub machine: bool,
    /// Print one JSON object per line
    #[arg(long, requires = "machine")]
    pub json: bool,
    #[command(flatten)]
    pub config: ConfigFile,
}

#[derive(Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    pub run: Run,
    /// The address to listen on: an IP address and port, a port of this machine, or unix: and the path of a socket (default:
    /// 127.0.0.1:7300, or `listen` in [http]). Sockets that systemd passes take precedence
    #[arg(long, alias = "port", value_name = "ADDR", value_parser = run::parse_listen)]
    pub listen: Option<config::ListenAddress>,
    /// Also serve a client over stdin and stdout
    #[arg(long)]
    pub stdio: bool,
}

fn parse_hash(text: &str) -> Result<[u8; 32]> {
    config::parse_hex32("--head", text)
}

fn parse_when(text: &str) -> Result<SystemTime> {
    if let Ok(time) = humantime::parse_rfc3339_weak(text) {
        return Ok(time);
    }
    let ago = humantime::parse_duration(text).ok();
    let time = ago.and_then(|ago| SystemTime::now().checked_sub(ago));
    time.context("expected a time such as 2026-11-07T10:00:00Z, or how long ago, such as 2h or 30min")
}
