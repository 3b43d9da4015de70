//! The status of each plugin.

use std::{fmt, path::PathBuf};

/// What a status is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The plugin folder itself.
    PluginDir,
    /// A file in the plugin folder that cannot be a plugin, because of its name.
    File(PathBuf),
    /// The plugin with this id.
    Plugin(String),
}

impl Subject {
    /// The plugin with this id.
    pub fn plugin(id: &str) -> Self {
        Self::Plugin(id.to_owned())
    }

    /// Whether this is the plugin with this id.
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

/// The stage at which a plugin failed, on the way from its file to what clients see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The file's name is no valid id, or the id of a configured plugin.
    Name,
    /// The file cannot be read, or may not be trusted.
    Read,
    /// The component's SHA-256 is not the one in the config.
    Verify,
    /// It is not a component that can be loaded.
    Load,
    /// Its lists cannot be got, or what they contain cannot be served.
    List,
    /// Another plugin has one of its names.
    Names,
}

impl Stage {
    /// The stage in one word.
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
    /// The stage at which it failed.
    pub stage: Stage,
    /// What is wrong.
    pub text: String,
}

/// Whether a plugin is served as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It is served as the operator wants it.
    Serving,
    /// It cannot be served as the operator wants it.
    Failed {
        /// Why.
        problem: Problem,
        /// Whether its last good version is served.
        last_good: bool,
    },
}
