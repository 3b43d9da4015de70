//! The status of a plugin: whether it is served as configured, and why not.

use std::{fmt, path::PathBuf};

use wharf_sandbox::Told;

/// The subject of a status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Subject {
    /// The plugin folder itself.
    PluginDir,
    /// A file in the plugin folder whose name does not allow it to be a plugin.
    File(PathBuf),
    /// The plugin with this id.
    Plugin(String),
}

impl Subject {
    /// Returns the subject for the plugin with this id.
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

/// The stage of loading at which a plugin failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The file's name is not a valid id, or is the id of a configured plugin.
    Name,
    /// It is made from an existing server, and that build failed.
    Build,
    /// The file cannot be read, or is not trusted because other users may write it.
    Read,
    /// The component's SHA-256 is not the one in the config.
    Verify,
    /// The file is not a component that can be loaded.
    Load,
    /// The plugin does not return its lists, or an entry in them cannot be served.
    List,
    /// It tells models, or wants, something that the operator has not accepted.
    Consent,
    /// Another plugin has one of its names.
    Names,
}

impl Stage {
    /// Returns the stage in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Build => "build",
            Self::Read => "read",
            Self::Verify => "verify",
            Self::Load => "load",
            Self::List => "list",
            Self::Consent => "consent",
            Self::Names => "names",
        }
    }

    /// Returns why a plugin does not load, for clients.
    fn reason(self) -> &'static str {
        match self {
            Self::Name => "its name is not valid",
            Self::Build => "its build failed",
            Self::Read => "its file cannot be read",
            Self::Verify => "its file is not the one that the config names by its SHA-256",
            Self::Load => "its file is not a component that this server can load",
            Self::List => "it fails when asked what it offers",
            Self::Consent => "nobody has accepted what it tells models",
            Self::Names => "another plugin has one of its names",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a plugin does not load: the stage, and a description for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The stage at which it failed.
    pub stage: Stage,
    /// The description, in which a plugin may have chosen parts.
    pub text: Told,
}

impl Problem {
    /// Makes a problem with this description, or its beginning.
    pub(super) fn new(stage: Stage, text: impl fmt::Display) -> Self {
        Self { stage, text: Told::new(format_args!("{text}")) }
    }

    /// Returns the sentence for clients, without a full stop. It has only the stage's reason: descriptions can contain paths of the
    /// operator, and text of the plugin's choice, which would reach models without anyone having accepted the plugin.
    pub(super) fn told(&self, id: &str, last_good: bool) -> String {
        let still = if last_good { "; its last good version is served" } else { "" };
        format!("plugin {id} did not load: {}; the server's log says more{still}", self.stage.reason())
    }
}

/// Whether a plugin is served as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// It is served as configured.
    Serving,
    /// It cannot be served as configured.
    #[non_exhaustive]
    Failed {
        /// The reason.
        problem: Problem,
        /// Whether its last working version is still served.
        last_good: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_no_details() {
        let problem = Problem::new(Stage::Read, "/home/ann/x.wasm: gone");
        assert_eq!(
            problem.told("x", true),
            "plugin x did not load: its file cannot be read; the server's log says more; its last good version is served"
        );
    }
}
