//! What all wharf processes of a user execute or obey, so that the plugins of each are kept from the files of all.
//!
//! The registry is a folder in each state folder, in which each process enters what it protects. There are two kinds of entries. One of a
//! process counts while the process runs, which holds a lock on its file. A lasting one belongs to a config or to the source of a server,
//! and counts as long as that file exists, whether or not a wharf runs: the next start obeys the file again. A file that is gone may come
//! back, for example when another branch is checked out, so the entries of the last hundred such files stay.
//!
//! The environment says where the state folder is. Wharfs with different environments have the one in the home directory in common.
//!
//! Each call looks at the times of the folders, which tell whether an entry was added, replaced or removed.

#![expect(clippy::disallowed_methods, reason = "wharf's own files are written and read here")]

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{DirBuilder, File},
    io::{ErrorKind, Write},
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
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
/// How many lasting entries stay of files that are gone.
const MAX_GONE: usize = 100;

/// What this process has entered, by the names of the entries. Its own plugins are kept from that even where nothing can be written.
static OWN: Mutex<BTreeMap<String, Protected>> = Mutex::new(BTreeMap::new());
/// How often `OWN` has changed.
static CHANGES: AtomicU64 = AtomicU64::new(0);
/// How many entries this process has made.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// The registry of the user.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    /// The folders to which each process of the user writes what it trusts. Without a home directory there is no such folder: then a process
    /// finds only what it has entered itself.
    folders: Vec<PathBuf>,
}

/// An entry of this process, which counts until this is dropped.
#[derive(Debug)]
pub struct Entered {
    name: String,
    files: Vec<(PathBuf, File)>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        OWN.lock().remove(&self.name);
        CHANGES.fetch_add(1, Ordering::Release);
        for (path, _) in &self.files {
            std::fs::remove_file(path).ok();
        }
    }
}

/// The state of the registry when it was read.
#[derive(Debug, Default)]
pub struct Seen {
    own: u64,
    folders: Vec<Option<FolderStamp>>,
}

impl Registry {
    pub fn at(folders: Vec<PathBuf>) -> Self {
        Self { folders }
    }

    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    fn stamps(&self) -> impl Iterator<Item = Option<FolderStamp>> {
        self.folders.iter().map(|folder| FolderStamp::of(folder))
    }

    /// Whether nothing was entered or removed since it was read.
    pub fn is_as(&self, seen: &Seen) -> bool {
        seen.own == CHANGES.load(Ordering::Acquire)
            && seen.folders.len() == self.folders.len()
            && seen.folders.iter().zip(self.stamps()).all(|(before, now)| FolderStamp::still(*before, now))
    }

    /// Returns all that counts now.
    pub fn read(&self) -> (Protected, Seen) {
        // The state comes first, so that what changes meanwhile is read again.
        let own = CHANGES.load(Ordering::Acquire);
        let seen = Seen { own, folders: self.stamps().collect() };
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
        let mut name = hex(&Sha256::digest(of.as_os_str().as_bytes()));
        name.truncate(32);
        let name = format!("{LASTING}{name}");
        remember(&name, protected);
        let bytes = encoded(Some(of), protected);
        self.each(|folder| {
            let path = folder.join(&name);
            let is_same = std::fs::read(&path).is_ok_and(|before| before == bytes);
            // Once the file is gone, the time tells how long ago it was used.
            if is_same && File::open(&path).and_then(|file| file.set_modified(SystemTime::now())).is_ok() {
                return Ok(());
            }
            put(folder, &path, &bytes).map(drop)
        })
        .map(drop)
    }

    /// Protects something until the entry that this returns is dropped, or the process ends. The error says why only the plugins of this
    /// process are kept from it.
    pub fn enter(&self, protected: &Protected) -> (Entered, Result<()>) {
        // Processes of containers with one home directory may have the same number.
        let mut number = [0; 8];
        let random = getrandom::fill(&mut number);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{OF_PROCESS}{}-{count}-{}", std::process::id(), hex(&number));
        remember(&name, protected);
        let bytes = encoded(None, protected);
        let written = self.each(|folder| {
            random.map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
            let path = folder.join(&name);
            put(folder, &path, &bytes).map(|file| (path, file))
        });
        let (files, done) = match written {
            Ok(files) => (files, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        (Entered { name, files }, done)
    }

    /// Writes to all folders. Fails if there are some and none can be written.
    fn each<T>(&self, write: impl Fn(&Path) -> Result<T>) -> Result<Vec<T>> {
        self.tidy();
        let (mut written, mut failed) = (Vec::new(), Ok(()));
        for folder in &self.folders {
            match write(folder).with_context(|| text::path(folder)) {
                Ok(one) => written.push(one),
                Err(error) => failed = Err(error),
            }
        }
        if written.is_empty() { failed.map(|()| written) } else { Ok(written) }
    }

    /// Removes the entries of processes that have ended, and all but the newest of files that do not exist any more.
    fn tidy(&self) {
        let mut gone = Vec::new();
        for (path, lasting) in self.entries() {
            if lasting {
                let (Ok(bytes), Ok(written)) = (std::fs::read(&path), path.metadata().and_then(|file| file.modified()))
                else {
                    continue;
                };
                let of = decoded(&bytes).and_then(|(of, _)| of);
                let missing = of.and_then(|of| std::fs::symlink_metadata(of).err());
                if missing.is_some_and(|error| error.kind() == ErrorKind::NotFound) {
                    gone.push((written, path));
                }
            } else if is_left(&path) {
                std::fs::remove_file(&path).ok();
            }
        }
        gone.sort();
        for (_, path) in gone.iter().rev().skip(MAX_GONE) {
            std::fs::remove_file(path).ok();
        }
    }

    /// The files of all entries, and whether each is a lasting one.
    fn entries(&self) -> impl Iterator<Item = (PathBuf, bool)> {
        let entries = self.folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
        entries.filter_map(|entry| {
            let name = entry.file_name();
            let begins = |with: &str| name.as_bytes().starts_with(with.as_bytes());
            (begins(LASTING) || begins(OF_PROCESS)).then(|| (entry.path(), begins(LASTING)))
        })
    }
}

fn remember(name: &str, protected: &Protected) {
    let mut own = OWN.lock();
    if own.get(name) != Some(protected) {
        own.insert(name.to_owned(), protected.clone());
        CHANGES.fetch_add(1, Ordering::Release);
    }
}

/// Writes an entry, so that a reader finds all of it, and locked, or nothing.
fn put(folder: &Path, path: &Path, bytes: &[u8]) -> Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut new = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
    new.write_all(bytes)?;
    new.as_file().lock()?;
    Ok(new.persist(path).map_err(|error| error.error)?)
}

/// Whether the process of an entry has ended, and with it the lock.
fn is_left(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock_shared().is_ok())
}

