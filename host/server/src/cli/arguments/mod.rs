//! The arguments of the command line.

use std::{fmt, path::PathBuf, time::SystemTime};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    access::capability::Access,
    config::{self, CommandLine, Named, Positional},
    setup::clients::{self, Client},
};

pub use self::authors::{Dev, New, Project, Test};

mod authors;

/// Serves tools, resources and prompts from sandboxed WebAssembly plugins to any MCP client.
///
/// A plugin is a .wasm component. It can touch nothing unless you grant it: files of the folders that your client opens
/// (roots), folders you name, environment variables. Plugins are loaded, replaced and removed while wharf runs, and
/// every connected client hears of it.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    /// How log lines on stderr look. RUST_LOG sets what is logged, down to debug (default: wharf=info)
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

const AFTER_HELP: &str = "\
Examples:
  wharf call hello.wasm greet name=Ada            try a tool without any client
  wharf run --builtin files ~/Documents           let a client work in a folder, with a plugin that wharf has in itself
  wharf install claude-desktop --builtin files ~/Documents    the same, in the config of a client
  wharf run hello.wasm                            what an MCP client starts
  wharf run --allow roots=read-write files.wasm   let a plugin work in the folders your client opens
  wharf serve --listen 127.0.0.1:7300             serve the plugins of the config over HTTP
  wharf new --lang python my-tools                make a folder with a plugin to begin with
  wharf add hello.wasm                            write a plugin into the config, with the grants you agree to
  wharf test                                      play the cases of the plugin in this folder
  wharf audit show --outcome refused --since 2h   what was refused in the last two hours, if there is an audit log

Config: $XDG_CONFIG_HOME/wharf/wharf.toml (else ~/.config/wharf/wharf.toml), or -c FILE.
Exit codes: 0 done, 1 it failed, 2 the command line or the config is wrong.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve MCP over stdin and stdout, as MCP clients start it
    Run(Run),
    /// Serve MCP over HTTP at /mcp
    Serve(Serve),
    /// Put wharf into the config of an MCP client, with the options that `wharf run` is to have
    Install(Install),
    /// Say what is wrong with how wharf is set up on this machine, and what to do about it
    Doctor(Doctor),
    /// Load the config and every plugin, say what is wrong, and exit
    Check(ConfigFile),
    /// Show what a plugin offers, what it wants and could use, and its digest
    Inspect(Inspect),
    /// Call one tool of one plugin and print its result
    Call(Call),
    /// Make a folder with a plugin to begin with, in the language of your choice
    New(New),
    /// Build the plugin of a folder as its plugin.toml says, and load it as it would be served
    Build(Project),
    /// Build the plugin of a folder, serve it over HTTP, and build it again whenever a source changes
    Dev(Dev),
    /// Build the plugin of a folder, play the cases of its tests/*.toml, and compare what it does with what they expect
    Test(Test),
    /// Add a plugin to the config, and ask at the terminal what to grant it of what it wants
    Add(Add),
    /// Ask at the terminal what to grant a plugin of what it wants and does not have
    Grant {
        /// The plugin's id
        id: String,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Take away what a plugin is granted, without asking
    Deny {
        /// The plugin's id
        id: String,
        /// What to take: http, roots, dirs, env, ask, or one entry, such as a URL, a folder or the name of a variable (TZ, not
        /// $TZ). roots takes the folders, and asking for them
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        what: Vec<String>,
        /// Take everything
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Write into a component what it wants to be granted, and what models should know about it
    Embed(Embed),
    /// Read the audit log that [audit] in the config keeps
    #[command(subcommand)]
    Audit(Audit),
    /// Show and revoke the approvals of calls that you gave for good
    #[command(subcommand)]
    Approvals(Approvals),
    /// Make, show and revoke the API keys of programs that use wharf over HTTP
    #[command(subcommand)]
    Keys(Keys),
    /// Print what completes commands in a shell: `source <(wharf completions bash)`
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
    /// Print the JSON Schema of the config, by which editors complete and check it
    Schema,
    /// Print the server card: what this server is and where, for others to publish. `server_card` in [http] turns it on
    Card(ConfigFile),
}

#[derive(Debug, Subcommand)]
pub enum Keys {
    /// Make a key, print it once, and write its digest into the file of keys. An id may have several at once, so that one can take
    /// the place of another
    New {
        /// The id: lower-case letters, digits and `-`. Roles and records name it
        id: String,
        /// A scope that the key has, besides those that every request needs; may be given more than once
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// After how many days it ends (default: never)
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=36500))]
        days: Option<u32>,
        #[command(flatten)]
        file: KeysFile,
    },
    /// Print the ids, the beginnings of the digests, and until when each is good
    List {
        #[command(flatten)]
        file: KeysFile,
    },
    /// Revoke the keys of an id. It takes effect within a second, in every wharf that has this file
    Revoke {
        id: String,
        /// Only the one whose digest begins so
        #[arg(long, value_name = "DIGITS")]
        sha256: Option<String>,
        #[command(flatten)]
        file: KeysFile,
    },
}

