//! A lock between calls in different instances, of this wharf process and of others.
//!
//! WASI has no file locks, so the lock is a file next to the one to be changed, which only one call can create. A call can be stopped at
//! any moment and leave its lock file behind. The holder of a lock therefore writes to its lock file regularly (a heartbeat); a waiting
//! call that has seen no change of the lock file for long enough takes the lock over. A holder that was too slow stops before that time,
//! and changes nothing.

use std::{
    cell::Cell,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use wharf_sdk::{Error, Result};

use crate::{at, random, with_suffix};

/// The number of hexadecimal digits of a token.
const TOKEN_DIGITS: usize = 16;
/// The maximum size of a lock file. A larger file was not written by this module.
const MAX_LOCK_BYTES: u64 = 64;

/// Reads the text of a lock file.
fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_LOCK_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The timeouts of a lock. The longest is shorter than the default time limit of a call.
#[derive(Clone, Copy)]
pub struct Patience {
    /// The time after its last heartbeat after which a holder must not change the file any more.
    pub held: Duration,
    /// The time without a heartbeat after which a waiting call takes the lock over.
    pub stale: Duration,
    /// The time after which a waiting call gives up.
    pub waited: Duration,
}

pub struct Lock {
    file: PathBuf,
    /// The unique token at the start of the lock file. It is also the suffix of the temporary file that the holder writes.
    token: String,
    /// The number of heartbeats so far.
    signs: Cell<u64>,
    since: Cell<Instant>,
    patience: Patience,
    inherited: bool,
    left: Cell<bool>,
}

impl Lock {
    /// Waits until no other call holds the lock, and takes it.
    pub fn take(file: &Path, patience: Patience) -> Result<Self> {
        let path = with_suffix(file, ".lock");
        let began = Instant::now();
        let token = format!("{:016x}", random());
        let held = |inherited| {
            let (file, since, signs) = (file.to_path_buf(), Cell::new(Instant::now()), Cell::new(0));
            Self { file, token: token.clone(), signs, since, patience, inherited, left: Cell::new(false) }
        };
        let (mut seen, mut step) = ((String::new(), began), (None, began));
        loop {
            match File::create_new(&path) {
                Ok(mut made) => {
                    let lock = held(false);
                    if let Err(error) = made.write_all(token.as_bytes()) {
                        // The disk is full, say. Nobody is to wait for it.
                        fs::remove_file(&path).ok();
                        return Err(at(&path, &error));
                    }
                    return Ok(lock);
                }
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(at(&path, &error)),
                Err(_) => {}
            }
            if began.elapsed() > patience.waited {
                return Err(Error::failed(format!(
                    "{} is locked by other calls for too long; try again. If no other call is running, delete {} and {}",
                    file.display(),
                    path.display(),
                    with_suffix(file, ".lock.old").display()
                )));
            }
            // A call that was stopped while it took a lock over leaves this file, which would keep all others from doing so.
            let taking = text(&with_suffix(file, ".lock.old")).ok();
            if taking != step.0 {
                step = (taking, Instant::now());
            } else if step.0.is_some() && step.1.elapsed() > patience.stale {
                fs::remove_file(with_suffix(file, ".lock.old")).ok();
            }
            let now = text(&path).unwrap_or_default();
            if now != seen.0 {
                seen = (now, Instant::now());
            } else if seen.1.elapsed() > patience.stale {
                let lock = held(true);
                if inherit(file, &path, &seen.0, &token) {
                    return Ok(lock);
                }
                seen.1 = Instant::now();
            }
            thread::sleep(Duration::from_millis(1 + random() % 20));
        }
    }

    /// Whether the lock was taken over from a call that was stopped, which may have left the file half changed.
    pub fn inherited(&self) -> bool {
        self.inherited
    }

    /// Whether the lock is still valid, which means that no other call can have taken it over.
    pub fn counts(&self) -> bool {
        self.since.get().elapsed() < self.patience.held
    }

    /// Whether the lock is still valid. Writes a heartbeat if one is due, so the lock stays valid as long as this is called often enough.
    pub fn keep(&self) -> bool {
        let elapsed = self.since.get().elapsed();
        if elapsed < self.patience.held / 3 || elapsed >= self.patience.held {
            return elapsed < self.patience.held;
        }
        let path = with_suffix(&self.file, ".lock");
        let began = Instant::now();
        // If a person deleted the lock file, another call may have created it again.
        let own = text(&path).is_ok_and(|now| now.starts_with(&self.token));
        self.signs.set(self.signs.get() + 1);
        if own && fs::write(&path, format!("{} {}", self.token, self.signs.get())).is_ok() && self.counts() {
            self.since.set(began);
            return true;
        }
        false
    }

    /// Replaces the file by a new one, by an atomic rename. A file that is mounted at its path can only be written in place.
    pub fn replace(&self, text: &str) -> Result<()> {
        let new = with_suffix(&self.file, &format!(".{}", self.token));
        let mut written = File::create_new(&new).and_then(|mut made| {
            made.write_all(text.as_bytes())?;
            made.sync_data()?;
            match self.counts() {
                true => fs::rename(&new, &self.file),
                false => {
                    Err(io::Error::new(ErrorKind::TimedOut, "it took too long, and nothing was changed; try again"))
                }
            }
        });
        if written.is_err() {
            fs::remove_file(&new).ok();
        }
        if let Err(error) = &written
            && matches!(error.kind(), ErrorKind::ResourceBusy | ErrorKind::CrossesDevices)
        {
            written = in_place(&self.file, text);
        }
        written.map_err(|error| at(&self.file, &error))
    }

    /// Leaves the lock file in place when this lock is dropped, so that the next call takes it over and repairs the file.
    pub fn leave(&self) {
        self.left.set(true);
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let path = with_suffix(&self.file, ".lock");
        if self.counts() && !self.left.get() && text(&path).is_ok_and(|now| now.starts_with(&self.token)) {
            // If it cannot be removed, another call takes it over when it is stale.
            fs::remove_file(path).ok();
        }
    }
}

/// Writes over a file, and cuts it only afterwards.
fn in_place(file: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(file)?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    file.sync_data()
}

/// Takes over a stale lock, and removes the temporary file of its former holder. The lock file exists at every moment, so no other call can
/// create it in between. Only one call may do this at a time, or a second one would take the lock over from the first.
fn inherit(file: &Path, lock: &Path, seen: &str, token: &str) -> bool {
    let alone = with_suffix(file, ".lock.old");
    let Ok(mut made) = File::create_new(&alone) else {
        return false;
    };
    let unchanged = text(lock).is_ok_and(|now| now == seen);
    if unchanged && made.write_all(token.as_bytes()).is_ok() {
        drop(made);
        // Any program can have written the lock file, so its text is used in a path only if it has the form of a token.
        let is_token =
            |holder: &&str| holder.len() == TOKEN_DIGITS && holder.bytes().all(|byte| byte.is_ascii_hexdigit());
        if let Some(holder) = seen.split(' ').next().filter(is_token) {
            fs::remove_file(with_suffix(file, &format!(".{holder}"))).ok();
        }
        if fs::rename(&alone, lock).is_ok() && text(lock).is_ok_and(|now| now == token) {
            return true;
        }
    }
    fs::remove_file(&alone).ok();
    false
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const PATIENCE: Patience =
        Patience { held: Duration::from_secs(3), stale: Duration::from_secs(6), waited: Duration::from_secs(20) };

    fn names(folder: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn one_holds_it_at_a_time() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("kept");
        fs::write(&file, "0").unwrap();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let lock = Lock::take(&file, PATIENCE).unwrap();
                        let count: u64 = fs::read_to_string(&file).unwrap().parse().unwrap();
                        assert!(lock.keep() && !lock.inherited());
                        fs::write(&file, (count + 1).to_string()).unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_to_string(&file).unwrap(), "200");
        assert_eq!(names(&folder), ["kept"]);
    }

    #[test]
    fn a_lock_that_was_left_is_inherited_without_what_was_begun() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("kept");
        fs::write(with_suffix(&file, ".lock"), "0123456789abcdef 7").unwrap();
        fs::write(with_suffix(&file, ".0123456789abcdef"), "half").unwrap();
        let short = Patience { stale: Duration::from_millis(50), ..PATIENCE };
        let lock = Lock::take(&file, short).unwrap();
        assert!(lock.inherited());
        assert_eq!(names(&folder), ["kept.lock"]);
        assert_eq!(fs::read_to_string(with_suffix(&file, ".lock")).unwrap(), lock.token);
        // A lock that is left again is taken over again.
        lock.leave();
        drop(lock);
        let lock = Lock::take(&file, short).unwrap();
        assert!(lock.inherited());
        drop(lock);
        assert_eq!(names(&folder), [""; 0]);
    }

    #[test]
    fn what_others_wrote_into_it_removes_nothing_and_is_waited_for_once() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("kept");
        for name in ["memo", "lock.old"] {
            fs::write(with_suffix(&file, ".lock"), name).unwrap();
            fs::write(with_suffix(&file, &format!(".{name}")), "of somebody").unwrap();
            let short = Patience { stale: Duration::from_millis(50), ..PATIENCE };
            let lock = Lock::take(&file, short).unwrap();
            assert!(lock.inherited());
            drop(lock);
            assert_eq!(names(&folder), ["kept.memo"], "{name}");
        }
    }

    #[test]
    fn who_gives_signs_of_life_keeps_it() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("kept");
        // A heartbeat is due soon, and is valid for long.
        let due = Patience { held: Duration::from_secs(30), ..PATIENCE };
        let lock = Lock::take(&file, due).unwrap();
        lock.since.set(lock.since.get().checked_sub(Duration::from_secs(15)).unwrap());
        assert!(lock.keep());
        assert_eq!(fs::read_to_string(with_suffix(&file, ".lock")).unwrap(), format!("{} 1", lock.token));
        assert!(lock.since.get().elapsed() < Duration::from_secs(15));
        // Another call has the lock.
        lock.since.set(lock.since.get().checked_sub(Duration::from_secs(15)).unwrap());
        fs::write(with_suffix(&file, ".lock"), "other").unwrap();
        assert!(!lock.keep());
        assert_eq!(fs::read_to_string(with_suffix(&file, ".lock")).unwrap(), "other");
        // The last heartbeat was too long ago.
        lock.since.set(lock.since.get().checked_sub(Duration::from_secs(30)).unwrap());
        assert!(!lock.keep() && !lock.counts());
        drop(lock);
        assert_eq!(names(&folder), ["kept.lock"]);
    }

    #[test]
    fn who_waits_too_long_is_told_what_to_delete() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("kept");
        fs::write(with_suffix(&file, ".lock"), "held").unwrap();
        let short = Patience { waited: Duration::from_millis(50), ..PATIENCE };
        let Err(Error::Failed(why)) = Lock::take(&file, short) else { panic!("it did not wait") };
        assert!(why.contains("kept.lock and ") && why.contains("kept.lock.old"), "{why}");
    }
}
