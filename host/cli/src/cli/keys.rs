//! `wharf keys`: creates, lists and revokes the API keys that [auth] accepts.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, ensure};

use super::{
    arguments::{Keys, KeysFile},
    load::print,
};
use wharf_base::{rewrite::rewrite, text::escaped};
use wharf_config::config::{self, CommandLine};
use wharf_policy::auth::api_keys::{self, File, Key, Secret, digest, generate};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// The number of digits of a digest that are shown to identify a key.
const DIGEST_DIGITS: usize = 12;
const FILE_HEADER: &str =
    "# API keys, as digests. `wharf keys` writes this file; `keys_file` in [auth] of the config names it.\n";

pub fn run(command: Keys) -> Result<ExitCode> {
    match command {
        Keys::New { id, scopes, days, file } => new(&id, &scopes, days, &path(file)?),
        Keys::List { file } => list(&path(file)?),
        Keys::Revoke { id, sha256, file } => revoke(&id, sha256.as_deref(), &path(file)?),
    }
}

/// Returns the path of the key file: the named one, or else the one of the config.
fn path(KeysFile { file, config }: KeysFile) -> Result<PathBuf> {
    if let Some(path) = file {
        return Ok(std::path::absolute(path)?);
    }
    let config = config::load(config.config.or_else(config::default_path).as_deref(), &CommandLine::default())?;
    let settings = config.startup.auth.as_ref();
    let file = settings.and_then(|auth| auth.keys_file.clone());
    file.context("the config names no `keys_file` in [auth]; add it there, or name the file with --file")
}

fn new(id: &str, scopes: &[String], days: Option<u32>, path: &Path) -> Result<ExitCode> {
    let key = generate(id)?;
    let end = days.map(|days| SystemTime::now() + DAY * days);
    let not_after = end.map(|end| humantime::format_rfc3339_seconds(end).to_string());
    rewrite(path, || {
        let mut file = api_keys::read_if_there(path)?;
        let entry = file.keys.entry(id.to_owned()).or_insert_with(Key::default);
        ensure!(
            scopes.is_empty() || entry.secrets.is_empty() || entry.scopes == scopes,
            "the key `{id}` has other scopes ({}), and all keys of an id share their scopes: leave out --scope, or choose another id",
            entry.scopes.join(" ")
        );
        if entry.secrets.is_empty() {
            entry.scopes = scopes.to_vec();
        }
        entry.secrets.push(Secret { sha256: digest(&key), not_after: not_after.clone() });
        text(&file)
    })?;
    print(&key)?;
    let until = not_after.map_or("until it is revoked".to_owned(), |end| format!("until {end}"));
    eprint_line(&format!("The key is shown only this once. It is valid {until}; {} has its digest.", path.display()));
    Ok(ExitCode::SUCCESS)
}

fn list(path: &Path) -> Result<ExitCode> {
    let file = api_keys::read(path)?;
    let now = SystemTime::now();
    for (id, key) in &file.keys {
        for secret in &key.secrets {
            let state = match secret.end()? {
                None => "does not expire".to_owned(),
                Some(end) if end <= now => "has expired".to_owned(),
                Some(end) => format!("until {}", humantime::format_rfc3339_seconds(end)),
            };
            let scopes = if key.scopes.is_empty() { "-".to_owned() } else { key.scopes.join(" ") };
            let digits = secret.sha256.get(..DIGEST_DIGITS).unwrap_or(&secret.sha256);
            print(&escaped(&format!("{id}  {digits}  {state}  {scopes}")))?;
        }
    }
    if file.keys.values().all(|key| key.secrets.is_empty()) {
        print("there are no keys")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn revoke(id: &str, sha256: Option<&str>, path: &Path) -> Result<ExitCode> {
    let mut gone = Vec::new();
    // Reading first reports a missing file, which `rewrite` would create.
    api_keys::read(path)?;
    rewrite(path, || {
        let mut file = api_keys::read(path)?;
        if let Some(key) = file.keys.get_mut(id) {
            gone = key.secrets.extract_if(.., |one| sha256.is_none_or(|begin| one.sha256.starts_with(begin))).collect();
            if key.secrets.is_empty() {
                file.keys.remove(id);
            }
        }
        text(&file)
    })?;
    if gone.is_empty() {
        print(&format!("there is no such key: {}; `wharf keys list` shows all keys", escaped(id)))?;
        return Ok(ExitCode::FAILURE);
    }
    for one in gone {
        print(&format!("revoked {id} {}", one.sha256.get(..DIGEST_DIGITS).unwrap_or(&one.sha256)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(file: &File) -> Result<String> {
    Ok(format!("{FILE_HEADER}\n{}", toml::to_string(file)?))
}

/// Prints a line to stderr, which is not part of the command's output.
fn eprint_line(line: &str) {
    use std::io::Write;
    // If stderr is closed, the key was printed all the same.
    writeln!(std::io::stderr(), "{line}").ok();
}
