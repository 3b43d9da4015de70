//! The folder with the records of all calls of this user, and its bounds.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock, statvfs};
use wharf_scope::FileIdentity;

use crate::place::Remade;

/// The name of the file in a record's folder that has its lines.
pub(crate) const LINES: &str = "lines";
/// What a record takes besides its lines and the contents of files: its folder and its files.
pub(crate) const RECORD_BYTES: u64 = 8192;
/// How long a record is kept.
const LASTS: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The part of the bound that one call may have.
const PART_OF_CALL: u64 = 4;
/// When there is no room, records go until this part of the bound is free.
const FREE_PART: u64 = 10;
/// What stays free in the file system.
const RESERVE_BYTES: u64 = 512 << 20;
/// The beginning of the names of folders with the records of one plugin, whose id follows.
const OF_PLUGIN: &str = "of-";
/// The names of the files in the store.
const REMADE: &str = "remade";
const LOCK: &str = "lock";

/// Where what calls change is kept.
#[derive(Clone)]
pub struct UndoStore(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub folder: PathBuf,
    most_bytes: u64,
    /// How many bytes are in use, as far as this process knows. `None`: it has not looked yet.
    used: Mutex<Option<u64>>,
    /// Whether it was said that something cannot be kept.
    said: AtomicBool,
}

impl UndoStore {
    /// `folder`: is made when something is kept. `most_bytes`: the bound of all that is kept.
    pub fn new(folder: PathBuf, most_bytes: u64) -> Self {
        Self(Arc::new(Inner { folder, most_bytes, used: Mutex::new(None), said: AtomicBool::new(false) }))
    }
}

impl Inner {
    /// The folder with the records of a plugin.
    pub fn folder_of(&self, plugin: &str) -> PathBuf {
        self.folder.join(format!("{OF_PLUGIN}{plugin}"))
    }

    /// The plugin that a record belongs to.
    pub fn plugin_of(&self, record: &Path) -> String {
        let parent = record.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        parent.strip_prefix(OF_PLUGIN).unwrap_or_default().to_owned()
    }

    /// The most bytes that are kept of one call.
    pub fn most_of_call(&self) -> u64 {
        self.most_bytes / PART_OF_CALL
    }

    /// Makes room for these bytes of a plugin's call. Records give way: the oldest one of the plugin whose records take most. Records of
    /// calls that run stay.
    pub fn room(&self, plugin: &str, bytes: u64) -> io::Result<()> {
        let most = self.most_bytes;
        let mut used = self.used.lock();
        let now = match *used {
            Some(used) if used.saturating_add(bytes) <= most => used,
            _ => self.clear(plugin, bytes)?,
        };
        *used = Some(now.saturating_add(bytes));
        Ok(())
    }

