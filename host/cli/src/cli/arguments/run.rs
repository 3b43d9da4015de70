//! The arguments of `wharf run`, and those that other commands share with it.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Result, anyhow, bail, ensure};
use clap::{Args, ValueEnum};

use super::{line_place::typed, value_names::ValueNames};
use crate::authoring::existing::{
    entry, line,
    started::{meant, started},
};
use wharf_base::text;
use wharf_config::config::{
    self, CommandLine, Instances, ListenAddress, Named, Positional, builtin, existing::ExistingServer,
};
use wharf_egress::rule::RawRule;
use wharf_policy::access::capability::Access;

/// The options of every command.
#[derive(Debug, Args)]
pub struct Log {
    /// The format of the log on stderr. RUST_LOG sets what is logged, up to level debug (default: wharf=info)
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub struct ConfigFile {
    /// The config file
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl ConfigFile {
    /// Returns the config file to use. If the command line names plugins, these are all that is served, and the default config is not read.
    pub fn file(&self, command_line: &CommandLine) -> Result<Option<PathBuf>> {
        match &self.config {
            None if !command_line.plugins.is_empty() => Ok(None),
            named => config::find(named.as_deref()),
        }
    }
}

#[derive(Debug, Clone, Args)]
pub struct Granted {
    /// A folder to open as a root, in addition to those that the client opens; only to plugins that are granted roots, such as with
    /// --allow roots=read
    #[arg(long = "root", value_name = "DIR")]
    pub roots: Vec<PathBuf>,
    /// Accept folders that the client opens only if they lie in DIR; without this option, only if they lie in the home directory
    #[arg(long, value_name = "DIR")]
    pub within: Vec<PathBuf>,
    /// Grant the plugins on the command line access to the roots (roots=read, roots=read-write); to everything below a URL by GET and HEAD
    /// (http=https://example.com/), or by every method (http-write=URL); to every public address (http=any); to a host of this machine or
    /// its network (http-private=http://localhost:8080/); to a variable of this environment (env=NAME); to questions to the client
    /// (ask=elicitation, ask=sampling, ask=roots); may be given more than once
    #[arg(long, value_name = "GRANT", value_parser = parse_allow)]
    pub allow: Vec<Allowed>,
}

/// One grant of `--allow`.
#[derive(Debug, Clone)]
pub enum Allowed {
    Roots(Access),
    Http(String),
    HttpWrite(String),
    HttpPrivate(String),
    Env(String),
    Ask(String),
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Roots(access) => write!(f, "roots={}", access.as_str()),
            Self::Http(url) => write!(f, "http={url}"),
            Self::HttpWrite(url) => write!(f, "http-write={url}"),
            Self::HttpPrivate(url) => write!(f, "http-private={url}"),
            Self::Env(name) => write!(f, "env={name}"),
            Self::Ask(what) => write!(f, "ask={what}"),
        }
    }
}

#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    pub config: ConfigFile,
    #[command(flatten)]
    pub granted: Granted,
    /// The profile for the client at stdin and stdout: one from the config, or the built-in `search`, which offers three tools that
    /// find the others, call them, and read resources. HTTP clients choose theirs with the URL: /mcp/NAME
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    #[command(flatten)]
    pub named: Plugins,
}

/// The plugins that a command line names, and the folders that it opens to them.
#[derive(Debug, Clone, Default, Args)]
pub struct Plugins {
    /// A built-in plugin: fetch, files, git, memory, sequentialthinking or time; may be given more than once
    #[arg(long = "builtin", value_name = "NAME", value_parser = ValueNames::builtins(), hide_possible_values = true)]
    pub builtins: Vec<String>,
    /// The prefix of these plugins' tool names, "" for none (default: the plugin's id; none for an existing server, and for a built-in plugin
    /// that is served alone)
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,
    /// Open the folders for reading only
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    pub instances: RunIn,
    /// Plugins to serve, and folders. If plugins are given, the default config is not read; those of a config that -c names are served too.
    /// The plugins on the command line may read and write in the folders here and in no others: if a folder is given, they have no access to
    /// the folders that the client opens
    ///
    /// A file in Python, TypeScript or JavaScript, or a package of npm or PyPI, is an existing MCP server: wharf makes a plugin of it in its
    /// cache, when it is first used and when its source has changed
    #[arg(value_name = "PLUGIN.wasm | SERVER.py | SERVER.ts | npm:NAME | pypi:NAME | DIR")]
    pub paths: Vec<PathBuf>,
    /// The line that starts an existing MCP server without wharf, such as `npx -y NAME ARGUMENTS`, `uvx NAME` or `node index.js`; the `--`
    /// before it may be left out, and wharf's own options stand before it. Or the arguments of the server that is named before
    #[arg(last = true, value_name = "LINE | ARGUMENTS")]
    pub after: Vec<String>,
}

