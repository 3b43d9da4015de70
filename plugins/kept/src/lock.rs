//! A lock that calls in other instances, of this wharf and of any other, wait for.
//!
//! WASI has no locks, so there is a lock file beside the one that is to be changed, which only one can make. A call can end at any
//! moment and leave that behind; then whoever has watched it for long enough makes it its own. A holder that was so slow gives up
//! before that, and changes nothing.

use std::{
    cell::Cell,
    fs::{self, File},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use wharf_sdk::{Error, Result};

use crate::{at, beside, random};

/// A token has so many hexadecimal digits.
const TOKEN_DIGITS: usize = 16;
/// No lock file that was made here has more bytes.
const MAX_LOCK_BYTES: u64 = 64;

/// What stands in a lock file.
fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_LOCK_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// How long everybody waits. The longest is less than the time that a call has by default.
#[derive(Clone, Copy)]
pub struct Patience {
    /// After this time without a sign of life a holder changes nothing any more.
    pub held: Duration,
    /// Who has watched the same lock for so long makes it its own.
    pub stale: Duration,
    /// Who has waited for so long gives up.
    pub waited: Duration,
}

pub struct Lock {
    file: PathBuf,
    /// What the lock file begins with, and the name of the file that its holder makes ends with.
    token: String,
    /// How often its holder gave a sign of life.
    signs: Cell<u64>,
    since: Cell<Instant>,
    patience: Patience,
    inherited: bool,
    left: Cell<bool>,
}

impl Lock {
    /// Waits until nobody else holds it.
    pub fn take(file: &Path, patience: Patience) -> Result<Self> {
        let path = beside(file, ".lock");
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
                    "others keep changing {}; try again. If nobody does, delete {} and {}",
                    file.display(),
                    path.display(),
                    beside(file, ".lock.old").display()
                )));
            }
            // Whoever was cut off when making a lock its own left this, in the way of all others.
            let taking = text(&beside(file, ".lock.old")).ok();
            if taking != step.0 {
                step = (taking, Instant::now());
            } else if step.0.is_some() && step.1.elapsed() > patience.stale {
                fs::remove_file(beside(file, ".lock.old")).ok();
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

    /// Whether somebody held it before who never gave it back, and may have left the file half changed.
    pub fn inherited(&self) -> bool {
        self.inherited
    }

    /// Whether nobody else can have made it its own.
    pub fn counts(&self) -> bool {
        self.since.get().elapsed() < self.patience.held
    }

    /// Whether it still counts. It then goes on to count, if that is asked often enough.
    pub fn keep(&self) -> bool {
        let elapsed = self.since.get().elapsed();
        if elapsed < self.patience.held / 3 || elapsed >= self.patience.held {
            return elapsed < self.patience.held;
        }
        let path = beside(&self.file, ".lock");
        let began = Instant::now();
        // Somebody may have deleted it by hand, and then it can be another's.
        let own = text(&path).is_ok_and(|now| now.starts_with(&self.token));
        self.signs.set(self.signs.get() + 1);
        if own && fs::write(&path, format!("{} {}", self.token, self.signs.get())).is_ok() && self.counts() {
            self.since.set(began);
            return true;
        }
        false
    }

    /// Puts a new file in the place of the old one.
    pub fn replace(&self, text: &str) -> Result<()> {
        let new = beside(&self.file, &format!(".{}", self.token));
        let written = File::create_new(&new).and_then(|mut made| {
            made.write_all(text.as_bytes())?;
            made.sync_data()?;
            match self.counts() {
                true => fs::rename(&new, &self.file),
                false => {
                    Err(io::Error::new(ErrorKind::TimedOut, "it took too long, and nothing was changed; try again"))
                }
            }
        });
        written.map_err(|error| {
            fs::remove_file(&new).ok();
            at(&self.file, &error)
        })
    }

    /// Leaves it to whoever takes it next, because the file cannot be left as it is.
    pub fn leave(&self) {
        self.left.set(true);
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let path = beside(&self.file, ".lock");
        if self.counts() && !self.left.get() && text(&path).is_ok_and(|now| now.starts_with(&self.token)) {
            // If it stays, it is another's when it is old.
            fs::remove_file(path).ok();
        }
    }
}

/// Makes a lock one's own that nobody holds any more, and removes what its holder had begun to write. There is a lock at every moment,
/// so nobody comes in between. Only one may do that at a time, or the second would take it from the first.
fn inherit(file: &Path, lock: &Path, seen: &str, token: &str) -> bool {
    let alone = beside(file, ".lock.old");
    let Ok(mut made) = File::create_new(&alone) else {
        return false;
    };
    let unchanged = text(lock).is_ok_and(|now| now == seen);
    if unchanged && made.write_all(token.as_bytes()).is_ok() {
        drop(made);
        // Anybody can have written the file, so what stands in it is part of a path only if it is a token.
        let is_token =
            |holder: &&str| holder.len() == TOKEN_DIGITS && holder.bytes().all(|byte| byte.is_ascii_hexdigit());
        if let Some(holder) = seen.split(' ').next().filter(is_token) {
            fs::remove_file(beside(file, &format!(".{holder}"))).ok();
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
        fs::write(beside(&file, ".lock"), "0123456789abcdef 7").unwrap();
        fs::write(beside(&file, ".0123456789abcdef"), "half").unwrap();
        let short = Patience { stale: Duration::from_millis(50), ..PATIENCE };
        let lock = Lock::take(&file, short).unwrap();
        assert!(lock.inherited());
        assert_eq!(names(&folder), ["kept.lock"]);
        assert_eq!(fs::read_to_string(beside(&file, ".lock")).unwrap(), lock.token);
        // What is left once more is inherited once more.
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
            fs::write(beside(&file, ".lock"), name).unwrap();
            fs::write(beside(&file, &format!(".{name}")), "of somebody").unwrap();
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
        // A sign of life is due at once, and counts for long.
        let due = Patience { held: Duration::from_secs(30), ..PATIENCE };
        let lock = Lock::take(&file, due).unwrap();
        lock.since.set(lock.since.get().checked_sub(Duration::from_secs(15)).unwrap());
        assert!(lock.keep());
        assert_eq!(fs::read_to_string(beside(&file, ".lock")).unwrap(), format!("{} 1", lock.token));
        assert!(lock.since.get().elapsed() < Duration::from_secs(15));
        // Somebody else has it.
        lock.since.set(lock.since.get().checked_sub(Duration::from_secs(15)).unwrap());
        fs::write(beside(&file, ".lock"), "other").unwrap();
        assert!(!lock.keep());
        assert_eq!(fs::read_to_string(beside(&file, ".lock")).unwrap(), "other");
        // It was silent for too long.
        lock.since.set(lock.since.get().checked_sub(Duration::from_secs(30)).unwrap());
        assert!(!lock.keep() && !lock.counts());
        drop(lock);
        assert_eq!(names(&folder), ["kept.lock"]);
    }

    #[test]
    fn who_waits_too_long_is_told_what_to_delete() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("kept");
        fs::write(beside(&file, ".lock"), "held").unwrap();
        let short = Patience { waited: Duration::from_millis(50), ..PATIENCE };
        let Err(Error::Failed(why)) = Lock::take(&file, short) else { panic!("it did not wait") };
        assert!(why.contains("kept.lock and ") && why.contains("kept.lock.old"), "{why}");
    }
}
