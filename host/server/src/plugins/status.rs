//! How each plugin fares, for `check` and for the log.

use std::{fmt, path::PathBuf};

/// What a status is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The plugin folder itself.
    PluginDir,
    /// A file of the plugin folder that cannot be any plugin.
    File(PathBuf),
    /// By its id.
    Plugin(String),
}

impl Subject {
    /// The plugin with this id.
    pub fn plugin(id: &str) -> Self {
        Self::Plugin(id.to_owned())
    }

    /// Whether it is the plugin with this id.
    pub fn is_plugin(&self, id: &str) -> bool {
        matches!(self, Self::Plugin(own) if own == id)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PluginDir => f.write_str("plugin_dir"),
            Self::File(path) => path.display().fmt(f),
            Self::Plugin(id) => f.write_str(id),
        }
    }
}

/// On the way from a file to what clients see: where it went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The file's name is no id, or somebody else's.
    Name,
    /// The file cannot be read, or may not be trusted.
    Read,
    /// It is not the file that the config names.
    Verify,
    /// It is no component of use.
    Load,
    /// What it offers cannot be had, or not be served.
    List,
    /// A name of its own is taken by another plugin.
    Names,
}

impl Stage {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Read => "read",
            Self::Verify => "verify",
            Self::Load => "load",
            Self::List => "list",
            Self::Names => "names",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a plugin does not load: at which stage, and in words for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it went wrong.
    pub stage: Stage,
    /// What is wrong.
    pub text: String,
}

/// How a plugin fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It is served as the operator wants it.
    Serving,
    /// It cannot be.
    Failed {
        /// Why.
        problem: Problem,
        /// An older version is served.
        last_good: bool,
    },
}
