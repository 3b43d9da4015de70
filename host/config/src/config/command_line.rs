//! Settings from the command line.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::listen::ListenAddress;
use crate::access::capability::Access;
use wharf_base::text;
use wharf_egress::rule::RawRule;

/// What the command line adds to the config file.
#[derive(Debug, Clone, Default)]
pub struct CommandLine {
    pub plugins: Vec<Named>,
    /// The prefix of the names of these plugins' tools and prompts. None: each plugin's id.
    pub prefix: Option<String>,
    /// Folders that are opened in addition to those of the client.
    pub roots: Vec<PathBuf>,
    /// Folders within which those of the client may lie, in addition to those that the config names.
    pub within: Vec<PathBuf>,
    /// Folders that are opened instead of those of the client.
    pub folders: Vec<PathBuf>,
    /// The access to roots that the plugins named on the command line are granted.
    pub allow_roots: Option<Access>,
    /// The rules for the requests of these plugins.
    pub allow_http: Vec<RawRule>,
    pub listen: Option<ListenAddress>,
}

/// A plugin that the command line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    File(PathBuf),
    BuiltIn(String),
}

impl Named {
    /// Returns the id of the plugin, which may not be a valid one.
    pub fn id(&self) -> &str {
        match self {
            Self::File(path) => path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default(),
            Self::BuiltIn(name) => name,
        }
    }
}

/// A positional argument of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Positional {
    Plugin(PathBuf),
    Folder(PathBuf),
}

impl Positional {
    /// Decides what a path is: an existing folder, or else the file of a plugin, which need not exist yet.
    pub fn tell(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Ok(Self::Folder(path.to_owned()));
        }
        ensure!(
            path.is_file() || path.extension().is_some_and(|extension| extension == "wasm"),
            "{}: there is no such folder, and no such plugin",
            text::path(path)
        );
        Ok(Self::Plugin(path.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_there_and_plugins_may_come() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("odd.wasm")).unwrap();
        std::fs::write(at("component"), b"").unwrap();
        assert_eq!(Positional::tell(folder.path()).unwrap(), Positional::Folder(folder.path().to_owned()));
        assert_eq!(Positional::tell(&at("odd.wasm")).unwrap(), Positional::Folder(at("odd.wasm")));
        for plugin in ["component", "later.wasm"] {
            assert_eq!(Positional::tell(&at(plugin)).unwrap(), Positional::Plugin(at(plugin)));
        }
        assert!(Positional::tell(&at("typo")).unwrap_err().to_string().contains("no such folder"));
    }
}
