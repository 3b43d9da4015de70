//! Settings from the command line.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::listen::Listen;
use crate::{access::capability::Access, base::text};

/// What the command line adds to the config file.
#[derive(Debug, Clone, Default)]
pub struct CommandLine {
    pub plugins: Vec<Named>,
    /// How the names of the tools and prompts of these plugins begin, if not with their ids.
    pub prefix: Option<String>,
    /// Folders that are open beside those that the client opens.
    pub roots: Vec<PathBuf>,
    /// Folders that are open in place of those that the client opens.
    pub folders: Vec<PathBuf>,
    /// The access to roots that the plugins named on the command line are granted.
    pub allow_roots: Option<Access>,
    /// The URLs that they may read.
    pub allow_http: Vec<String>,
    pub listen: Option<Listen>,
}

/// A plugin that the command line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    File(PathBuf),
    BuiltIn(String),
}

/// What stands on the command line without an option before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Positional {
    Plugin(PathBuf),
    Folder(PathBuf),
}

impl Positional {
    /// A folder is one that is there; anything else is the file of a plugin, which may come later.
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
