//! Files and folders of the cache in which servers are built: how they are written, when each was last used, and its removal.

#![expect(clippy::disallowed_methods, reason = "works on files in the cache")]

use std::{
    fs::{self, File},
    io::ErrorKind,
    os::unix::fs::DirBuilderExt,
    path::Path,
    time::SystemTime,
};

use anyhow::{Context, Result};

use super::locks;
use wharf_base::{failed::OrFailed, text};

/// The file whose presence says that packages are installed.
pub const READY: &str = ".ready";
/// The longest name of a server that is read.
const MAX_NAME_BYTES: u64 = 4096;

/// Notes that a folder is used now, and for which server. It is used as well if that cannot be noted.
///
/// The name is in the file of the lock, which is next to the folder, because what is built may write into the folder.
pub fn note(folder: &Path, server: Option<&str>) {
    use std::io::Write;
    let Ok(mut lock) = File::options().write(true).open(locks::path(folder)) else { return };
    if let Some(server) = server
        && lock.set_len(0).is_ok()
    {
        lock.write_all(server.as_bytes()).ok();
    }
    lock.set_modified(SystemTime::now()).ok();
}

/// Returns which server is built in a folder.
pub fn server(folder: &Path) -> Option<String> {
    use std::io::Read;
    let mut name = String::new();
    File::open(locks::path(folder)).ok()?.take(MAX_NAME_BYTES).read_to_string(&mut name).ok()?;
    Some(name).filter(|name| !name.is_empty())
}

/// Returns when a folder was last used.
pub fn used(folder: &Path) -> Option<SystemTime> {
    fs::metadata(locks::path(folder)).or_else(|_| fs::metadata(folder)).and_then(|metadata| metadata.modified()).ok()
}

/// Makes a folder that only this user may enter, and those above it.
pub fn make_folder(folder: &Path) -> Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("{}: cannot be created", text::path(folder))).or_failed()
}

/// Returns the text of a file, or `None` if it cannot be read.
pub fn reads(file: &Path) -> Option<String> {
    fs::read_to_string(file).ok()
}

/// Writes a file whole or not at all.
pub fn put(file: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    use std::io::Write;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let write = || {
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(contents.as_ref())?;
        new.persist(file).map_err(|error| error.error)
    };
    write().with_context(|| format!("{}: cannot be written", text::path(file))).or_failed().map(drop)
}

pub fn gone(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(error).with_context(|| text::path(file)).or_failed()
        }
        _ => Ok(()),
    }
}

/// Removes a folder, unless a build uses it. Returns whether it is removed.
pub fn remove(folder: &Path) -> Result<bool> {
    let Some(_lock) = locks::of_unused(folder)? else { return Ok(false) };
    // Nothing takes for complete what is left if this is stopped.
    let removed = folder.with_extension("removed");
    let all = || {
        // It is one whose removal was stopped.
        if folder != removed {
            if removed.exists() {
                fs::remove_dir_all(&removed)?;
            }
            fs::rename(folder, &removed)?;
        }
        fs::remove_dir_all(&removed)
    };
    all().with_context(|| format!("{}: cannot be removed", text::path(folder)))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_build_uses_is_not_removed() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("server-1");
        fs::create_dir(&folder).unwrap();
        // What is built may put anything into its folder.
        std::os::unix::fs::symlink("/etc/passwd", folder.join("server")).unwrap();
        fs::create_dir(folder.join(READY)).unwrap();
        let build = locks::of_unused(&folder).unwrap().unwrap();
        assert_eq!((remove(&folder).unwrap(), folder.exists()), (false, true));
        note(&folder, Some("/srv/a/long/server.py"));
        note(&folder, Some("/srv/server.py"));
        note(&folder, None);
        assert_eq!(server(&folder).as_deref(), Some("/srv/server.py"));
        drop(build);
        assert_eq!((remove(&folder).unwrap(), folder.exists()), (true, false));
    }

    #[test]
    fn a_use_is_noted_where_a_lock_is() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("server-1");
        fs::create_dir(&folder).unwrap();
        let long_ago = SystemTime::UNIX_EPOCH;
        drop(locks::of_unused(&folder).unwrap());
        File::options().write(true).open(locks::path(&folder)).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(used(&folder), Some(long_ago));
        note(&folder, None);
        assert!(used(&folder).unwrap() > long_ago);
    }
}
