//! Facts about paths that several rooms need: file identity, and the folders through which a path is reached.
//!
//! Two paths are the same place if device and inode agree, however they are spelled; strings are never compared for safety.

use std::{
    collections::HashSet,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// More links than this on the way to one file lead nowhere good.
const MAX_HOPS: usize = 40;

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

    /// Of what a path leads to, links followed.
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

/// The path itself, and each path its symbolic links lead through, down to where it ends or goes missing. Nothing is
/// resolved ahead: a link in the middle of a link's target counts too.
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

/// The folders through which a path can be changed: all folders above it and above each link on its way.
pub fn folders_leading_to(path: &Path) -> HashSet<FileId> {
    let mut folders = HashSet::new();
    let mut paths = hops(path);
    paths.extend(std::fs::canonicalize(path));
    for path in paths {
        for folder in path.ancestors() {
            match std::fs::metadata(folder) {
                Ok(metadata) if metadata.is_dir() => {
                    folders.insert(FileId::of(&metadata));
                }
                _ => {}
            }
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_on_the_way_counts() {
        let base =
            std::fs::canonicalize(std::env::temp_dir()).unwrap().join(format!("wharf-paths-{}", std::process::id()));
        for folder in ["a", "b", "c", "d"] {
            std::fs::create_dir_all(base.join(folder)).unwrap();
        }
        std::fs::write(base.join("c/real"), b"").unwrap();
        std::os::unix::fs::symlink(base.join("b/second"), base.join("a/first")).unwrap();
        std::os::unix::fs::symlink("../c/real", base.join("b/second")).unwrap();
        let folders = folders_leading_to(&base.join("a/first"));
        for (folder, leads) in [("a", true), ("b", true), ("c", true), ("d", false), ("", true)] {
            assert_eq!(folders.contains(&FileId::at(&base.join(folder)).unwrap()), leads, "{folder}");
        }
        std::fs::remove_dir_all(base).unwrap();
    }
}
