//! The operator's file: read, checked, resolved once into types that need no further checks.
//!
//! `raw` is the file as written; `resolved` is what the rest of wharf sees. The file is trusted, so it is guarded: never
//! taken from the working directory, and refused if somebody else could have written it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

mod bounds;
pub mod defaults;
mod guard;
mod http;
mod plugin;
mod protocol;
mod raw;
mod resolved;

pub use guard::{check_trusted_directory, check_trusted_file};
pub use http::{Http, Token};
pub use plugin::{
    Access, AskGrant, DirGrant, Grants, Origin, Pattern, PluginConfig, TaskLimits, check_id, parse_access,
};
pub use protocol::{Protocol, StateKey};
pub use resolved::{CommandLine, Config, Roots};

/// Where the file is if nobody says: `$XDG_CONFIG_HOME/wharf/wharf.toml`, else `~/.config/wharf/wharf.toml`.
pub fn default_path() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(".config")))?;
    Some(base.join("wharf").join("wharf.toml"))
}

/// Reads the file and adds what the command line says. Without a file, the defaults and the command line alone.
pub fn load(file: Option<&Path>, command_line: &CommandLine) -> Result<Config> {
    let Some(file) = file else { return resolved::resolve(raw::Config::default(), None, command_line) };
    let file = std::path::absolute(file)?;
    let name = file.display();
    check_trusted_file(&file, "config")?;
    let text = std::fs::read_to_string(&file).with_context(|| format!("{name}: cannot be read"))?;
    let raw = raw::parse(&text).map_err(|problem| anyhow::anyhow!("{name}:{problem}"))?;
    resolved::resolve(raw, Some(&file), command_line).with_context(|| name.to_string())
}

/// The file to use: the one that was named, which must exist, or the default one if it exists.
pub fn find(named: Option<&Path>) -> Result<Option<PathBuf>> {
    match named {
        Some(path) if path.exists() => Ok(Some(path.to_owned())),
        Some(path) => bail!("{}: there is no such config file", path.display()),
        None => Ok(default_path().filter(|path| path.exists())),
    }
}
