//! The arguments of the commands for plugin authors.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use super::run::{Allowed, RunIn, of_line, parse_allow, parse_listen};
use crate::authoring::{
    existing::{line, started::meant},
    template::Language,
};
use wharf_base::text;
use wharf_config::config::{self, Positional, existing::ExistingServer};

#[derive(Debug, Args)]
pub struct New {
    /// The folder to create. Its last component is the name of the plugin (default with --from: the name of the server)
    #[arg(value_name = "NAME", required_unless_present = "from")]
    pub folder: Option<PathBuf>,
    /// The language
    #[arg(long, value_enum, default_value_t = Lang::Rust)]
    pub lang: Lang,
    /// Make the project from an existing MCP server in Python, TypeScript or JavaScript: its file, which is copied with the sources next
    /// to it, its folder, or a published package (npm:NAME, pypi:NAME)
    #[arg(long, value_name = "SERVER", conflicts_with = "lang")]
    pub from: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Lang {
    Rust,
    #[value(alias = "typescript")]
    Ts,
    #[value(alias = "javascript")]
    Js,
    #[value(alias = "py")]
    Python,
    Go,
    /// Also for C++
    C,
}

impl From<Lang> for Language {
    fn from(lang: Lang) -> Self {
        match lang {
            Lang::Rust => Self::Rust,
            Lang::Ts => Self::TypeScript,
            Lang::Js => Self::JavaScript,
            Lang::Python => Self::Python,
            Lang::Go => Self::Go,
            Lang::C => Self::C,
        }
    }
}

/// The folder of a plugin project.
#[derive(Debug, Args)]
pub struct Project {
    /// The folder with the plugin.toml (default: the current folder); for `wharf dev` also an existing MCP server: a file in Python,
    /// TypeScript or JavaScript
    #[arg(value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub folder: PathBuf,
    /// First run the one-time setup of plugin.toml, such as `npm install`, if it was not run yet
    #[arg(long)]
    pub setup: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("section").multiple(true))]
pub struct Build {
    #[command(flatten)]
    pub project: Project,
    /// Build nothing, and write the grants that the plugin wants, or instructions for models, into this component
    #[arg(long, value_name = "PLUGIN.wasm", conflicts_with_all = ["folder", "setup"], requires = "section")]
    pub embed: Option<PathBuf>,
    /// The TOML file with the grants that the plugin wants
    #[arg(long, value_name = "FILE", group = "section", requires = "embed")]
    pub wants: Option<PathBuf>,
    /// Instructions for models about the plugin's tools as a whole: a text, or @ followed by a file name
    #[arg(long, value_name = "TEXT|@FILE", group = "section", requires = "embed")]
    pub instructions: Option<String>,
    /// The component to write (default: the same file)
    #[arg(short = 'o', long = "output", value_name = "OUT", requires = "embed")]
    pub out: Option<PathBuf>,
}

/// A kind of package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PackageKind {
    /// For desktop clients
    Mcpb,
    Npm,
    /// For PyPI
    Wheel,
}

#[derive(Debug, Args)]
pub struct Pack {
    /// The folder with the plugin.toml (default: the current folder)
    #[arg(value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub folder: PathBuf,
    /// The kind of package; may be given more than once (default: all kinds)
    #[arg(long, value_enum, value_name = "KIND")]
    pub to: Vec<PackageKind>,
    /// The folder to write to (default: dist/packages, below the plugin's folder)
    #[arg(short = 'o', long = "output", value_name = "OUT")]
    pub out: Option<PathBuf>,
    /// Let the packages for npm and PyPI depend on wharf's own packages there, in place of containing this binary. They then run wherever
    /// wharf has packages
    #[arg(long)]
    pub depend: bool,
}

/// A plugin in a package, and the folders that are open to it.
#[derive(Debug, Args)]
pub struct Packaged {
    /// The component
    #[arg(value_name = "PLUGIN.wasm")]
    pub plugin: PathBuf,
    /// The folders that are open to the plugin, if it wants folders
    #[arg(value_name = "DIR")]
    pub folders: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Dev {
    #[command(flatten)]
    pub project: Project,
    /// The address to listen on: an IP address and port, a port of this machine, or unix: and the path of a socket (default: 127.0.0.1:7300)
    #[arg(long, alias = "port", value_name = "ADDR", value_parser = parse_listen)]
    pub listen: Option<config::ListenAddress>,
    /// Serve a client over stdin and stdout; over HTTP too only with --listen
    #[arg(long)]
    pub stdio: bool,
    /// A grant in addition to those of [dev.grants] in plugin.toml, as for `wharf run`; may be given more than once
    #[arg(long, value_name = "GRANT", value_parser = parse_allow)]
    pub allow: Vec<Allowed>,
    /// A folder to open as a root, in addition to those that the client opens
    #[arg(long = "root", value_name = "DIR")]
    pub roots: Vec<PathBuf>,
    #[command(flatten)]
    pub instances: RunIn,
    /// The arguments of the existing server, or the line that starts it from its file without wharf, such as `node index.js`
    #[arg(last = true, value_name = "ARGUMENTS | LINE")]
    pub after: Vec<String>,
}

impl Dev {
    /// Returns the existing server that is developed, if it is one.
    pub fn server(&self) -> Result<Option<ExistingServer>> {
        let server = match self.after.first() {
            Some(first) if line::begins(first) => {
                ensure!(
                    self.project.folder == Path::new("."),
                    "{}: `wharf dev` builds one server, which the line after it names",
                    text::path(&self.project.folder)
                );
                Some(of_line(&self.after)?)
            }
            _ => {
                let server = Positional::tell(&self.project.folder).ok().map_or(Ok(None), meant)?;
                ensure!(
                    server.is_some() || self.after.is_empty(),
                    "what stands after `--` are the arguments of an existing server: name its file before"
                );
                server.map(|server| ExistingServer { args: self.after.clone(), ..server })
            }
        };
        ensure!(
            server.as_ref().is_none_or(|server| server.package.is_none()),
            "`wharf dev` builds a server again when you save its file, and a package has none; `wharf run` serves it, and `wharf new --from \
             npm:NAME` makes a project of it"
        );
        Ok(server)
    }
}

#[derive(Debug, Args)]
pub struct Test {
    #[command(flatten)]
    pub project: Project,
    /// A file of test cases, in place of tests/*.toml; may be given more than once
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// A component to test, in place of building the one of plugin.toml
    #[arg(long, value_name = "PLUGIN.wasm")]
    pub plugin: Option<PathBuf>,
    /// Run only cases with this text in their names
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Accept all new and changed snapshots
    #[arg(long, conflicts_with = "review")]
    pub accept: bool,
    /// Show each new or changed snapshot, and ask whether to accept it
    #[arg(long)]
    pub review: bool,
    /// Also write the results to this file, as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}
