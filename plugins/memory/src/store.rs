//! Reads and replaces the file of the graph, so that readers see it whole and no change of another call or program is lost.
//!
//! To change it is to read, change and write it, so only one may do that at a time. WASI has no locks, so there is a lock file
//! beside it, which only one can make. A call can end at any moment and leave that behind; then whoever has watched it for long
//! enough takes it away. A holder that was so slow gives up before that, and writes nothing.

use std::{
    fs::{self, File},
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use wharf_sdk::{Error, Result};

use crate::graph::Graph;

/// How long everybody waits. The longest is less than the time that a call has by default.
#[derive(Clone, Copy)]
pub struct Patience {
    /// After this time a holder writes nothing any more.
    pub held: Duration,
    /// Who has watched the same lock for so long takes it away.
    pub stale: Duration,
    /// Who has waited for so long gives up.
    pub waited: Duration,
}

pub const PATIENCE: Patience =
    Patience { held: Duration::from_secs(3), stale: Duration::from_secs(6), waited: Duration::from_secs(20) };

/// The graph, which is empty as long as there is no file.
pub fn read(file: &Path) -> Result<Graph> {
    match fs::read(file) {
        Ok(bytes) => {
            let damaged =
                |what| Error::failed(format!("{}: {what}. Nothing was changed; mend the file", file.display()));
            let text = String::from_utf8(bytes).map_err(|error| {
                let before = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
                let number = 1 + before.filter(|byte| **byte == b'\n').count();
                damaged(format!("line {number} is damaged: it is not UTF-8"))
            })?;
            Graph::read(&text).map_err(damaged)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Graph::default()),
        Err(error) => Err(at(file, &error)),
    }
}

/// Changes the graph while nobody else does. The file is written only if anything is another then; tells whether it was.
pub fn change<T>(file: &Path, patience: Patience, change: impl FnOnce(&mut Graph) -> Result<T>) -> Result<(T, bool)> {
    let lock = Lock::take(file, patience)?;
    let old = read(file)?;
    let mut new = old.clone();
    let done = change(&mut new)?;
    let changed = new != old;
    if changed {
        lock.replace(&new.write()?)?;
    }
    Ok((done, changed))
}

struct Lock<'a> {
    file: &'a Path,
    /// What stands in the lock file, and in the names of files that its holder makes.
    token: String,
    since: Instant,
    patience: Patience,
}

impl<'a> Lock<'a> {
    fn take(file: &'a Path, patience: Patience) -> Result<Self> {
        let path = beside(file, "lock");
        let began = Instant::now();
        let mut seen = (String::new(), began);
        loop {
            match File::create_new(&path) {
                Ok(mut made) => {
                    let lock = Self { file, token: format!("{:016x}", random()), since: Instant::now(), patience };
                    made.write_all(lock.token.as_bytes()).map_err(|error| at(&path, &error))?;
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
                    beside(file, "lock.old").display()
                )));
            }
            let token = fs::read_to_string(&path).unwrap_or_default();
            if token != seen.0 {
                seen = (token, Instant::now());
            } else if seen.1.elapsed() > patience.stale {
                take_away(file, &path, &seen.0);
                seen.1 = Instant::now();
            }
            thread::sleep(Duration::from_millis(1 + random() % 20));
        }
    }

    /// Whether nobody else can have taken the lock away.
    fn counts(&self) -> bool {
        self.since.elapsed() < self.patience.held
    }

    /// Puts a new file in the place of the old one.
    fn replace(&self, text: &str) -> Result<()> {
        let new = beside(self.file, &self.token);
        let written = File::create_new(&new).and_then(|mut made| {
            made.write_all(text.as_bytes())?;
            made.sync_data()?;
            match self.counts() {
                true => fs::rename(&new, self.file),
                false => {
                    Err(io::Error::new(ErrorKind::TimedOut, "it took too long, and nothing was changed; try again"))
                }
            }
        });
        written.map_err(|error| {
            fs::remove_file(&new).ok();
            at(self.file, &error)
        })
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        if self.counts() {
            // If it stays, it is taken away when it is old.
            fs::remove_file(beside(self.file, "lock")).ok();
        }
    }
}

