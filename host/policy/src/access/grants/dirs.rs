//! `dirs = [{ host, guest, access }]`: folders that the operator names.

use std::{collections::HashMap, path::PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::access::{
    capability::{Absolute, Access, Capability},
    open::{Now, OpenRoot},
    overlap::Wanted,
};
use wharf_base::paths::links;

pub const FILES: &str = "files";

/// The log message about a plugin that asked for its directories but has none.
pub const HINT: &str = "it asked for its directories, but no directory is open to it; grant one with `roots` or `dirs`";
/// The same message about a plugin on the command line.
pub const HINT_FLAG: &str = "it asked for its directories, but no directory is open to it; open one with a folder on the command line, after the plugin or before `npx`, `uvx` and the like, or \
                             with `--root DIR` and `--allow roots=read-write`";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant(pub Vec<Dir>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dir {
    pub host: PathBuf,
    /// The path at which the plugin sees the directory.
    pub guest: String,
    pub access: Access,
}

#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawDir {
    /// The folder.
    #[schemars(with = "String")]
    pub host: PathBuf,
    /// The path at which the plugin sees the folder.
    ///
    /// Default: the folder's own path
    pub guest: Option<String>,
    /// The access: `"read"` or `"read-write"`.
    pub access: String,
}

impl Grant {
    /// Adds the directories in their current state, and notes those that are missing.
    pub fn apply(&self, opened: &Opened, wanted: &mut Wanted) {
        for dir in &self.0 {
            match opened.now(dir) {
                Now::There(mut directory) => {
                    directory.shown.clone_from(&dir.guest);
                    wanted.add(Now::There(directory), dir.access);
                }
                elsewhere => {
                    wanted.missing.push(dir.host.clone());
                    wanted.add(elsewhere, dir.access);
                }
            }
        }
    }
}

/// The directories of all plugins, opened when the config was read.
#[derive(Default)]
pub struct Opened(HashMap<PathBuf, OpenRoot>);

impl Opened {
    pub fn of(dirs: &[Dir]) -> Self {
        let mut opened = HashMap::new();
        let writable: Vec<PathBuf> = dirs
            .iter()
            .filter(|dir| dir.access == Access::ReadWrite)
            .filter_map(|dir| std::fs::canonicalize(&dir.host).ok())
            .collect();
        for dir in dirs {
            // A plugin that may write to the folder of a symlink could have created that symlink, so it must not lead to more access.
            let link = links(&dir.host).into_iter().find(|link| {
                let place = link.parent().and_then(|parent| std::fs::canonicalize(parent).ok());
                place.is_some_and(|place| writable.iter().any(|folder| place.starts_with(folder)))
            });
            if let Some(link) = link {
                tracing::warn!(
                    "dirs: {} is ignored: a plugin may replace the symlink {}",
                    dir.host.display(),
                    link.display()
                );
                continue;
            }
            match OpenRoot::shown_at(&dir.host, &dir.guest) {
                Ok(open) => {
                    opened.insert(dir.host.clone(), open);
                }
                Err(error) => tracing::warn!("dirs: {}: {error}", dir.host.display()),
            }
        }
        Self(opened)
    }

    fn now(&self, dir: &Dir) -> Now {
        // A directory that was missing when the config was read may exist by now.
        let now = self.0.get(&dir.host).map(OpenRoot::now);
        now.or_else(|| OpenRoot::shown_at(&dir.host, &dir.guest).ok().map(|open| open.now())).unwrap_or(Now::Gone)
    }
}

impl Capability for Grant {
    type Raw = Vec<RawDir>;

    fn parse(written: Vec<RawDir>, absolute: Absolute<'_>) -> Result<Self> {
        let mut dirs: Vec<Dir> = Vec::with_capacity(written.len());
        for dir in written {
            let host = match dir.host.to_str() {
                Some(path) => absolute(path)?,
                // Only a program can give such a path: configs are UTF-8.
                None => std::path::absolute(&dir.host)?,
            };
            let guest = match dir.guest {
                Some(guest) => guest,
                None => host.to_str().context("`dirs`: a path that is not UTF-8 needs a `guest` path")?.to_owned(),
            };
            ensure!(guest.starts_with('/'), "`dirs`: the guest path `{guest}` must begin with /");
            ensure!(
                dirs.iter().all(|other| other.guest != guest),
                "`dirs`: two directories share the guest path `{guest}`"
            );
            dirs.push(Dir { host, guest, access: Access::parse(&dir.access)? });
        }
        Ok(Self(dirs))
    }

    fn exceeds(&self, other: &Self) -> bool {
        self.0.iter().any(|dir| !other.0.contains(dir))
    }

    fn describe(&self) -> Vec<String> {
        let words = |dir: &Dir| format!("{} as {} ({})", dir.host.display(), dir.guest, dir.access.as_str());
        self.0.iter().map(words).collect()
    }

    const IMPORTS: &'static [(&'static str, &'static str)] = &[("wasi:filesystem/", FILES)];
}
