//! Facts about paths that several modules need: file identity, and the links through which a path is reached.
//!
//! Two paths lead to the same place if device and inode agree, however they are spelled. So security checks never compare paths as
//! they are spelled: they compare identities, or paths whose links are resolved.

#![expect(clippy::disallowed_methods, reason = "facts about paths are read here")]

use std::{
    fs::File,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustix::fs::OFlags;

/// The maximum number of links that are followed on the way to one file, so that following a cycle of links terminates.
const MAX_HOPS: usize = 40;

/// Whether there is a folder at a path. Links are followed.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

/// Opens a regular file for reading; `None` if something else is at the path. A pipe does not block the caller.
pub fn open_regular(path: &Path) -> std::io::Result<Option<File>> {
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Returns the path of an open file or folder, as the system knows it now.
pub fn of_open(file: &File) -> std::io::Result<PathBuf> {
    #[cfg(target_vendor = "apple")]
    let path = {
        use std::os::unix::ffi::OsStringExt;
        PathBuf::from(std::ffi::OsString::from_vec(rustix::fs::getpath(file)?.into_bytes()))
    };
    #[cfg(not(target_vendor = "apple"))]
    let path = {
        use std::os::fd::AsRawFd;
        std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?
    };
    Ok(path)
}

/// The identity of a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub fn of(metadata: &std::fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// The identity of what a path leads to. Links are followed.
    pub fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| Self::of(&metadata))
    }
}

/// Enough of a file's state to see that it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    id: FileId,
    pub length: u64,
    modified: Option<SystemTime>,
    changed: (i64, i64),
}

impl Stamp {
    pub fn of(path: &Path) -> std::io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self {
            id: FileId::of(&metadata),
            length: metadata.len(),
            modified: metadata.modified().ok(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// The path itself, and each path its symbolic links lead through, down to where it ends or goes missing. Links are followed
/// one at a time, so a link in the middle of another link's target is found too.
pub fn hops(path: &Path) -> Vec<PathBuf> {
    let mut seen = vec![path.to_path_buf()];
    let mut at = 0;
    while let Some(current) = seen.get(at).cloned() {
        at += 1;
        for prefix in current.ancestors() {
            let Ok(target) = std::fs::read_link(prefix) else { continue };
            let rest = current.strip_prefix(prefix).unwrap_or(Path::new(""));
            let mut next = prefix.parent().unwrap_or(Path::new("/")).join(target);
            if !rest.as_os_str().is_empty() {
                next.push(rest);
            }
            if !seen.contains(&next) && seen.len() < MAX_HOPS {
                seen.push(next);
            }
        }
    }
    seen
}

/// Where a path leads, or the path itself if it leads nowhere.
pub fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.components().collect())
}

/// The symbolic links on the way to a path.
pub fn links(path: &Path) -> Vec<PathBuf> {
    let is_link = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    let mut links: Vec<PathBuf> = hops(path)
        .iter()
        .flat_map(|hop| hop.ancestors())
        .filter(|prefix| is_link(prefix))
        .map(Path::to_path_buf)
        .collect();
    links.sort();
    links.dedup();
    links
}

/// Returns the path with its links resolved, as far as it exists.
pub fn canonical_as_far(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|prefix| Some((std::fs::canonicalize(prefix).ok()?, prefix)));
    match there {
        Some((canonical, prefix)) => canonical.join(path.strip_prefix(prefix).unwrap_or(Path::new(""))),
        None => path.to_path_buf(),
    }
}