    /// Removes records that are too old, and others until there is room for these bytes of a plugin. Returns the bytes in use then, without these.
    fn clear(&self, plugin: &str, bytes: u64) -> io::Result<u64> {
        // Of each plugin: all bytes, and its records that may go with theirs, the last one first.
        let mut plugins: BTreeMap<String, (u64, Vec<(PathBuf, u64)>)> = BTreeMap::new();
        plugins.entry(plugin.to_owned()).or_default().0 = bytes;
        for folder in folders(&self.folder)?.into_iter().rev() {
            // Another process may remove it at the same time.
            let Ok(files) = fs::read_dir(&folder) else { continue };
            let bytes = files.flatten().filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len());
            let bytes = bytes.sum::<u64>().saturating_add(RECORD_BYTES);
            let is_running = is_running(&folder)?;
            if is_old(&folder) && !is_running {
                removed(&folder)?;
                continue;
            }
            let (all, records) = plugins.entry(self.plugin_of(&folder)).or_default();
            *all = all.saturating_add(bytes);
            if !is_running {
                records.push((folder, bytes));
            }
        }
        let mut used: u64 = plugins.values().map(|(all, _)| all).sum();
        let may_go: u64 = plugins.values().flat_map(|(_, records)| records).map(|(_, bytes)| bytes).sum();
        if used - may_go > self.most_bytes {
            return Err(io::Error::other(
                "what running calls have changed leaves no room for it (`undo_mib` in [limits])",
            ));
        }
        let target = if used > self.most_bytes { self.most_bytes - self.most_bytes / FREE_PART } else { used };
        while used > target {
            let largest = plugins.values_mut().filter(|(_, records)| !records.is_empty()).max_by_key(|(all, _)| *all);
            let Some((all, records)) = largest else { break };
            let Some((folder, bytes)) = records.pop() else { break };
            removed(&folder)?;
            *all -= bytes;
            used -= bytes;
        }
        Ok(used - bytes)
    }

    /// Whether the file system keeps its reserve when so many more bytes are written.
    pub fn keeps_reserve(&self, bytes: u64) -> io::Result<()> {
        let system = statvfs(&self.folder)?;
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        if free < RESERVE_BYTES.saturating_add(bytes) {
            let reserve = RESERVE_BYTES >> 20;
            return Err(io::Error::other(format!(
                "less than {reserve} MiB would be free in {}",
                self.folder.display()
            )));
        }
        Ok(())
    }

    /// Says once that something cannot be kept.
    pub fn cannot(&self, error: &io::Error) {
        if !self.said.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "not all that calls change can be kept in {} for `wharf undo`: {error}",
                self.folder.display()
            );
        }
    }

    /// Returns the folders that were made in the place of others.
    pub fn remade(&self) -> io::Result<Remade> {
        let text = match fs::read(self.folder.join(REMADE)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Remade::new()),
            text => text?,
        };
        // A line that was not written completely is of a folder that nothing was put into yet.
        let lines = text.split(|byte| *byte == b'\n');
        Ok(lines.filter_map(|line| serde_json::from_slice::<(FileIdentity, FileIdentity)>(line).ok()).collect())
    }

    /// Notes that a folder was made in the place of another.
    pub fn add_remade(&self, remade: (FileIdentity, FileIdentity)) -> io::Result<()> {
        let text = format!("\n{}\n", serde_json::to_string(&remade)?);
        let path = self.folder.join(REMADE);
        OpenOptions::new().append(true).create(true).mode(0o600).open(path)?.write_all(text.as_bytes())
    }

    /// Waits until no other process takes something back.
    pub fn lock(&self) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let path = self.folder.join(LOCK);
        let lock = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    }
}

/// Removes a record, unless it is being taken back. Another process may remove it at the same time.
fn removed(record: &Path) -> io::Result<()> {
    let lines = File::open(record.join(LINES));
    if let Ok(lines) = &lines
        && flock(lines, FlockOperation::NonBlockingLockExclusive).is_err()
    {
        return Ok(());
    }
    match fs::remove_dir_all(record) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the folders of all records, the oldest first.
pub(crate) fn folders(store: &Path) -> io::Result<Vec<PathBuf>> {
    let below = |folder: &Path| match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        entries => {
            Ok::<_, io::Error>(entries?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect())
        }
    };
    let mut folders = Vec::new();
    for plugin in below(store)? {
        folders.extend(below(&plugin)?);
    }
    folders.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
    Ok(folders)
}

/// Whether the call of a record has not ended yet, or the record is being taken back.
pub(crate) fn is_running(record: &Path) -> io::Result<bool> {
    let lines = match File::open(record.join(LINES)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        lines => lines?,
    };
    Ok(flock(&lines, FlockOperation::NonBlockingLockShared).is_err())
}

/// Whether a record was kept long enough.
pub(crate) fn is_old(record: &Path) -> bool {
    let name = record.file_name().unwrap_or_default().to_string_lossy();
    let began = u64::from_str_radix(&name, 16).unwrap_or_default();
    Duration::from_micros(now().saturating_sub(began)) > LASTS
}

/// Returns the time, in microseconds since 1970.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}
