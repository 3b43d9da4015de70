//! The folder of fetched components, by digest. A component is complete as soon as it has its name: it is written under another name, and
//! renamed last. Next to it lies how it came here, so that signatures can be checked again without a network.

#![expect(
    clippy::disallowed_methods,
    reason = "the store is a folder of the operator, written at the operator's command"
)]

use std::{
    collections::HashSet,
    fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use wharf_base::{digest::Digest, guard, text};
use wharf_config::config::{
    parse_hex32,
    sources::{MAX_RECORD_BYTES, Verdict, in_store},
};
use wharf_scope::MAX_COMPONENT_BYTES;

use super::{manifest::digest, release::Fetched, trust::SignatureFile};

/// The beginning of names of files that are being written.
const UNFINISHED: &str = ".fetching-";
/// After this time, a file that is being written was left by a process that is gone.
const ABANDONED: Duration = Duration::from_hours(24);

pub struct Store {
    folder: PathBuf,
}

/// How a component came into the store.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    /// From where it was fetched.
    pub source: String,
    #[serde(default)]
    pub version: Option<String>,
    #[serde(default, with = "optional_bytes")]
    pub manifest: Option<Vec<u8>>,
    pub signatures: Vec<SignatureFile>,
    /// Whose signatures count by which rules. Those of an earlier record of the same component are kept: they are about the same bytes.
    #[serde(default)]
    pub verdicts: Vec<Verdict>,
}

impl Store {
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of a component, whether it is there or not.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        in_store(&self.folder, digest)
    }

    /// Whether the store has a component, complete and unchanged. Reads all of it.
    pub fn has(&self, digest: &Digest) -> Result<bool> {
        match self.read(digest) {
            Ok(_) => Ok(true),
            Err(_) if !self.path(digest).try_exists()? => Ok(false),
            Err(error) if error.is::<Altered>() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads a component, and checks that it is the one of its name.
    pub fn read(&self, expected: &Digest) -> Result<Vec<u8>> {
        let path = self.path(expected);
        guard::check_trusted_file(&path, "component")?;
        ensure!(fs::metadata(&path)?.len() <= MAX_COMPONENT_BYTES as u64, Altered(text::path(&path)));
        let bytes = fs::read(&path).with_context(|| format!("{}: cannot be read", text::path(&path)))?;
        ensure!(digest(&bytes) == *expected, Altered(text::path(&path)));
        Ok(bytes)
    }

    /// Reads how a component came here.
    pub fn record(&self, digest: &Digest) -> Result<Record> {
        let path = self.path(digest).with_extension("json");
        let name = || text::path(&path);
        guard::check_trusted_file(&path, "record")?;
        ensure!(fs::metadata(&path)?.len() <= MAX_RECORD_BYTES, "{}: too large", name());
        let bytes = fs::read(&path).with_context(|| format!("{}: cannot be read", name()))?;
        serde_json::from_slice(&bytes).with_context(|| format!("{}: malformed; run `wharf lock fetch`", name()))
    }

    /// Stores a component, whose digest was checked, with the verdicts about its signatures. An altered file of its name is replaced.
    pub fn put(&self, source: &str, fetched: &Fetched, verdicts: Vec<Verdict>) -> Result<()> {
        let cannot = || format!("the store {} cannot be written", text::path(&self.folder));
        fs::DirBuilder::new().recursive(true).mode(0o755).create(&self.folder).with_context(cannot)?;
        let mut record = Record {
            source: source.to_owned(),
            version: fetched.version.clone(),
            manifest: fetched.manifest.as_ref().map(|(bytes, _)| bytes.to_vec()),
            signatures: fetched.signatures.clone(),
            verdicts,
        };
        if self.path(&fetched.digest).try_exists()?
            && let Ok(before) = self.record(&fetched.digest)
        {
            add(&mut record.verdicts, before.verdicts);
        }
        let path = self.path(&fetched.digest);
        self.write(&path.with_extension("json"), &serde_json::to_vec(&record)?).with_context(cannot)?;
        self.write(&path, &fetched.component).with_context(cannot)
    }

    /// Adds verdicts to the record of a component.
    pub fn vouch(&self, digest: &Digest, verdicts: Vec<Verdict>) -> Result<()> {
        let mut record = self.record(digest)?;
        if add(&mut record.verdicts, verdicts) {
            let cannot = || format!("the store {} cannot be written", text::path(&self.folder));
            let path = self.path(digest).with_extension("json");
            self.write(&path, &serde_json::to_vec(&record)?).with_context(cannot)?;
        }
        Ok(())
    }

    fn write(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        // Others may read what is public anyway, so that a service can use a store that its operator has filled.
        let mode = PermissionsExt::from_mode(0o644);
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).permissions(mode).tempfile_in(&self.folder)?;
        file.write_all(contents)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        fs::File::open(&self.folder)?.sync_all()
    }

    /// Removes all components but those to keep, and returns their digests and sizes.
    pub fn prune(&self, keep: &HashSet<Digest>) -> Result<Vec<(Digest, u64)>> {
        let cannot = || format!("the store {} cannot be read", text::path(&self.folder));
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(cannot),
        };
        let mut removed = Vec::new();
        for entry in entries {
            let entry = entry.with_context(cannot)?;
            let (name, about) = (entry.file_name(), entry.metadata());
            let about = match about {
                Ok(about) => about,
                // The record of a component that was just removed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error).with_context(cannot),
            };
            let Some(name) = name.to_str().filter(|_| about.is_file()) else { continue };
            if name.starts_with(UNFINISHED) {
                let age = about.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
                if age.is_some_and(|age| age > ABANDONED) {
                    fs::remove_file(entry.path())?;
                }
                continue;
            }
            // Files of other names are not of the store.
            let Some(digits) = name.strip_suffix(".wasm") else { continue };
            let Ok(digest) = parse_hex32("digest", digits).map(Digest::from) else { continue };
            if keep.contains(&digest) {
                continue;
            }
            fs::remove_file(entry.path())?;
            match fs::remove_file(self.path(&digest).with_extension("json")) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => removed.push((digest, about.len())),
            }
        }
        Ok(removed)
    }
}

