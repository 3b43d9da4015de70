//! What all wharf processes of a user execute or obey, so that the plugins of each are kept from the files of all.
//!
//! The registry is a folder in the state folder, in which each process enters what it protects. There are two kinds of entries. One of a
//! process counts while the process runs, which holds a lock on its file. A lasting one belongs to a config or to the source of a server,
//! and counts as long as that file exists, whether or not a wharf runs: the next start obeys the file again.
//!
//! Each call looks at the time of the folder, which tells whether an entry was added, replaced or removed.

#![expect(clippy::disallowed_methods, reason = "wharf's own files are written and read here")]

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{DirBuilder, File},
    io::{ErrorKind, Write},
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::protected::Protected;
use wharf_base::{
    leading::FolderStamp,
    text::{self, hex},
};

/// The first field of an entry. A later format has another one.
const FORMAT: &[u8] = b"wharf trusts 1";
/// The beginnings of the names of entries.
const LASTING: &str = "of-";
const OF_PROCESS: &str = "process-";

/// What this process has entered, which its own plugins are kept from even where nothing can be written.
static OWN: Mutex<BTreeMap<PathBuf, Protected>> = Mutex::new(BTreeMap::new());
/// How often `OWN` has changed.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// The registry of the user.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    /// The folder to which each process of the user writes what it trusts. `None` if there is no home directory: then a process finds only
    /// what it has entered itself.
    folder: Option<PathBuf>,
}

/// An entry of this process, which counts until this is dropped.
#[derive(Debug)]
pub struct Entered {
    path: PathBuf,
    _locked: File,
}

impl Drop for Entered {
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).ok();
    }
}

/// The state of the registry when it was read.
#[derive(Debug, Default)]
pub struct Seen {
    own: u64,
    folder: Option<FolderStamp>,
}

impl Registry {
    pub fn at(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Whether nothing was entered or removed since it was read.
    pub fn is_as(&self, seen: &Seen) -> bool {
        seen.own == CHANGES.load(Ordering::Acquire)
            && FolderStamp::still(seen.folder, self.folder.as_deref().and_then(FolderStamp::of))
    }

    /// Returns all that counts now.
    pub fn read(&self) -> (Protected, Seen) {
        // The state comes first, so that what changes meanwhile is read again.
        let own = CHANGES.load(Ordering::Acquire);
        let seen = Seen { own, folder: self.folder.as_deref().and_then(FolderStamp::of) };
        let mut all = Protected::default();
        for own in OWN.lock().values() {
            all.and(own);
        }
        for (path, lasting) in self.entries() {
            if (lasting || !is_left(&path))
                && let Ok(bytes) = std::fs::read(&path)
                && let Some((_, entry)) = decoded(&bytes)
            {
                all.and(&entry);
            }
        }
        (all, seen)
    }

    /// Protects something as long as the file `of` exists. The error says why only the plugins of this process are kept from it.
    pub fn keep(&self, of: &Path, protected: &Protected) -> Result<()> {
        remember(of, protected);
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut name = hex(&Sha256::digest(of.as_os_str().as_bytes()));
        name.truncate(32);
        let path = folder.join(format!("{LASTING}{name}"));
        let bytes = encoded(Some(of), protected);
        if std::fs::read(&path).is_ok_and(|before| before == bytes) {
            return Ok(());
        }
        self.put(&path, &bytes).map(drop).with_context(|| text::path(folder))
    }

    /// Protects something until what this returns is dropped, or the process ends. `of`: what it belongs to.
    pub fn enter(&self, of: &Path, protected: &Protected) -> Result<Option<Entered>> {
        remember(of, protected);
        let Some(folder) = &self.folder else { return Ok(None) };
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
        let path = folder.join(format!("{OF_PROCESS}{}-{}", std::process::id(), hex(&number)));
        let locked = self.put(&path, &encoded(None, protected)).with_context(|| text::path(folder))?;
        Ok(Some(Entered { path, _locked: locked }))
    }

    /// Writes an entry, so that a reader finds all of it, and locked, or nothing.
    fn put(&self, path: &Path, bytes: &[u8]) -> Result<File> {
        let folder = path.parent().context("it has no folder")?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        self.tidy();
        let mut new = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
        new.write_all(bytes)?;
        new.as_file().lock()?;
        Ok(new.persist(path).map_err(|error| error.error)?)
    }

    /// Removes the entries of processes that have ended, and of files that do not exist any more.
    fn tidy(&self) {
        for (path, lasting) in self.entries() {
            let is_gone = || {
                let bytes = std::fs::read(&path).ok()?;
                let (of, _) = decoded(&bytes)?;
                std::fs::symlink_metadata(of?).err().filter(|error| error.kind() == ErrorKind::NotFound)
            };
            if if lasting { is_gone().is_some() } else { is_left(&path) } {
                std::fs::remove_file(&path).ok();
            }
        }
    }

    /// The files of all entries, and whether each is a lasting one.
    fn entries(&self) -> impl Iterator<Item = (PathBuf, bool)> {
        let entries = self.folder.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
        entries.filter_map(|entry| {
            let name = entry.file_name();
            let begins = |with: &str| name.as_bytes().starts_with(with.as_bytes());
            (begins(LASTING) || begins(OF_PROCESS)).then(|| (entry.path(), begins(LASTING)))
        })
    }
}

fn remember(of: &Path, protected: &Protected) {
    let mut own = OWN.lock();
    if own.get(of) != Some(protected) {
        own.insert(of.to_owned(), protected.clone());
        CHANGES.fetch_add(1, Ordering::Release);
    }
}

/// Whether the process of an entry has ended, and with it the lock.
fn is_left(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock_shared().is_ok())
}