#[derive(Debug, Args)]
pub struct KeysFile {
    /// The file of keys (default: `keys_file` in [auth] of the config)
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub config: ConfigFile,
}

#[derive(Debug, Subcommand)]
pub enum Approvals {
    /// Print all approvals that are good until they are revoked
    List {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Revoke approvals. It takes effect at once, in every wharf of yours that runs
    #[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
    Revoke {
        /// The approvals, by their ids
        #[arg(value_name = "ID", group = "which")]
        ids: Vec<String>,
        /// All of this plugin
        #[arg(long, value_name = "ID", group = "which")]
        plugin: Option<String>,
        /// All of them
        #[arg(long, group = "which")]
        all: bool,
    },
}

#[derive(Debug, Args)]
pub struct Add {
    /// The component
    pub plugin: PathBuf,
    /// The id that the plugin gets (default: the file's name without .wasm)
    #[arg(long)]
    pub id: Option<String>,
    #[command(flatten)]
    pub config: ConfigFile,
}

#[derive(Debug, Args)]
#[command(override_usage = "wharf embed [OPTIONS] [WANTS.toml] <PLUGIN.wasm>")]
pub struct Embed {
    /// What it wants, in TOML (may be left out with --instructions), and the component
    #[arg(value_name = "FILE", num_args = 1..=2, required = true)]
    pub files: Vec<PathBuf>,
    /// What models should know about all of its tools together: a text, or @ and a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub instructions: Option<String>,
    /// The component to write (default: the same file)
    #[arg(short = 'o', long = "output", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Check that no line was changed, removed or moved; with --head also that none is missing at the end
    Verify {
        #[command(flatten)]
        log: AuditLog,
        /// A head that wharf's own log told: a line with this hash has to be there
        #[arg(long, value_name = "HASH", value_parser = parse_hash)]
        head: Option<[u8; 32]>,
    },
    /// Print the lines, older files first
    Show(AuditLines),
    /// Print the last lines, and what is added from then on
    Tail {
        /// How many lines to begin with
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
    /// The log itself, in place of the one that a config names
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct AuditLines {
    #[command(flatten)]
    pub log: AuditLog,
    /// JSON, as it is in the file, even on a terminal
    #[arg(long)]
    pub json: bool,
    /// Only of this plugin
    #[arg(long, value_name = "ID")]
    pub plugin: Option<String>,
    /// Only of this tool, by the name that clients know
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// Only of this client, as the log names it: process, anonymous, or the beginning of "token …" or "named …"
    #[arg(long, value_name = "WHO")]
    pub principal: Option<String>,
    /// Only what ended so: done, asked, failed, refused, timed_out, over_limit, crashed, revoked, cancelled
    #[arg(long)]
    pub outcome: Option<String>,
    /// Only from then on: a time such as 2026-11-07T10:00:00Z, or how long ago, such as 2h
    #[arg(long, value_name = "WHEN", value_parser = parse_when)]
    pub since: Option<SystemTime>,
    /// Only until then
    #[arg(long, value_name = "WHEN", value_parser = parse_when)]
    pub until: Option<SystemTime>,
}

#[derive(Debug, Args)]
pub struct ConfigFile {
    /// The config file
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Granted {
    /// A folder that is open as a root, beside those that the client opens
    #[arg(long = "root", value_name = "DIR")]
    pub roots: Vec<PathBuf>,
    /// Grant the plugins on the command line access to roots (roots=read, roots=read-write), or to what is below a URL
    /// (http=https://example.com/); may be given more than once
    #[arg(long, value_name = "GRANT", value_parser = parse_allow)]
    pub allow: Vec<Allowed>,
}

/// What `--allow` grants.
#[derive(Debug, Clone)]
pub enum Allowed {
    Roots(Access),
    Http(String),
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Roots(access) => write!(f, "roots={}", access.as_str()),
            Self::Http(url) => write!(f, "http={url}"),
        }
    }
}

/// One plugin.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("subject").required(true))]
pub struct Inspect {
    /// The component
    #[arg(value_name = "PLUGIN.wasm", group = "subject")]
    pub plugin: Option<PathBuf>,
    /// A plugin that wharf has in itself
    #[arg(long, value_name = "NAME", group = "subject")]
    pub builtin: Option<String>,
}

#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    pub config: ConfigFile,
    #[command(flatten)]
    pub granted: Granted,
    /// What the client at stdin and stdout gets: a profile of the config, or `search`, which is always there: three tools that find
    /// the others, call them, and read resources. HTTP clients choose theirs with the URL: /mcp/NAME
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    #[command(flatten)]
    pub named: Plugins,
}

/// The plugins that a command line names, and the folders that it opens to them.
#[derive(Debug, Clone, Default, Args)]
pub struct Plugins {
    /// A plugin that wharf has in itself: fetch, files, git, memory, sequentialthinking or time; may be given more than once
    #[arg(long = "builtin", value_name = "NAME")]
    pub builtins: Vec<String>,
    /// How the names of the tools of these plugins begin, in place of their ids; "" for nothing
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,
    /// Open the folders for reading only
    #[arg(long)]
    pub read_only: bool,
    /// Plugins to serve beside those of the config, and folders. The plugins on the command line may read and write in these
    /// folders, and in no others: what the client opens is not open to them then, and the default config is not read
    #[arg(value_name = "PLUGIN.wasm | DIR")]
    pub paths: Vec<PathBuf>,
}

/// Puts wharf into the config of an MCP client: the absolute path of this binary and what `wharf run` is to have. Everything else in
/// that file stays as it is, and a copy of it is kept beside it (.wharf-backup).
#[derive(Debug, Args)]
#[command(after_help = INSTALL_HELP)]
pub struct Install {
    /// claude-desktop, claude-code, vscode, cursor, codex, zed, goose; or other, for a client that reads mcpServers from JSON
    #[arg(value_name = "CLIENT", required_unless_present = "list", value_parser = parse_client)]
    pub client: Option<&'static Client>,
    /// Print the clients, their configs, and which of their servers are wharf
    #[arg(long)]
    pub list: bool,
    /// The config to write, in place of the client's usual one, such as .vscode/mcp.json of a project
    #[arg(long, value_name = "FILE")]
    pub config_path: Option<PathBuf>,
    /// The name under which the client has it (default: the id of the plugin, if one is named, else wharf)
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Print what would be written, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Take it out again
    #[arg(long)]
    pub uninstall: bool,
    /// Replace or take out a server of this name that is not wharf
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub run: Run,
    /// Arguments of wharf as they are, in place of the options above
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}

/// Looks at the configs of clients that name wharf, at wharf's own config and who may write the files in it, and at what the machine
/// gives: cache, open files, watches, memory, port, kernel. It changes nothing. Exit code 1: something is wrong.
#[derive(Debug, Args)]
pub struct Doctor {
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub config: ConfigFile,
}

const INSTALL_HELP: &str = "\
Examples:
  wharf install claude-desktop --builtin files ~/Documents    a folder to read and write in
  wharf install claude-code --builtin files                   the folders that Claude Code opens
  wharf install vscode --config-path .vscode/mcp.json --builtin git '${workspaceFolder}'
  wharf install codex -c ~/tools/wharf.toml                   what a config serves
  wharf install zed                                           what the default config serves
  wharf install claude-desktop --name files --uninstall";

fn parse_client(text: &str) -> Result<&'static Client> {
    clients::find(text).with_context(|| {
        let all: Vec<&str> = clients::ALL.iter().map(|client| client.id).collect();
        format!("there are: {}", all.join(", "))
    })
}

