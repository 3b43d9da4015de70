//! `wharf.lock`: what the operator has accepted that plugins with `surface = "pinned"` tell models, and want to be granted.
//!
//! The file lies next to the config and is made to be reviewed: one line for each tool, resource, template and prompt, so that the
//! difference between two versions of the file is the difference between what models are told.

use std::{collections::BTreeMap, fmt, fs, io, path::Path};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use wharf_base::{
    guard,
    text::{self, quoted},
};

/// The name of the file, in the folder of the config.
pub const FILE_NAME: &str = "wharf.lock";
const VERSION: u32 = 1;
const HEADER: &str = "\
# What the plugins with `surface = \"pinned\"` tell models and want to be granted, as the operator has accepted it.
# `wharf accept ID` shows what has changed, asks, and writes it here. Accepting is the same as merging a change of this file.
";
/// The maximum size of the file.
const MAX_BYTES: u64 = 64 << 20;

/// What a plugin tells models, and what it wants to be granted. Keys: `instructions`, `wants`, or a kind and a name, such as
/// `tool forecast`. Values: JSON in one line, in which characters that people do not see are escaped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Surface(pub BTreeMap<String, String>);

/// The contents of the file.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    version: u32,
    #[serde(default)]
    plugins: BTreeMap<String, Surface>,
}

/// One difference between two surfaces.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference<'a> {
    key: &'a str,
    pub before: Option<&'a str>,
    pub now: Option<&'a str>,
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, many) = match (self.before, self.now) {
            (None, _) => ("is new", "are new"),
            (_, None) => ("is gone", "are gone"),
            _ => ("has changed", "have changed"),
        };
        match self.key.split_once(' ') {
            // A name is untrusted text.
            Some((kind, name)) => write!(formatter, "{kind} {} {one}", quoted(name)),
            None => write!(formatter, "its {} {many}", self.key),
        }
    }
}

impl Surface {
    /// Returns the differences from this surface to another one.
    pub fn differences<'a>(&'a self, now: &'a Self) -> Vec<Difference<'a>> {
        let mut keys: Vec<&String> = self.0.keys().chain(now.0.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        let both = keys.into_iter().map(|key| Difference {
            key,
            before: self.0.get(key).map(String::as_str),
            now: now.0.get(key).map(String::as_str),
        });
        both.filter(|one| one.before != one.now).collect()
    }
}

impl Lock {
    /// Reads the file. A file that does not exist has accepted nothing. Other users must not be able to change the file.
    #[expect(clippy::disallowed_methods, reason = "a file of the operator, whose permissions are checked")]
    pub fn read(path: &Path) -> Result<Self> {
        let about = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { version: VERSION, plugins: BTreeMap::new() });
            }
            about => about.with_context(|| format!("{}: cannot be read", text::path(path)))?,
        };
        guard::check_trusted_file(path, "lock file")?;
        ensure!(about.len() <= MAX_BYTES, "{}: the file has more than {MAX_BYTES} bytes", text::path(path));
        let text = fs::read_to_string(path).with_context(|| format!("{}: cannot be read", text::path(path)))?;
        Self::parse(&text).with_context(|| text::path(path))
    }

    fn parse(text: &str) -> Result<Self> {
        let lock: Self = toml::from_str(text).map_err(|error| anyhow::anyhow!("{}", error.to_string().trim_end()))?;
        ensure!(
            lock.version == VERSION,
            "the file has version {}, and this wharf reads version {VERSION}; use a newer wharf",
            lock.version
        );
        Ok(lock)
    }

    /// Returns what was accepted of a plugin, if anything was.
    pub fn accepted(&self, id: &str) -> Option<&Surface> {
        self.plugins.get(id)
    }

    /// Accepts what a plugin tells models and wants.
    pub fn accept(&mut self, id: &str, surface: Surface) {
        self.plugins.insert(id.to_owned(), surface);
    }

    /// Returns the contents for the file.
    pub fn text(&self) -> Result<String> {
        Ok(format!("{HEADER}{}", toml::to_string(self)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surface(entries: &[(&str, &str)]) -> Surface {
        Surface(entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn what_was_written_is_read() {
        let mut lock = Lock::parse("version = 1").unwrap();
        assert_eq!(lock.accepted("a"), None);
        let accepted = surface(&[("tool x", r#"{"description":"a \"b\" 'c' \u202e"}"#), ("wants", "null")]);
        lock.accept("a", accepted.clone());
        let text = lock.text().unwrap();
        assert_eq!(text.lines().filter(|line| line.starts_with("\"tool x\" = ")).count(), 1, "{text}");
        assert_eq!(Lock::parse(&text).unwrap().accepted("a"), Some(&accepted));
    }

    #[test]
    fn malformed_files_are_refused() {
        for (text, said) in [
            ("", "version"),
            ("version = 2", "version 2"),
            ("version = 1\nplugin = 1", "unknown field `plugin`"),
            ("version = 1\n[plugins]\na = 1", "expected a map"),
            ("version = 1\n[plugins.a]\nx = 1", "expected a string"),
        ] {
            let error = format!("{:#}", Lock::parse(text).unwrap_err());
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn differences_are_named() {
        let before = surface(&[("instructions", "\"a\""), ("tool x", "1"), ("tool y", "1")]);
        let now = surface(&[("instructions", "\"a\""), ("tool y", "2"), ("tool z\u{202e}", "1")]);
        let said: Vec<String> = before.differences(&now).iter().map(ToString::to_string).collect();
        assert_eq!(said, ["tool \"x\" is gone", "tool \"y\" has changed", "tool \"z\\u{202e}\" is new"]);
        assert!(before.differences(&before).is_empty());
    }
}