/// Takes a lock away that nobody holds any more, and what its holder had begun to write. Only one may do that at a time, or the
/// second would take away the lock of somebody who came in between.
fn take_away(file: &Path, lock: &Path, token: &str) {
    let alone = beside(file, "lock.old");
    if File::create_new(&alone).is_err() {
        return;
    }
    if fs::read_to_string(lock).is_ok_and(|now| now == token) {
        fs::remove_file(beside(file, token)).ok();
        fs::remove_file(lock).ok();
    }
    fs::remove_file(&alone).ok();
}

/// A file of this name and more, in the same folder, so that renaming it is one step.
fn beside(file: &Path, more: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(more);
    PathBuf::from(name)
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// An error with the path it is about.
fn at(path: &Path, error: &io::Error) -> Error {
    let what = match error.kind() {
        ErrorKind::NotFound => "there is no such directory".to_owned(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "it is read only here, or a link leads outside".to_owned()
        }
        ErrorKind::IsADirectory => "it is a directory".to_owned(),
        // The number means something only to whoever knows WASI.
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
    };
    Error::failed(format!("{}: {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::graph::Entity;

    fn add(file: &Path, name: String) -> Result<()> {
        let entity = Entity { name, entity_type: "thing".into(), observations: vec![] };
        change(file, PATIENCE, |graph| Ok(graph.create_entities(vec![entity]))).map(drop)
    }

    fn names(folder: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn nothing_that_many_write_at_once_is_lost() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("memory.jsonl");
        thread::scope(|scope| {
            for writer in 0..8 {
                let file = &file;
                scope.spawn(move || (0..25).for_each(|entity| add(file, format!("{writer}-{entity}")).unwrap()));
            }
        });
        assert_eq!(read(&file).unwrap().whole().entities.len(), 8 * 25);
        assert_eq!(names(&folder), ["memory.jsonl"]);
    }

    #[test]
    fn a_lock_that_was_left_is_taken_away_with_what_was_begun() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("memory.jsonl");
        fs::write(beside(&file, "lock"), "left").unwrap();
        fs::write(beside(&file, "left"), "half").unwrap();
        let short = Patience { stale: Duration::from_millis(50), ..PATIENCE };
        let (_, changed) = change(&file, short, |graph| Ok(graph.create_entities(vec![]))).unwrap();
        assert!(!changed);
        assert_eq!(names(&folder), [""; 0]);
    }

    #[test]
    fn who_waits_too_long_is_told_what_to_delete() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("memory.jsonl");
        fs::write(beside(&file, "lock"), "held").unwrap();
        let short = Patience { waited: Duration::from_millis(50), ..PATIENCE };
        let Err(Error::Failed(why)) = change(&file, short, |_| Ok(())) else { panic!("it did not wait") };
        assert!(why.contains("memory.jsonl.lock and "), "{why}");
    }

    #[test]
    fn who_held_it_too_long_writes_nothing() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("memory.jsonl");
        let short = Patience { held: Duration::ZERO, ..PATIENCE };
        let entity = Entity { name: "a".into(), entity_type: "b".into(), observations: vec![] };
        let Err(Error::Failed(why)) = change(&file, short, |graph| Ok(graph.create_entities(vec![entity]))) else {
            panic!("it was written")
        };
        assert!(why.contains("took too long"), "{why}");
        assert_eq!(names(&folder), ["memory.jsonl.lock"]);
    }

    #[test]
    fn a_damaged_file_stays_as_it_is() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("memory.jsonl");
        for (bytes, line) in
            [(b"{\"type\":\"note\"}\n\n{\"type\"".as_slice(), 3), (b"{\"type\":\"note\"}\n\"\xff\"", 2)]
        {
            fs::write(&file, bytes).unwrap();
            let Err(Error::Failed(why)) = add(&file, "a".into()) else { panic!("it was written") };
            assert!(why.contains(&format!("memory.jsonl: line {line} is damaged")), "{why}");
            assert_eq!(fs::read(&file).unwrap(), bytes);
            assert_eq!(names(&folder), ["memory.jsonl"]);
        }
    }
}