/// Adds the verdicts that are missing. Returns whether any was.
fn add(to: &mut Vec<Verdict>, verdicts: Vec<Verdict>) -> bool {
    let before = to.len();
    for one in verdicts {
        if !to.contains(&one) {
            to.push(one);
        }
    }
    to.len() > before
}

/// The error for a component that is not the one of its name.
#[derive(Debug)]
struct Altered(String);

impl std::fmt::Display for Altered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: it was changed: its SHA-256 is not its name; `wharf lock fetch` fetches it again", self.0)
    }
}

impl std::error::Error for Altered {}

/// Bytes in JSON, as base64.
mod optional_bytes {
    use super::{Deserialize, Engine, STANDARD, Serialize};

    pub fn serialize<S: serde::Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
        bytes.as_ref().map(|bytes| STANDARD.encode(bytes)).serialize(serializer)
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| STANDARD.decode(text).map_err(serde::de::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn fetched(component: &[u8]) -> Fetched {
        Fetched {
            component: Bytes::copy_from_slice(component),
            digest: digest(component),
            manifest: Some((Bytes::from_static(b"{}"), digest(b"{}"))),
            version: Some("1.0.0".into()),
            signatures: vec![SignatureFile::Bundle("{}".into())],
            created: None,
        }
    }

    #[test]
    fn what_is_stored_is_found_unless_it_was_changed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(&folder.path().join("a/b"));
        let (one, other) = (fetched(b"one"), fetched(b"other"));
        assert!(!store.has(&one.digest).unwrap());
        assert_eq!(store.prune(&HashSet::new()).unwrap(), []);
        let verdict = |signer: &str| Verdict { rule: "key".into(), signer: signer.into(), name: None, version: None };
        store.put("file:/a", &one, vec![verdict("ann")]).unwrap();
        store.put("file:/b", &other, Vec::new()).unwrap();
        store.vouch(&other.digest, vec![verdict("bob")]).unwrap();
        assert_eq!(store.record(&other.digest).unwrap().verdicts, [verdict("bob")]);
        assert_eq!(store.read(&one.digest).unwrap(), b"one");
        let record = store.record(&one.digest).unwrap();
        assert_eq!((record.source.as_str(), record.manifest.as_deref()), ("file:/a", Some(&b"{}"[..])));
        assert_eq!(record.signatures, one.signatures);

        fs::write(store.path(&one.digest), b"evil").unwrap();
        assert!(!store.has(&one.digest).unwrap());
        let error = store.read(&one.digest).unwrap_err().to_string();
        assert!(error.contains("it was changed"), "{error}");
        store.put("file:/a", &one, vec![verdict("cay")]).unwrap();
        assert!(store.has(&one.digest).unwrap());
        assert_eq!(store.record(&one.digest).unwrap().verdicts, [verdict("cay"), verdict("ann")]);

        fs::write(store.folder().join("mine.txt"), b"").unwrap();
        fs::write(store.folder().join(".fetching-x"), b"").unwrap();
        assert_eq!(store.prune(&[one.digest].into()).unwrap(), [(other.digest, 5)]);
        assert!(store.has(&one.digest).unwrap() && !store.has(&other.digest).unwrap());
        assert_eq!(fs::read_dir(store.folder()).unwrap().count(), 4);
    }
}
