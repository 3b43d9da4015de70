//! The config file: it is read and checked once, and resolved into types that need no further checks.
//!
//! `raw` is the file as written; `resolved` is what the rest of wharf sees. Since the file is trusted, it is never looked for
//! in the working directory, and refused if another user could have written it.

#![expect(clippy::disallowed_methods, reason = "the operator's file is read and guarded here")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::access::grants::Grants;
use wharf_base::{self as base, guard};

mod adapter;
mod admin;
pub mod approvals;
pub mod audit;
mod auth;
mod bounds;
pub mod builtin;
pub mod card;
mod command_line;
pub mod defaults;
mod egress;
mod elsewhere;
mod face;
mod given;
mod http;
mod listen;
mod plugin;
mod profiles;
mod protocol;
mod raw;
mod resolved;
mod roles;
mod schema;
mod settings;
mod source;
mod telemetry;
pub mod tls;

pub use admin::Admin;
pub use audit::Audit;
pub use bounds::parse_hex32;
pub use command_line::{CommandLine, Named, Positional};
pub use face::{Face, MAX_INSTRUCTIONS_BYTES};
pub use given::{Ask, Plugin, id_of};
pub use http::{AccessLog, Http, Token};
pub use listen::{Listen, parse_listen};
pub use plugin::{Origin, PluginConfig, TaskLimits, check_id};
pub use protocol::{Protocol, StateKey};
pub use resolved::{Config, Roots, Startup};
pub use schema::SCHEMA;
pub use settings::{Settings, to_json};
pub use source::{Source, State};
pub use telemetry::{Target, Telemetry};

/// The default place of the file: `$XDG_CONFIG_HOME/wharf/wharf.toml`, else `~/.config/wharf/wharf.toml`.
pub fn default_path() -> Option<PathBuf> {
    default_paths().next()
}

fn default_paths() -> impl Iterator<Item = PathBuf> {
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

/// Returns the paths that wharf would trust if it were started without the name of a config: the default file, whether or not it
/// exists, the plugins and the audit log that it names, and the file of remembered approvals.
pub fn trusted_by_default() -> Vec<PathBuf> {
    let mut trusted = Vec::new();
    for file in default_paths() {
        // A text that cannot be parsed names no plugins, but the path of the file is trusted all the same.
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if let (Ok(raw), Some(base)) = (raw::parse(&text), file.parent()) {
            let plugins = raw.plugins.0.iter().filter_map(|(_, plugin)| plugin.path.clone());
            let dropped_in = raw.plugin_dir.iter().map(|folder| format!("{folder}/*"));
            trusted.extend(plugins.chain(dropped_in).filter_map(|path| resolved::absolute(&path, Some(base)).ok()));
            let log = raw.audit.iter().filter_map(|audit| resolved::absolute(&audit.file, Some(base)).ok());
            trusted.extend(log.flat_map(|log| audit::trusted(&log)));
        }
        trusted.push(file);
    }
    trusted.extend(approvals::trusted());
    trusted
}

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
    resolved::absolute(path, file.parent())
}

/// Makes a path that was typed absolute. A relative path is relative to the working directory.
pub fn absolute_here(path: &str) -> Result<PathBuf> {
    resolved::absolute(path, None)
}

/// The file to use: the one that was named, which must exist, or the default one if it exists.
pub fn find(named: Option<&Path>) -> Result<Option<PathBuf>> {
    match named {
        Some(path) if path.exists() => Ok(Some(path.to_owned())),
        Some(path) => bail!("{}: there is no such config file", base::text::path(path)),
        None => Ok(default_path().filter(|path| path.exists())),
    }
}