/// An entry is a list of fields that end with NUL, which no path contains. The first character of a field says what the rest is. The fuzzer
/// calls this and [`decoded`] too.
#[doc(hidden)]
pub fn encoded(of: Option<&Path>, protected: &Protected) -> Vec<u8> {
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

#[doc(hidden)]
pub fn decoded(bytes: &[u8]) -> Option<(Option<PathBuf>, Protected)> {
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
        let [first, second] = ["first", "second"].map(|name| folder.path().join(name).join("trusted"));
        let registry = Registry::at(vec![first.clone(), second.clone()]);
        let config = folder.path().join("wharf.toml");
        std::fs::write(&config, "").unwrap();
        let has_in = |at: &Path, path: &str| {
            Registry::at(vec![at.to_owned()]).entries().any(|(entry, lasting)| {
                let bytes = std::fs::read(&entry).unwrap();
                (lasting || !is_left(&entry)) && decoded(&bytes).unwrap().1.trusted.files == [PathBuf::from(path)]
            })
        };
        // Another environment names only one of the folders.
        let has = |path: &str| {
            let [one, other] = [&first, &second].map(|at| has_in(at, path));
            assert_eq!(one, other, "{path}");
            one
        };
        let (_, before) = registry.read();
        registry.keep(&config, &file("/kept")).unwrap();
        assert!(!registry.is_as(&before), "a call looks at it again");
        let (entered, done) = registry.enter(&file("/entered"));
        done.unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert!(registry.folders().iter().all(|folder| mode(folder) == 0o700));
        assert!(registry.entries().all(|(path, _)| mode(&path) == 0o600));
        assert!(has("/kept") && has("/entered"));
        assert!(registry.read().0.trusted.files.contains(&"/entered".into()));
        let paths: Vec<PathBuf> = entered.files.iter().map(|(path, _)| path.clone()).collect();
        let left = folder.path().join("left");
        std::fs::copy(&paths[0], &left).unwrap();
        drop(entered);
        assert!(!has("/entered"));
        // As if the process had been killed.
        for path in &paths {
            std::fs::copy(&left, path).unwrap();
        }
        assert!(!has("/entered") && paths[0].exists());
        std::fs::remove_file(&config).unwrap();
        registry.keep(folder.path(), &file("/other")).unwrap();
        assert!(has("/kept") && has("/other"), "the file may come back");
        assert!(!paths[0].exists());
    }

    #[test]
    fn entries_of_files_that_are_gone_are_few() {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::at(vec![folder.path().join("trusted")]);
        for number in 0..MAX_GONE + 10 {
            registry.keep(&folder.path().join(format!("{number}.toml")), &file(&format!("/{number}"))).unwrap();
        }
        registry.keep(folder.path(), &file("/there")).unwrap();
        assert_eq!(registry.entries().count(), MAX_GONE + 1);
        assert!(registry.read().0.trusted.files.contains(&"/there".into()));
    }

    #[test]
    fn what_cannot_be_entered_anywhere_is_said() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let bad = folder.path().join("file/trusted");
        let registry = Registry::at(vec![bad.clone(), folder.path().join("good")]);
        assert!(registry.enter(&file("/a")).1.is_ok());
        let registry = Registry::at(vec![bad]);
        let (entered, done) = registry.enter(&file("/b"));
        assert!(done.is_err() && registry.read().0.trusted.files.contains(&"/b".into()));
        drop(entered);
        assert!(!registry.read().0.trusted.files.contains(&"/b".into()));
        assert!(Registry::default().enter(&file("/c")).1.is_ok());
    }
}
