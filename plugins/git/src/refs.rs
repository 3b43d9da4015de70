//! Writes files of a repository under git's own locks, and refs with their logs. The library's locks need a process id, which WASI does not
//! have.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use gix::{ObjectId, Repository};
use wharf_sdk::{Error, Result};

/// How long to wait for a lock that another program holds.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// The lock of a file. The text written to the lock file replaces the file when the change is committed.
pub struct Lock {
    file: PathBuf,
    lock: PathBuf,
    new: File,
    done: bool,
}

impl Lock {
    pub fn take(file: &Path) -> Result<Self> {
        let mut name = file.as_os_str().to_owned();
        name.push(".lock");
        let lock = PathBuf::from(name);
        let failed = |error: std::io::Error| Error::failed(format!("{} cannot be written: {error}", file.display()));
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let began = Instant::now();
        loop {
            match File::create_new(&lock) {
                Ok(new) => return Ok(Self { file: file.to_path_buf(), lock, new, done: false }),
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
                Err(_) if began.elapsed() > PATIENCE => {
                    return Err(Error::failed(format!(
                        "another program holds {}; if none is running, delete it",
                        lock.display()
                    )));
                }
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    pub fn commit(mut self, content: &[u8]) -> Result<()> {
        let failed =
            |error: std::io::Error| Error::failed(format!("{} cannot be written: {error}", self.file.display()));
        self.new.write_all(content).and_then(|()| self.new.sync_data()).map_err(failed)?;
        fs::rename(&self.lock, &self.file).map_err(failed)?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.done {
            fs::remove_file(&self.lock).ok();
        }
    }
}

/// An entry of a reflog.
pub struct Entry<'a> {
    pub old: Option<ObjectId>,
    pub new: ObjectId,
    pub who: &'a gix::actor::Signature,
    pub message: &'a str,
}

/// Moves a branch from its old commit to another one.
pub fn update(repo: &Repository, name: &str, entry: &Entry<'_>) -> Result<()> {
    let lock = Lock::take(&repo.common_dir().join(name))?;
    let now = match repo.try_find_reference(name)? {
        Some(mut found) => Some(found.peel_to_id()?.detach()),
        None => None,
    };
    if now != entry.old {
        return Err(Error::failed(format!("{name} was changed by another program; look again")));
    }
    lock.commit(format!("{}\n", entry.new).as_bytes())?;
    log(&repo.common_dir().join("logs").join(name), entry)
}

/// Sets HEAD to a branch, `ref: refs/heads/…`, or to an id.
pub fn set_head(repo: &Repository, to: &str, entry: &Entry<'_>) -> Result<()> {
    Lock::take(&repo.git_dir().join("HEAD"))?.commit(format!("{to}\n").as_bytes())?;
    log_head(repo, entry)
}

pub fn log_head(repo: &Repository, entry: &Entry<'_>) -> Result<()> {
    log(&repo.git_dir().join("logs/HEAD"), entry)
}

fn log(file: &Path, entry: &Entry<'_>) -> Result<()> {
    let old = entry.old.unwrap_or_else(|| entry.new.kind().null());
    let mut line = format!("{old} {} ", entry.new).into_bytes();
    let mut buffer = gix::date::parse::TimeBuf::default();
    entry.who.to_ref(&mut buffer).write_to(&mut line)?;
    line.extend(format!("\t{}\n", entry.message.lines().next().unwrap_or_default()).into_bytes());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new().append(true).create(true).open(file)?.write_all(&line)?;
    Ok(())
}