#[derive(Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    pub run: Run,
    /// Where to listen: an address and port, or unix: and the path of a socket (default: 127.0.0.1:7300, or `listen` in [http]).
    /// A socket that systemd passes comes before all of them
    #[arg(long, value_name = "ADDR", value_parser = config::parse_listen)]
    pub listen: Option<config::Listen>,
    /// Serve stdin and stdout as well
    #[arg(long)]
    pub stdio: bool,
}

#[derive(Debug, Args)]
#[command(override_usage = "wharf call [OPTIONS] <PLUGIN.wasm> <TOOL> [JSON | key=value]...\n       \
    wharf call [OPTIONS] --builtin <NAME> <TOOL> [JSON | key=value]...")]
pub struct Call {
    #[command(flatten)]
    pub config: ConfigFile,
    #[command(flatten)]
    pub granted: Granted,
    /// Approve of the call, if `confirm` in the config wants a person to
    #[arg(long)]
    pub yes: bool,
    /// A plugin that wharf has in itself, in place of a component
    #[arg(long, value_name = "NAME")]
    pub builtin: Option<String>,
    /// The component, the tool by the name that the plugin gives it, and the arguments: one JSON object, or key=value pairs
    #[arg(required = true, value_name = "PLUGIN.wasm TOOL ARGUMENTS")]
    pub words: Vec<String>,
}