/// Parses `--listen`, where a port is enough: then this machine only.
pub(super) fn parse_listen(text: &str) -> Result<ListenAddress> {
    let is_port = text.parse::<u16>().is_ok();
    config::parse_listen(&if is_port { format!("127.0.0.1:{text}") } else { text.to_owned() })
}

#[derive(Debug, Clone, Default, Args)]
pub struct RunIn {
    /// What calls of these plugins run in: a new instance each (fresh), or one that earlier calls of the same client may have used (reused).
    /// By default, an existing MCP server has one instance for each client, which keeps what the server has in memory
    #[arg(long = "instances", value_name = "fresh|reused", value_parser = parse_instances)]
    pub how: Option<Instances>,
}

fn parse_instances(text: &str) -> Result<Instances> {
    match text {
        "fresh" => Ok(Instances::Fresh),
        "reused" => Ok(Instances::Reused),
        _ => bail!("expected fresh or reused"),
    }
}

pub fn parse_allow(text: &str) -> Result<Allowed> {
    match text.split_once('=') {
        Some(("roots", access)) => Access::parse(access).map(Allowed::Roots),
        Some((key @ ("http" | "http-write" | "http-private"), url)) => {
            ensure!(url == "any" || url.contains("://"), "it is not a URL; write {key}=https://{url}");
            Ok(match key {
                "http" => Allowed::Http(url.to_owned()),
                "http-write" => Allowed::HttpWrite(url.to_owned()),
                _ => Allowed::HttpPrivate(url.to_owned()),
            })
        }
        Some(("env", name)) => Ok(Allowed::Env(name.to_owned())),
        Some(("ask", what)) => Ok(Allowed::Ask(what.to_owned())),
        _ => bail!(
            "expected roots=read, roots=read-write, http=URL, http=any, http-write=URL, http-private=URL, env=NAME, ask=elicitation, ask=sampling or \
             ask=roots"
        ),
    }
}

/// Returns the table of grants that a config would have for these options.
pub fn grants(allowed: &[Allowed]) -> toml::Table {
    let mut grants = toml::Table::new();
    for one in allowed {
        let (key, entry): (&str, toml::Value) = match one {
            Allowed::Roots(access) => {
                grants.insert("roots".into(), access.as_str().into());
                continue;
            }
            Allowed::Http(url) => ("http", url.as_str().into()),
            Allowed::HttpWrite(url) => {
                let any = [("url".to_owned(), url.as_str().into()), ("methods".to_owned(), "any".into())];
                ("http", toml::Table::from_iter(any).into())
            }
            Allowed::HttpPrivate(url) => {
                let private = [("url".to_owned(), url.as_str().into()), ("private".to_owned(), true.into())];
                ("http", toml::Table::from_iter(private).into())
            }
            Allowed::Env(name) => ("env", name.as_str().into()),
            Allowed::Ask(what) => ("ask", what.as_str().into()),
        };
        let list = grants.entry(key).or_insert_with(|| toml::Value::Array(Vec::new()));
        if let Some(list) = list.as_array_mut() {
            list.push(entry);
        }
    }
    grants
}

impl Plugins {
    /// Returns the existing servers that are named.
    pub fn servers(&self) -> Result<Vec<ExistingServer>> {
        let mut servers = Vec::new();
        for path in &self.paths {
            if let Ok(positional) = Positional::tell(path) {
                servers.extend(meant(positional)?);
            }
        }
        match (self.after.first(), servers.as_mut_slice()) {
            (None, _) => {}
            (Some(first), _) if line::begins(first) => servers.push(of_line(&self.after)?),
            (Some(_), [only]) => only.args.clone_from(&self.after),
            (Some(first), _) => bail!(
                "`{}` stands after `--`, where the line of a server stands, such as npx -y NAME, or the arguments of the one server that \
                 is named before",
                text::escaped(first)
            ),
        }
        Ok(servers)
    }

