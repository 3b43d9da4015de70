//! `wharf.lock`: which version of each plugin with `source` is loaded, and what the operator has accepted that plugins with `surface =
//! "pinned"` tell models and want to be granted.
//!
//! The file lies next to the config and is made to be reviewed: one line for each tool, resource, template and prompt, so that the
//! difference between two versions of the file is the difference between what models are told.

use std::{collections::BTreeMap, fmt, fs, io, path::Path};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use wharf_base::{
    digest::Digest,
    guard,
    text::{self, quoted},
};

/// The name of the file, in the folder of the config.
pub const FILE_NAME: &str = "wharf.lock";
const VERSION: u32 = 1;
const HEADER: &str = "\
# The versions of the plugins with `source`, and what pinned plugins tell models and want to be granted, as the operator has accepted it.
# `wharf update` and `wharf lock accept ID` show what has changed, ask, and write it here. Accepting is the same as merging a change of this file.
";
/// How many earlier versions of a plugin the file has, to go back to.
const MAX_PREVIOUS: usize = 3;
/// The maximum size of the file.
const MAX_BYTES: u64 = 64 << 20;

/// What a plugin tells models, and what it wants to be granted. Keys: `instructions`, `wants`, or a kind and a name, such as
/// `tool forecast`. Values: JSON in one line, in which characters that people do not see are escaped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Surface(pub BTreeMap<String, String>);

/// The contents of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    version: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    sources: BTreeMap<String, Source>,
    #[serde(default)]
    plugins: BTreeMap<String, Surface>,
}

/// The version of a plugin with `source`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// `source` in the config, for which the version was chosen.
    pub source: String,
    #[serde(flatten)]
    pub release: Release,
    /// The versions before, the last one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous: Vec<Release>,
}

/// One version of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// The name that its signer gave it, if it has one. Another version has to have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version that its signer gave it; without one, the tag in the registry, which nobody vouches for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest of the component, which is what is loaded.
    #[serde(with = "digest")]
    pub digest: Digest,
    /// The size of the component in bytes.
    pub size: u64,
    /// The digest of the manifest in the registry, by which the component is fetched.
    #[serde(default, with = "digest::option", skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Digest>,
    /// Who signed it; `None` if nobody's signature was asked for, because the config vouches for the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
}

/// Digests are written with the name of their algorithm.
mod digest {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use wharf_base::digest::Digest;

    pub fn serialize<S: Serializer>(digest: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("sha256:{digest}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix("sha256:").ok_or_else(|| D::Error::custom("a digest begins with sha256:"))?;
        digits.parse().map_err(D::Error::custom)
    }

    pub mod option {
        use super::{Deserializer, Digest, Serializer};

        pub fn serialize<S: Serializer>(digest: &Option<Digest>, serializer: S) -> Result<S::Ok, S::Error> {
            match digest {
                Some(digest) => super::serialize(digest, serializer),
                None => serializer.serialize_none(),
            }
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Digest>, D::Error> {
            super::deserialize(deserializer).map(Some)
        }
    }
}

/// Whether two texts are the same version: tags may begin with `v`, and have `_` for `+`, which no tag can have.
pub fn same_version(one: &str, other: &str) -> bool {
    let plain = |text: &str| text.strip_prefix('v').unwrap_or(text).replace('_', "+");
    plain(one) == plain(other)
}

impl Source {
    /// Returns the entry after a change to another version, with this one as the previous.
    #[must_use]
    pub fn followed_by(self, source: String, release: Release) -> Self {
        let Self { release: last, mut previous, .. } = self;
        previous.retain(|other| other.digest != release.digest && other.digest != last.digest);
        if last.digest != release.digest {
            previous.insert(0, last);
        }
        previous.truncate(MAX_PREVIOUS);
        Self { source, release, previous }
    }
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
                return Ok(Self { version: VERSION, ..Self::default() });
            }
            about => about.with_context(|| format!("{}: cannot be read", text::path(path)))?,
        };
        guard::check_trusted_file(path, "lock file")?;
        ensure!(about.len() <= MAX_BYTES, "{}: the file has more than {MAX_BYTES} bytes", text::path(path));
        let text = fs::read_to_string(path).with_context(|| format!("{}: cannot be read", text::path(path)))?;
        Self::parse(&text).with_context(|| text::path(path))
    }

    /// Parses the contents of the file.
    pub fn parse(text: &str) -> Result<Self> {
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

    /// Returns the version of a plugin with `source`, if the file has one.
    pub fn source(&self, id: &str) -> Option<&Source> {
        self.sources.get(id)
    }

    /// Returns the plugins with `source` that the file has, by id.
    pub fn sources(&self) -> &BTreeMap<String, Source> {
        &self.sources
    }

    /// Returns the ids of all plugins that the file has anything of; some twice.
    pub fn ids(&self) -> impl Iterator<Item = &String> {
        self.sources.keys().chain(self.plugins.keys())
    }

    /// Sets the version of a plugin with `source`; the version before can be gone back to.
    pub fn set_source(&mut self, id: &str, source: String, release: Release) {
        let entry = match self.sources.remove(id) {
            Some(before) => before.followed_by(source, release),
            None => Source { source, release, previous: Vec::new() },
        };
        self.sources.insert(id.to_owned(), entry);
    }

    /// Removes a plugin. Returns whether the file had it.
    pub fn remove(&mut self, id: &str) -> bool {
        let (source, surface) = (self.sources.remove(id), self.plugins.remove(id));
        source.is_some() || surface.is_some()
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
    fn versions_are_written_and_can_be_gone_back_to() {
        let release = |byte: u8, version: &str| Release {
            name: (byte > 2).then(|| "a".to_owned()),
            version: Some(version.to_owned()),
            digest: [byte; 32].into(),
            size: 5,
            manifest: byte.is_multiple_of(2).then(|| [byte; 32].into()),
            signer: (byte > 1).then(|| "key".to_owned()),
        };
        let mut lock = Lock::parse("version = 1").unwrap();
        for (byte, version) in [(1, "1.0.0"), (2, "1.1.0"), (3, "1.2.0"), (4, "1.3.0"), (5, "1.4.0"), (3, "1.2.0")] {
            lock.set_source("a", "oci://r/a:1".into(), release(byte, version));
        }
        lock.accept("a", surface(&[("wants", "null")]));
        let read = Lock::parse(&lock.text().unwrap()).unwrap();
        assert_eq!(read, lock);
        let source = read.source("a").unwrap();
        let versions: Vec<_> = source.previous.iter().filter_map(|release| release.version.as_deref()).collect();
        assert_eq!((source.release.version.as_deref(), versions), (Some("1.2.0"), vec!["1.4.0", "1.3.0", "1.1.0"]));
        assert!(lock.remove("a") && !lock.remove("a") && lock.accepted("a").is_none());
    }

    #[test]
    fn malformed_files_are_refused() {
        for (text, said) in [
            ("", "version"),
            ("version = 2", "version 2"),
            ("version = 1\nplugin = 1", "unknown field `plugin`"),
            ("version = 1\n[plugins]\na = 1", "expected a map"),
            ("version = 1\n[plugins.a]\nx = 1", "expected a string"),
            ("version = 1\n[sources.a]\nsource='s'\nsize=1\ndigest='00'", "begins with sha256:"),
            ("version = 1\n[sources.a]\nsource='s'\nsize=1\ndigest='sha256:00'", "64 hexadecimal digits"),
            ("version = 1\n[sources.a]\nsource='s'\nsize=1", "missing field `digest`"),
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
