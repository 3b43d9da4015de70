//! Facts about paths that several modules need: file identity, and the folders through which a path is reached.
//!
//! Two paths lead to the same place if device and inode agree, however they are spelled. So security checks never compare paths as
//! they are spelled: they compare identities, or paths whose links are resolved.

#![expect(clippy::disallowed_methods, reason = "facts about paths are read here")]

use std::{
    collections::HashSet,
    fs::{File, FileType},
    io::ErrorKind,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
};

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

/// A cache of the folders through which paths can be changed. They are determined again only when something on the way has changed:
/// checking that takes a tenth of the time of following every link and mount.
#[derive(Debug, Default)]
pub struct Leading {
    known: Option<Known>,
    watch: MountsWatch,
    mounts: Mounts,
}

#[derive(Debug)]
struct Known {
    paths: Vec<PathBuf>,
    folders: Arc<HashSet<FileId>>,
    /// Every path on the way, and what was at it.
    seen: Vec<(PathBuf, There)>,
}

/// What is at a path: its identity, its kind, and its target if it is a link. Kind and target are compared too, because a replacement
/// of a file may get the same inode number.
type There = Option<(FileId, FileType, Option<PathBuf>)>;

fn there(path: &Path) -> There {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    let leads = metadata.is_symlink().then(|| std::fs::read_link(path).ok()).flatten();
    Some((FileId::of(&metadata), metadata.file_type(), leads))
}

impl Leading {
    /// Returns the folders through which any of the paths can be changed now.
    pub fn to<'a>(&mut self, paths: impl Iterator<Item = &'a PathBuf> + Clone) -> Arc<HashSet<FileId>> {
        let remounted = self.watch.changed();
        if let Some(known) = &self.known
            && !remounted
            && known.paths.iter().eq(paths.clone())
            && known.holds()
        {
            return Arc::clone(&known.folders);
        }
        self.known = None;
        let mut all = self.ways(paths.clone());
        let seen = all.1.iter().map(|path| (path.clone(), there(path))).collect();
        let folders = Arc::new(folders_of(&all.1));
        let known = Known { paths: paths.clone().cloned().collect(), folders: Arc::clone(&folders), seen };
        let again = self.ways(paths);
        all.0 &= again.0;
        // If something changed while the folders were being found, or the mounts could not be read, the folders are used this
        // once, but not cached.
        if all.0 && again.1 == all.1 && known.holds() {
            self.known = Some(known);
        }
        folders
    }

    /// Returns whether the mounts could be read, and every path on the way to the paths. Without new mounts, the previous ones are used.
    fn ways<'a>(&mut self, paths: impl Iterator<Item = &'a PathBuf>) -> (bool, Vec<PathBuf>) {
        let mounts = Mounts::now();
        let is_known = mounts.is_ok();
        if let Ok(mounts) = mounts {
            self.mounts = mounts;
        }
        let mut all: Vec<PathBuf> = paths.flat_map(|path| ways_to(path, &self.mounts)).collect();
        all.sort();
        all.dedup();
        (is_known, all)
    }
}

impl Known {
    fn holds(&self) -> bool {
        self.seen.iter().all(|(path, was)| there(path) == *was)
    }
}

/// The folders through which a path can be changed, whether or not it exists.
#[cfg(test)]
fn folders_leading_to(path: &Path, mounts: &Mounts) -> HashSet<FileId> {
    folders_of(&ways_to(path, mounts))
}

fn folders_of(paths: &[PathBuf]) -> HashSet<FileId> {
    let there = paths.iter().filter_map(|path| std::fs::metadata(path).ok());
    there.filter(std::fs::Metadata::is_dir).map(|metadata| FileId::of(&metadata)).collect()
}

/// The path, each link on its way, each other name that a mount gives one of these, and all folders above them.
fn ways_to(path: &Path, mounts: &Mounts) -> Vec<PathBuf> {
    let mut paths = hops(path);
    paths.push(canonical_as_far(path));
    let others: Vec<PathBuf> = paths.iter().flat_map(|path| mounts.other_names(&canonical_as_far(path))).collect();
    paths.iter().chain(&others).flat_map(|path| path.ancestors()).map(Path::to_path_buf).collect()
}

/// The path with its links resolved, as far as it exists.
fn canonical_as_far(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|prefix| Some((std::fs::canonicalize(prefix).ok()?, prefix)));
    match there {
        Some((canonical, prefix)) => canonical.join(path.strip_prefix(prefix).unwrap_or(Path::new(""))),
        None => path.to_path_buf(),
    }
}

/// Notices when something is mounted or unmounted.
#[derive(Debug, Default)]
struct MountsWatch(Option<std::fs::File>);

impl MountsWatch {
    /// Whether something may have been mounted or unmounted since the last call. Always false where the system does not list its
    /// mounts.
    fn changed(&mut self) -> bool {
        let Some(file) = &self.0 else {
            let opened = std::fs::File::open(MOUNTS);
            let has_none = opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound);
            self.0 = opened.ok();
            return !has_none;
        };
        // The kernel reports each change once for each open file.
        let mut asked = [PollFd::new(file, PollFlags::PRI)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut asked, Some(&now)).is_err() || asked.iter().any(|asked| !asked.revents().is_empty())
    }
}

const MOUNTS: &str = "/proc/self/mountinfo";

/// The mounts of the system, so that a folder is recognized under all its names.
#[derive(Debug, Default)]
struct Mounts(Vec<Mount>);

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// The device of the file system.
    device: String,
    /// The folder of the file system that is mounted.
    root: PathBuf,
    /// Where it is mounted.
    point: PathBuf,
}

impl Mounts {
    /// Reads the current mounts. Empty on systems that do not list them.
    fn now() -> std::io::Result<Self> {
        match std::fs::read(MOUNTS) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            read => read.map(|text| Self::parse(&text)),
        }
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
        // Of two mounts at one point, the later one hides the earlier, and `max_by_key` gives the later one.
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

/// Decodes a path as the kernel writes it, with white space and backslashes as octal numbers.
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
        assert!(
            missing.contains(&FileId::at(&base.join("a")).unwrap()),
            "a folder counts if the file could be created in it"
        );
    }

    #[test]
    fn what_changes_on_the_way_is_seen_the_next_time() {
        let folder = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(folder.path()).unwrap();
        for name in ["a", "b"] {
            std::fs::create_dir(base.join(name)).unwrap();
            std::fs::write(base.join(name).join("file"), b"").unwrap();
        }
        let [a, b] = ["a", "b"].map(|name| FileId::at(&base.join(name)).unwrap());
        let link = |to: &str| {
            std::fs::remove_file(base.join("link")).ok();
            std::os::unix::fs::symlink(to, base.join("link")).unwrap();
        };
        let paths = [base.join("link/file")];
        let mut leading = Leading::default();
        let mut leads = || {
            let folders = leading.to(paths.iter());
            (folders.contains(&a), folders.contains(&b))
        };
        assert_eq!(leads(), (false, false), "it does not exist");
        // A new link may well get the inode number of the one before.
        for _ in 0..50 {
            link("a");
            assert_eq!(leads(), (true, false));
            link("b");
            assert_eq!(leads(), (false, true));
        }
        std::fs::rename(base.join("b"), base.join("c")).unwrap();
        assert_eq!(leads(), (false, false));
        std::fs::rename(base.join("c"), base.join("b")).unwrap();
        assert_eq!(leads(), (false, true));
        let other = [base.join("a/file")];
        let folders = leading.to(other.iter());
        assert!(folders.contains(&a) && !folders.contains(&b), "other paths");
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
