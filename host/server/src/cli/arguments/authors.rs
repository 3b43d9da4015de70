//! The arguments of the commands with which plugins are written.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::{authoring::template::Language, config};

#[derive(Debug, Args)]
pub struct New {
    /// The folder to make. Its last part is the name of the plugin
    #[arg(value_name = "NAME")]
    pub folder: PathBuf,
    /// The language
    #[arg(long, value_enum, default_value_t = Lang::Rust)]
    pub lang: Lang,
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

/// The folder of a plugin that is being written.
#[derive(Debug, Args)]
pub struct Project {
    /// The folder with the plugin.toml
    #[arg(value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub folder: PathBuf,
    /// Do first what plugin.toml says has to be done once, such as `npm install`, unless it is done
    #[arg(long)]
    pub setup: bool,
}

#[derive(Debug, Args)]
pub struct Dev {
    #[command(flatten)]
    pub project: Project,
    /// Where to listen: an address and port, or unix: and the path of a socket (default: 127.0.0.1:7300)
    #[arg(long, value_name = "ADDR", value_parser = config::parse_listen)]
    pub listen: Option<config::Listen>,
    /// Serve stdin and stdout as well
    #[arg(long)]
    pub stdio: bool,
    /// A folder that is open as a root, beside those that the client opens
    #[arg(long = "root", value_name = "DIR")]
    pub roots: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Test {
    #[command(flatten)]
    pub project: Project,
    /// A file of cases, in place of tests/*.toml; may be given more than once
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// A component that is built already, in place of the one that plugin.toml builds
    #[arg(long, value_name = "PLUGIN.wasm")]
    pub plugin: Option<PathBuf>,
    /// Only cases with this text in their names
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Take all new and changed snapshots as they are
    #[arg(long, conflicts_with = "review")]
    pub accept: bool,
    /// Show each new or changed snapshot, and ask whether to take it
    #[arg(long)]
    pub review: bool,
    /// Write the results as JUnit's XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}
