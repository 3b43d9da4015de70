//! Where wharf keeps its files if the config does not say so, and how a path in the config becomes absolute.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// The default place of the file: `$XDG_CONFIG_HOME/wharf/wharf.toml`, else `~/.config/wharf/wharf.toml`.
pub fn default_path() -> Option<PathBuf> {
    default_paths().next()
}

pub fn default_paths() -> impl Iterator<Item = PathBuf> {
    base_dirs("XDG_CONFIG_HOME", ".config").map(|base| base.join("wharf").join("wharf.toml"))
}

/// The folder that an environment variable names, then the one in the home directory that is used without the variable.
pub fn base_dirs(variable: &str, in_home: &str) -> impl Iterator<Item = PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let home = std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(in_home));
    named.filter(|path| path.is_absolute()).into_iter().chain(home)
}

/// The folder for compiled code: `$XDG_CACHE_HOME/wharf`, else `~/.cache/wharf`.
pub fn cache_dir() -> Option<PathBuf> {
    cache_dirs().into_iter().next()
}

/// All folders that [`cache_dir`] chooses from, the preferred one first.
pub fn cache_dirs() -> Vec<PathBuf> {
    base_dirs("XDG_CACHE_HOME", ".cache").map(|base| base.join("wharf")).collect()
}

/// All folders in which wharf may keep what it remembers from one start to the next, the one in use first: `$XDG_STATE_HOME/wharf`, then
/// `~/.local/state/wharf`.
pub fn state_dirs() -> Vec<PathBuf> {
    base_dirs("XDG_STATE_HOME", ".local/state").map(|base| base.join("wharf")).collect()
}

/// Makes a path absolute. It may be relative to `base`, the folder of the config, or begin with `~` for the home directory.
pub fn absolute(path: &str, base: Option<&Path>) -> Result<PathBuf> {
    ensure!(!path.is_empty(), "a path is empty");
    let path = match path.strip_prefix("~/").zip(std::env::home_dir()) {
        Some((rest, home)) => home.join(rest),
        None if path == "~" => std::env::home_dir().context("`~`: there is no home directory")?,
        None => PathBuf::from(path),
    };
    match base {
        Some(base) => Ok(base.join(path)),
        None => Ok(std::path::absolute(path)?),
    }
}
