//! Facts about paths that several rooms need: file identity, and the folders through which a path is reached.
//!
//! Two paths are the same place if device and inode agree, however they are spelled; strings are never compared for safety.

#![expect(clippy::disallowed_methods, reason = "facts about paths are read here")]

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

/// The folders through which a path can be changed, whether or not it is there: all folders above it, above each link on its
/// way, and above each other name that a mount gives it.
pub fn folders_leading_to(path: &Path, mounts: &Mounts) -> HashSet<FileId> {
    let mut paths = hops(path);
    paths.push(canonical_as_far(path));
    let others: Vec<PathBuf> = paths.iter().flat_map(|path| mounts.other_names(&canonical_as_far(path))).collect();
    let all = paths.iter().chain(&others).flat_map(|path| path.ancestors());
    all.filter_map(|folder| std::fs::metadata(folder).ok())
        .filter(std::fs::Metadata::is_dir)
        .map(|metadata| FileId::of(&metadata))
        .collect()
}

/// The path without links, as far as it is there.
fn canonical_as_far(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|prefix| Some((std::fs::canonicalize(prefix).ok()?, prefix)));
    match there {
        Some((canonical, prefix)) => canonical.join(path.strip_prefix(prefix).unwrap_or(Path::new(""))),
        None => path.to_path_buf(),
    }
}

/// What is mounted where, so that a folder is known under all its names.
#[derive(Debug, Default)]
pub struct Mounts(Vec<Mount>);

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// Of the file system.
    device: String,
    /// What of the file system is mounted.
    root: PathBuf,
    point: PathBuf,
}

impl Mounts {
    /// As they are now; none where the system does not tell.
    pub fn now() -> Self {
        Self::parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    fn parse(text: &[u8]) -> Self {
        let mount = |line: &[u8]| {
            let mut fields = line.split(|byte| *byte == b' ').skip(2);
            let device = String::from_utf8_lossy(fields.next()?).into_owned();
            Some(Mount { device, root: unescaped(fields.next()?), point: unescaped(fields.next()?) })
        };
        Self(text.split(|byte| *byte == b'\n').filter_map(mount).collect())
    }

    /// Every other path that leads to the same place by way of a mount.
    fn other_names(&self, path: &Path) -> Vec<PathBuf> {
        // Of two at one point, the later one hides the earlier.
        let containing = self.0.iter().filter(|mount| path.starts_with(&mount.point));
        let Some(own) = containing.max_by_key(|mount| mount.point.components().count()) else { return Vec::new() };
        let rest = path.strip_prefix(&own.point).unwrap_or(Path::new(""));
        let place = own.root.join(rest);
        let same = self.0.iter().filter(|mount| mount.device == own.device);
        same.filter_map(|mount| Some(mount.point.join(place.strip_prefix(&mount.root).ok()?)))
            .filter(|other| other != path)
            .collect()
    }
}

/// A path as the kernel writes it: white space and backslashes as octal numbers.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let number = after.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match number.filter(|_| *first == b'\\') {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_on_the_way_counts() {
        let folder = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(folder.path()).unwrap();
        for folder in ["a", "b", "c", "d"] {
            std::fs::create_dir_all(base.join(folder)).unwrap();
        }
        std::fs::write(base.join("c/real"), b"").unwrap();
        std::os::unix::fs::symlink(base.join("b/second"), base.join("a/first")).unwrap();
        std::os::unix::fs::symlink("../c/real", base.join("b/second")).unwrap();
        let folders = folders_leading_to(&base.join("a/first"), &Mounts::default());
        for (folder, leads) in [("a", true), ("b", true), ("c", true), ("d", false), ("", true)] {
            assert_eq!(folders.contains(&FileId::at(&base.join(folder)).unwrap()), leads, "{folder}");
        }
        let missing = folders_leading_to(&base.join("a/no/such/file"), &Mounts::default());
        assert!(missing.contains(&FileId::at(&base.join("a")).unwrap()), "what may be made there counts");
    }

    #[test]
    fn a_folder_is_known_under_all_its_names() {
        let mounts = Mounts::parse(
            b"22 1 8:1 / / rw - ext4 /dev/a rw\n\
              30 22 8:1 /srv/plugins /home/u/my\\040proj rw - ext4 /dev/a rw\n\
              31 22 8:1 /srv /mnt/all rw - ext4 /dev/a rw\n\
              32 22 8:2 / /srv/other rw - ext4 /dev/b rw\n\
              33 22 8:1 /srv/plugins/p.wasm /home/u/file rw - ext4 /dev/a rw\n\
              nonsense\n",
        );
        let names = |path: &str| mounts.other_names(Path::new(path));
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(
            names("/srv/plugins/p.wasm"),
            paths(&["/home/u/my proj/p.wasm", "/mnt/all/plugins/p.wasm", "/home/u/file"])
        );
        assert_eq!(names("/home/u/my proj/x"), paths(&["/srv/plugins/x", "/mnt/all/plugins/x"]));
        assert_eq!(names("/srv/other/x"), paths(&[]), "another file system");
        assert_eq!(names("/etc/x"), paths(&[]));
    }
}
