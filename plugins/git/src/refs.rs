//! Writes files of a repository under git's own locks, and refs with their logs. The library's locks need a process id, which WASI does not
//! have.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use gix::{ObjectId, Repository, bstr::BString};
use wharf_sdk::{Error, Result};

use crate::{open, state};

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

/// Returns the branches that other work trees of the repository have checked out, with the folders of these work trees.
pub fn checked_out_elsewhere(repo: &Repository) -> Result<BTreeMap<BString, String>> {
    let (common, own) = (repo.common_dir(), repo.git_dir());
    let mut found = BTreeMap::new();
    let mut look = |git_dir: &Path, work: String| -> Result<()> {
        if let Some(head) = state::text(&git_dir.join("HEAD"))?
            && let Some(branch) = head.trim().strip_prefix("ref: ")
        {
            found.insert(BString::from(branch), work);
        }
        Ok(())
    };
    let is_own = |git_dir: &Path| open::normal(git_dir) == open::normal(own);
    if !is_own(common) {
        let common = open::normal(common);
        look(&common, common.parent().unwrap_or(&common).display().to_string())?;
    }
    let folders = match fs::read_dir(common.join("worktrees")) {
        Ok(folders) => folders,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(Error::failed(format!("the work trees of the repository cannot be listed: {error}"))),
    };
    for folder in folders {
        let folder = folder?.path();
        if !is_own(&folder) {
            let marker = state::text(&folder.join("gitdir"))?.unwrap_or_default();
            let work = Path::new(marker.trim()).parent().unwrap_or(&folder).display().to_string();
            look(&folder, work)?;
        }
    }
    Ok(found)
}

/// Fails if a branch cannot be created because its name is that of a folder of branches, or has the name of a branch as a folder.
fn check_room(repo: &Repository, name: &str) -> Result<()> {
    let taken =
        |other: &str| Err(Error::failed(format!("cannot lock ref '{name}': '{other}' exists; cannot create '{name}'")));
    for (at, _) in name.match_indices('/').skip(2) {
        let above = name.get(..at).unwrap_or_default();
        if repo.try_find_reference(above)?.is_some() {
            return taken(above);
        }
    }
    let folder = format!("{name}/");
    for below in repo.references()?.prefixed(folder.as_str())? {
        let below = below.map_err(|error| Error::failed(error.to_string()))?;
        return taken(&below.name().as_bstr().to_string());
    }
    Ok(())
}

/// Removes folders that branches of the past left behind at the place of a file.
fn clear(file: &Path) {
    if fs::symlink_metadata(file).is_ok_and(|data| data.is_dir()) {
        for entry in fs::read_dir(file).into_iter().flatten().flatten() {
            clear(&entry.path());
        }
        // A folder that is not empty stays, and the file cannot be written.
        fs::remove_dir(file).ok();
    }
}

/// Moves a branch from its old commit to another one.
pub fn update(repo: &Repository, name: &str, entry: &Entry<'_>) -> Result<()> {
    if entry.old.is_none() {
        check_room(repo, name)?;
    }
    let lock = Lock::take(&repo.common_dir().join(name))?;
    let now = match repo.try_find_reference(name)? {
        Some(mut found) => Some(found.peel_to_id()?.detach()),
        None => None,
    };
    if now != entry.old {
        return Err(Error::failed(format!("{name} was changed by another program; look again")));
    }
    clear(&repo.common_dir().join(name));
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
    clear(file);
    OpenOptions::new().append(true).create(true).open(file)?.write_all(&line)?;
    Ok(())
}