impl Call {
    /// The plugin, the tool and the arguments.
    pub fn parts(&self) -> Result<(Named, &str, &[String])> {
        let (plugin, words) = match (&self.builtin, self.words.split_first()) {
            (Some(name), _) => (Named::BuiltIn(name.clone()), self.words.as_slice()),
            (None, Some((path, words))) => (Named::File(path.into()), words),
            (None, None) => bail!("name a plugin"),
        };
        let (tool, arguments) = words.split_first().context("name the tool, after the plugin")?;
        Ok((plugin, tool, arguments))
    }
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
    time.context("this is neither a time such as 2026-11-07T10:00:00Z nor how long ago, such as 2h or 30min")
}

fn parse_allow(text: &str) -> Result<Allowed> {
    match text.split_once('=') {
        Some(("roots", access)) => Access::parse(access).map(Allowed::Roots),
        Some(("http", url)) => Ok(Allowed::Http(url.to_owned())),
        _ => bail!("what can be allowed is roots=read, roots=read-write or http=URL"),
    }
}

impl Plugins {
    /// Whether it names neither plugins nor folders.
    pub fn is_empty(&self) -> bool {
        self.builtins.is_empty() && self.paths.is_empty()
    }
}

impl Run {
    /// The config to use. Who names folders says all that is to be served, so the default config does not count then: what it grants
    /// its plugins was not meant for these folders.
    pub fn file(&self, command_line: &CommandLine) -> Result<Option<PathBuf>> {
        match &self.config.config {
            None if !command_line.folders.is_empty() => Ok(None),
            named => config::find(named.as_deref()),
        }
    }
}

impl Granted {
    pub fn command_line(&self, named: &Plugins) -> Result<CommandLine> {
        let mut plugins: Vec<Named> = named.builtins.iter().cloned().map(Named::BuiltIn).collect();
        let mut folders = Vec::new();
        for path in &named.paths {
            match Positional::tell(path)? {
                Positional::Plugin(path) => plugins.push(Named::File(path)),
                Positional::Folder(path) => folders.push(path),
            }
        }
        ensure!(
            !plugins.is_empty() || folders.is_empty(),
            "a folder is opened to the plugins on the command line, and there are none: add `--builtin files`, or open it to \
             those of the config with --root"
        );
        ensure!(
            folders.is_empty() || self.roots.is_empty(),
            "--root opens folders beside those of the client, and a folder without an option in their place: use one of the two"
        );
        let mut allow_roots = (!folders.is_empty()).then_some(Access::ReadWrite);
        let mut allow_http = Vec::new();
        for allowed in &self.allow {
            match allowed {
                Allowed::Roots(access) => allow_roots = Some(*access),
                Allowed::Http(url) => allow_http.push(url.clone()),
            }
        }
        if named.read_only {
            allow_roots = allow_roots.map(|_| Access::Read);
        }
        let (prefix, roots) = (named.prefix.clone(), self.roots.clone());
        Ok(CommandLine { plugins, prefix, roots, folders, allow_roots, allow_http, listen: None })
    }
}