    /// Whether the command line names neither plugins nor folders.
    pub fn is_empty(&self) -> bool {
        self.builtins.is_empty() && self.paths.is_empty() && self.after.is_empty()
    }
}

/// Decides what a path is. Who forgets `--builtin` is told of it, and who names the server that a built-in plugin replaces.
pub fn tell(path: &Path) -> Result<Positional> {
    let name = path.to_str().unwrap_or_default();
    let built_in = || builtin::names().find(|known| *known == name).or_else(|| builtin::in_place_of(name));
    Positional::tell(path).map_err(|error| match built_in() {
        Some(known) => anyhow!("{error}; the built-in plugin is --builtin {known}"),
        None => error,
    })
}

/// Returns the server that a line starts.
pub fn of_line(words: &[String]) -> Result<ExistingServer> {
    let server = started(line::parse(words)?)?;
    let values = server.args.iter().zip(server.args.iter().skip(1)).filter(|(flag, _)| *flag == "--allow");
    let values = values.map(|(_, value)| value.as_str());
    let mut ours = values.chain(server.args.iter().filter_map(|word| word.strip_prefix("--allow=")));
    if let Some(grant) = ours.find(|value| parse_allow(value).is_ok()) {
        bail!(
            "`--allow {grant}` stands after the server, so it would be an argument of the server and grant nothing; write wharf's options \
             before `{}`",
            words.first().map_or("", String::as_str)
        );
    }
    Ok(server)
}

impl Granted {
    /// Reads the grants, plugins and folders of the command line.
    pub fn command_line(&self, named: &Plugins) -> Result<CommandLine> {
        let mut plugins: Vec<Named> = named.builtins.iter().cloned().map(Named::BuiltIn).collect();
        let mut folders = Vec::new();
        for path in &named.paths {
            match tell(path)? {
                Positional::Plugin(path) => plugins.push(Named::File(path)),
                Positional::Folder(path) => folders.push(path),
                Positional::Server(_) | Positional::Published(_) => {}
            }
        }
        let servers = named.servers()?;
        plugins.extend(servers.into_iter().map(|server| Named::Server(Arc::new(server))));
        let server = folders.iter().filter(|_| plugins.is_empty()).find_map(|folder| entry::find(folder));
        if let Some(file) = server.as_deref().and_then(Path::to_str) {
            bail!(
                "a folder on the command line is opened to plugins, and not run; the server in it is {}, and --builtin files works in the folder",
                text::escaped(&text::shell([file]))
            );
        }
        ensure!(
            !plugins.is_empty() || folders.is_empty(),
            "a folder on the command line is open only to plugins on the command line, and there are no such plugins: add \
             `--builtin files`, or open the folder to the plugins of the config with --root"
        );
        ensure!(
            folders.is_empty() || self.roots.is_empty(),
            "--root adds a folder to those that the client opens, and a folder without an option replaces them: use one of the two"
        );
        ensure!(
            folders.is_empty() || self.within.is_empty(),
            "--within says which folders of the client are accepted, and a folder without an option replaces those of the client: \
             use one of the two"
        );
        let mut allow_roots = (!folders.is_empty()).then_some(Access::ReadWrite);
        let (mut allow_http, mut allow_env, mut allow_ask) = (Vec::new(), Vec::new(), Vec::new());
        for allowed in &self.allow {
            match allowed {
                Allowed::Roots(access) => allow_roots = Some(*access),
                Allowed::Http(url) => allow_http.push(RawRule::url(url)),
                Allowed::HttpWrite(url) => allow_http.push(RawRule::any_method(url)),
                Allowed::HttpPrivate(url) => allow_http.push(RawRule::private(url)),
                Allowed::Env(name) => allow_env.push(name.clone()),
                Allowed::Ask(what) => allow_ask.push(what.clone()),
            }
        }
        if named.read_only {
            allow_roots = allow_roots.map(|_| Access::Read);
        }
        let (prefix, roots, within) = (named.prefix.clone(), self.roots.clone(), self.within.clone());
        Ok(CommandLine {
            plugins,
            prefix,
            roots,
            within,
            folders,
            allow_roots,
            allow_http,
            allow_env,
            allow_ask,
            instances: named.instances.how,
            listen: None,
            typed: typed(0),
        })
    }
}
