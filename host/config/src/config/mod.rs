//! The config file: it is read and checked once, and resolved into types that need no further checks.
//!
//! `raw` is the file as written; `resolved` is what the rest of wharf sees. Since the file is trusted, it is never looked for
//! in the working directory, and refused if another user could have written it.

#![expect(clippy::disallowed_methods, reason = "the operator's file is read and guarded here")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use wharf_base::{self as base, guard};
use wharf_policy::access::grants::Grants;

mod adapter;
mod admin;
pub mod approvals;
pub mod audit;
mod auth;
mod bounds;
pub mod builtin;
pub mod cluster;
mod command_line;
mod default_paths;
pub mod defaults;
mod egress;
mod elsewhere;
pub mod existing;
mod face;
mod given;
mod http;
mod identity;
mod listen;
mod plugin;
mod profiles;
mod protocol;
mod raw;
pub mod reference;
mod resolved;
mod roles;
mod schema;
mod settings;
mod source;
pub mod sources;
pub mod state;
mod state_keys;
mod telemetry;
pub mod tls;
mod trusted;
mod zone;

pub use admin::Admin;
pub use audit::Audit;
pub use bounds::{check_id, parse_hex32, parse_key};
pub use command_line::{CommandLine, Named, Positional, Typed};
pub use default_paths::{cache_dir, cache_dirs, default_path};
pub use face::{Face, MAX_INSTRUCTIONS_BYTES};
pub use given::{Ask, Plugin, id_of};
pub use http::{AccessLog, Http, SESSION_LIFETIME, Token};
pub use listen::{ListenAddress, parse_listen};
pub use plugin::{Origin, PluginConfig, TaskLimits};
pub use protocol::Protocol;
pub use raw::Instances;
pub use resolved::{Config, Roots, Startup};
pub use schema::SCHEMA;
pub use settings::{Settings, to_json};
pub use source::{BuiltIn, Located, PluginSource, SourceState};
pub use state_keys::StateKeySource;
pub use telemetry::Telemetry;
pub use trusted::{registry, undo_folder, window_folder};

/// Reads the file and adds the command line. Without a file, the config is the defaults and the command line.
pub fn load(file: Option<&Path>, command_line: &CommandLine) -> Result<Config> {
    let Some(file) = file else { return without_file(command_line) };
    from_text(&read(file)?, Some(file), command_line)
}

/// The config where there is no file: the defaults and the command line.
pub fn without_file(command_line: &CommandLine) -> Result<Config> {
    resolved::resolve(raw::Config::default(), None, command_line)
}

/// Reads the text of the file. Fails if another user could have written it.
pub fn read(file: &Path) -> Result<String> {
    let file = std::path::absolute(file)?;
    guard::check_trusted_file(&file, "config")?;
    std::fs::read_to_string(&file).with_context(|| format!("{}: cannot be read", base::text::path(&file)))
}

/// Whether a config contains nothing but blank lines and comments.
pub fn is_blank(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#'))
}

/// Resolves the text of a config. `file`: the file that the text is from. Relative paths are relative to its folder.
pub fn from_text(text: &str, file: Option<&Path>, command_line: &CommandLine) -> Result<Config> {
    let file = file.map(std::path::absolute).transpose()?;
    let file = file.as_deref();
    let name = file.map_or_else(|| "the config".into(), base::text::path);
    let raw = raw::parse(text).map_err(|problem| anyhow::anyhow!("{name}:{problem}"))?;
    let config = resolved::resolve(raw, file, command_line).context(name)?;
    Ok(Config { digest: Some(Sha256::digest(text).into()), ..config })
}

/// Resolves the text of a config that is meant for another environment: variables that are not set here are not errors.
pub fn from_text_elsewhere(text: &str, file: &Path) -> Result<Config> {
    let name = base::text::path(file);
    let raw = raw::parse(text).map_err(|problem| anyhow::anyhow!("{name}:{problem}"))?;
    resolved::resolve(elsewhere::without_variables(raw), Some(file), &CommandLine::default()).context(name)
}

/// Returns what the config grants a plugin, even if other parts of the config are wrong.
pub fn grants(text: &str, file: &Path, id: &str) -> Result<Grants> {
    let table: toml::Table = base::explain::toml(text).map_err(anyhow::Error::msg)?;
    let Some(written) = table.get("plugins").and_then(|all| all.get(id)?.get("grants")) else {
        return Ok(Grants::default());
    };
    // The error of `try_into` would repeat the value, which may be a secret.
    let written = written.clone().try_into().map_err(|_| anyhow::anyhow!("the grants are malformed"));
    written
        .and_then(|written| Grants::parse(written, &|path| absolute(path, file)))
        .with_context(|| base::text::toml_header(&["plugins", id, "grants"]))
}

/// Makes a path that is written in the config absolute. A relative path is relative to the folder of `file`.
pub fn absolute(path: &str, file: &Path) -> Result<PathBuf> {
    default_paths::absolute(path, file.parent())
}

/// Makes a path that was typed absolute. A relative path is relative to the working directory.
pub fn absolute_here(path: &str) -> Result<PathBuf> {
    default_paths::absolute(path, None)
}

/// The file to use: the one that was named, which must exist, or the default one if it exists.
pub fn find(named: Option<&Path>) -> Result<Option<PathBuf>> {
    match named {
        Some(path) if path.exists() => Ok(Some(path.to_owned())),
        Some(path) => bail!("{}: there is no such config file", base::text::path(path)),
        None => Ok(default_path().filter(|path| path.exists())),
    }
}