/// An entry is a list of fields that end with NUL, which no path contains. The first character of a field says what the rest is.
fn encoded(of: Option<&Path>, protected: &Protected) -> Vec<u8> {
    let mut bytes = [FORMAT, b"\0"].concat();
    let fields = |kind: u8, paths: &mut dyn Iterator<Item = &Path>| {
        let one = |path: &Path| [&[kind], path.as_os_str().as_bytes(), b"\0"].concat();
        paths.flat_map(one).collect::<Vec<u8>>()
    };
    bytes.extend(fields(b'o', &mut of.into_iter()));
    bytes.extend(fields(b'f', &mut protected.trusted.files.iter().map(PathBuf::as_path)));
    bytes.extend(fields(b't', &mut protected.trusted.trees.iter().map(PathBuf::as_path)));
    bytes.extend(fields(b's', &mut protected.secret.iter().map(PathBuf::as_path)));
    bytes
}

fn decoded(bytes: &[u8]) -> Option<(Option<PathBuf>, Protected)> {
    let mut fields = bytes.split(|byte| *byte == 0);
    fields.next().filter(|format| *format == FORMAT)?;
    let (mut of, mut all) = (None, Protected::default());
    for (kind, path) in fields.filter_map(<[u8]>::split_first) {
        let path = PathBuf::from(OsStr::from_bytes(path));
        match kind {
            b'o' => of = Some(path),
            b'f' => all.trusted.files.push(path),
            b't' => all.trusted.trees.push(path),
            b's' => all.secret.push(path),
            _ => {}
        }
    }
    Some((of, all))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(path: &str) -> Protected {
        let mut all = Protected::default();
        all.file(path);
        all
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let mut all = file("/a b\n/*");
        all.tree(OsStr::from_bytes(b"/not\xffutf-8"));
        all.secret("/key".into());
        assert_eq!(decoded(&encoded(None, &all)), Some((None, all.clone())));
        assert_eq!(decoded(&encoded(Some(Path::new("/c")), &all)), Some((Some("/c".into()), all)));
        assert_eq!(decoded(b"something else\0f/a\0"), None);
    }

    /// What this process enters counts for it in any case, so another process is played by files.
    #[test]
    fn entries_count_while_a_process_runs_or_a_file_exists() {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::at(Some(folder.path().join("state/trusted")));
        let config = folder.path().join("wharf.toml");
        std::fs::write(&config, "").unwrap();
        let has = |path: &str| {
            registry.entries().any(|(entry, lasting)| {
                let bytes = std::fs::read(&entry).unwrap();
                (lasting || !is_left(&entry)) && decoded(&bytes).unwrap().1.trusted.files == [PathBuf::from(path)]
            })
        };
        let (_, before) = registry.read();
        registry.keep(&config, &file("/kept")).unwrap();
        assert!(!registry.is_as(&before), "a call looks at it again");
        let entered = registry.enter(Path::new("/x"), &file("/entered")).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(registry.folder().unwrap()), 0o700);
        assert!(registry.entries().all(|(path, _)| mode(&path) == 0o600));
        assert!(has("/kept") && has("/entered"));
        let path = entered.as_ref().unwrap().path.clone();
        let left = folder.path().join("left");
        std::fs::copy(&path, &left).unwrap();
        drop(entered);
        assert!(!has("/entered"));
        // As if the process had been killed.
        std::fs::rename(&left, &path).unwrap();
        assert!(!has("/entered") && path.exists());
        std::fs::remove_file(&config).unwrap();
        assert!(has("/kept"), "until the next entry, since a program may be about to replace the file");
        registry.keep(folder.path(), &file("/other")).unwrap();
        assert!(!has("/kept") && has("/other") && !path.exists());
    }
}
