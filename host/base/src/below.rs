//! Access to files below an untrusted folder, such as a cloned project, without path traversal. Paths are opened relative to the open
//! folder, one name after the other, and no link is followed, so nothing outside of the folder is ever read or written.

use std::{
    ffi::OsStr,
    fs::File,
    io::{Read, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{OpenOptionsExt, PermissionsExt, symlink},
    },
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, readlinkat, renameat, statat, unlinkat},
    io::Errno,
};

use super::{failed::OrFailed, random_id, text};

/// The flags for opening a folder. A link in its place is an error.
const FOLDER_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The flags for reading a file. Without `NONBLOCK`, a pipe without a writer would block the caller before it is refused.
const FILE_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// The flags for creating a file.
const NEW_FILE_FLAGS: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The limits of a copy.
#[derive(Debug, Clone, Copy)]
pub struct CopyLimits {
    pub entries: usize,
    pub bytes: u64,
}

/// An open folder.
#[derive(Debug)]
pub struct Below {
    folder: OwnedFd,
    /// The path that the user gave, for errors.
    shown: PathBuf,
}

impl Below {
    /// Opens a folder that the user names. Links on the way to it are followed.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let opened = openat(CWD, path, FOLDER_FLAGS.difference(OFlags::NOFOLLOW), Mode::empty());
        Ok(Self { folder: opened.with_context(|| text::path(path))?, shown: folder.to_owned() })
    }

    /// Returns a path below the folder as the user would write it.
    pub fn shown(&self, path: &Path) -> PathBuf {
        self.shown.join(path)
    }

    /// Opens a folder below this one. None: nothing is there.
    pub fn folder(&self, path: &Path) -> Result<Option<Self>> {
        let mut folder = self.folder.try_clone()?;
        for name in names(path)? {
            match openat(&folder, name, FOLDER_FLAGS, Mode::empty()) {
                Ok(opened) => folder = opened,
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => return Err(self.refused(path, &folder, name, error)),
            }
        }
        Ok(Some(Self { folder, shown: self.shown(path) }))
    }

    /// Opens a folder below this one, and creates it and those above it if nothing is there. A link in its place is an error.
    pub fn made(&self, path: &Path) -> Result<Self> {
        let mut folder = self.folder.try_clone()?;
        for name in names(path)? {
            match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(self.refused(path, &folder, name, error)).or_failed(),
            }
            let opened = openat(&folder, name, FOLDER_FLAGS, Mode::empty());
            folder = opened.map_err(|error| self.refused(path, &folder, name, error))?;
        }
        Ok(Self { folder, shown: self.shown(path) })
    }

    /// Reads a text of at most `most` bytes. None: nothing is there.
    pub fn read(&self, path: &Path, most: u64) -> Result<Option<String>> {
        let Some(bytes) = self.bytes(path, most)? else { return Ok(None) };
        Ok(Some(String::from_utf8(bytes).with_context(|| text::path(&self.shown(path)))?))
    }

    /// Reads a file of at most `most` bytes. None: nothing is there.
    pub fn bytes(&self, path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
        let Some((folder, name)) = self.parent(path)? else { return Ok(None) };
        let Some(file) = folder.file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        let shown = || text::path(&self.shown(path));
        file.take(most.saturating_add(1)).read_to_end(&mut bytes).with_context(shown)?;
        ensure!(bytes.len() as u64 <= most, "{}: it is larger than {most} bytes", shown());
        Ok(Some(bytes))
    }

    /// Writes a file atomically, and creates the folders above it. A link in its place is replaced.
    pub fn replace(&self, path: &Path, contents: &[u8]) -> Result<()> {
        let name = names(path)?.pop().unwrap_or_default();
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let folder = match above {
            Some(above) => self.made(above)?.folder,
            None => self.folder.try_clone()?,
        };
        let written = || format!("{}: cannot be written", text::path(&self.shown(path)));
        let new = format!(".wharf-{}", random_id::id().map_err(|error| anyhow!(error.message))?);
        let put = || {
            let mut file = File::from(openat(&folder, &*new, NEW_FILE_FLAGS, Mode::from_raw_mode(0o666))?);
            file.write_all(contents)?;
            file.sync_all()?;
            std::io::Result::Ok(renameat(&folder, &*new, &folder, name)?)
        };
        put()
            .inspect_err(|_| {
                unlinkat(&folder, &*new, AtFlags::empty()).ok();
            })
            .with_context(written)
            .or_failed()
    }

    /// Removes a file, if it exists. A link is removed itself, not what it leads to.
    pub fn remove(&self, path: &Path) -> Result<()> {
        let Some((folder, name)) = self.parent(path)? else { return Ok(()) };
        match unlinkat(&folder.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error).with_context(|| text::path(&self.shown(path))).or_failed(),
        }
    }

    /// Returns the names of the entries of the folder, in order.
    pub fn names(&self) -> Result<Vec<PathBuf>> {
        let unread = || text::path(&self.shown);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.folder).with_context(unread)? {
            let entry = entry.with_context(unread)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(PathBuf::from(OsStr::from_bytes(name)));
            }
        }
        names.sort();
        Ok(names)
    }

    /// Copies everything in the folder into a new folder `to`. Links are copied as links.
    #[expect(clippy::disallowed_methods, reason = "writes a folder of the caller's own")]
    pub fn copy(&self, to: &Path, left: &mut CopyLimits) -> Result<()> {
        for name in self.names()? {
            let (shown, place) = (|| text::path(&self.shown(&name)), to.join(&name));
            left.entries = left.entries.checked_sub(1).context("there are too many files in it")?;
            let about = statat(&self.folder, &name, AtFlags::SYMLINK_NOFOLLOW).with_context(shown)?;
            match FileType::from_raw_mode(about.st_mode) {
                FileType::Directory => {
                    std::fs::create_dir(&place).with_context(|| text::path(&place))?;
                    let inner = self.folder(&name)?.with_context(|| format!("{}: it is gone", shown()))?;
                    inner.copy(&place, left)?;
                }
                FileType::Symlink => {
                    let target = readlinkat(&self.folder, &name, Vec::new()).with_context(shown)?;
                    symlink(OsStr::from_bytes(target.as_bytes()), &place).with_context(|| text::path(&place))?;
                }
                FileType::RegularFile => {
                    let file = self.file(name.as_os_str())?.with_context(|| format!("{}: it is gone", shown()))?;
                    let mode = file.metadata().with_context(shown)?.permissions().mode() & 0o777;
                    let mut new = std::fs::OpenOptions::new();
                    let mut new = new.write(true).create_new(true).mode(mode | 0o200).open(&place)?;
                    let copied = std::io::copy(&mut file.take(left.bytes.saturating_add(1)), &mut new);
                    let copied = copied.with_context(shown)?;
                    left.bytes = left.bytes.checked_sub(copied).context("its files are too large together")?;
                }
                _ => bail!("{} is neither a file nor a folder", shown()),
            }
        }
        Ok(())
    }

    /// Opens the folder that contains a path, and returns it with the last name of the path. None: there is no such folder.
    fn parent<'a>(&self, path: &'a Path) -> Result<Option<(Self, &'a OsStr)>> {
        let name = names(path)?.pop().unwrap_or_default();
        let above = path.parent().unwrap_or(Path::new(""));
        let folder = match above.as_os_str().is_empty() {
            true => Some(Self { folder: self.folder.try_clone()?, shown: self.shown.clone() }),
            false => self.folder(above)?,
        };
        Ok(folder.map(|folder| (folder, name)))
    }

    /// Opens a file that is in the folder itself. None: nothing is there.
    fn file(&self, name: &OsStr) -> Result<Option<File>> {
        let file = match openat(&self.folder, name, FILE_FLAGS, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.refused(Path::new(name), &self.folder, name, error)),
        };
        let about = fstat(&file)?;
        let is_file = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
        ensure!(is_file, "{}: it is not a file", text::path(&self.shown(Path::new(name))));
        Ok(Some(File::from(file)))
    }

    /// Returns the error for a path that could not be opened.
    fn refused(&self, path: &Path, folder: &OwnedFd, name: &OsStr, error: Errno) -> anyhow::Error {
        let shown = text::path(&self.shown(path));
        let about = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        match about.map(|about| FileType::from_raw_mode(about.st_mode)) {
            Ok(FileType::Symlink) => anyhow!(
                "{shown}: `{}` is a link, and links are not followed here; put what it leads to in its place",
                text::escaped(&name.to_string_lossy())
            ),
            _ => anyhow::Error::new(error).context(shown),
        }
    }
}

impl AsFd for Below {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

/// Whether a relative path stays below the folder that it is relative to, by its names alone.
pub fn is_below(path: &Path) -> bool {
    names(path).is_ok()
}

/// Returns the names in a path, at least one. Fails if the path could lead out of the folder.
fn names(path: &Path) -> Result<Vec<&OsStr>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            _ => bail!("{}: it is not below the folder", text::path(path)),
        }
    }
    ensure!(!names.is_empty(), "{}: it is not below the folder", text::path(path));
    Ok(names)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the folders that they look at")]
mod tests {
    use std::fs;

    use super::*;

    /// Makes a folder with links to files outside of it, and these files.
    fn hostile() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let (outside, inside) = (place.path().join("outside"), place.path().join("inside"));
        fs::create_dir_all(&outside).unwrap();
        fs::create_dir_all(inside.join("real/deep")).unwrap();
        fs::write(outside.join("key"), "precious").unwrap();
        fs::write(inside.join("real/a"), "a").unwrap();
        symlink(&outside, inside.join("folder")).unwrap();
        symlink(outside.join("key"), inside.join("file")).unwrap();
        symlink("../../outside/key", inside.join("real/up")).unwrap();
        symlink(outside.join("missing"), inside.join("new")).unwrap();
        symlink("real", inside.join("within")).unwrap();
        (place, inside)
    }

    #[test]
    fn nothing_outside_is_read_or_written() {
        let (place, inside) = hostile();
        let (below, outside) = (Below::open(&inside).unwrap(), place.path().join("outside"));
        for path in
            ["/etc/passwd", "..", "../outside/key", "real/../../outside/key", "", ".", "folder/key", "file", "real/up"]
        {
            let path = Path::new(path);
            assert!(below.read(path, 100).is_err(), "{}", path.display());
            assert!(below.folder(path).is_err(), "{}", path.display());
        }
        let link = format!("{:#}", below.read(Path::new("folder/key"), 100).unwrap_err());
        assert!(link.contains("`folder` is a link, and links are not followed here"), "{link}");
        for path in ["../outside/key", "folder/key", "folder/new", "within/new", "/tmp/x"] {
            let path = Path::new(path);
            assert!(below.replace(path, b"bad").is_err(), "{}", path.display());
            assert!(below.remove(path).is_err(), "{}", path.display());
        }
        // The link itself is replaced and removed, and what it leads to stays.
        for name in ["file", "new"] {
            below.replace(Path::new(name), b"new").unwrap();
            assert_eq!(below.read(Path::new(name), 3).unwrap().as_deref(), Some("new"));
        }
        below.remove(Path::new("real/up")).unwrap();
        assert_eq!(fs::read_to_string(outside.join("key")).unwrap(), "precious");
        assert_eq!(fs::read_dir(outside).unwrap().count(), 1);
    }

    #[test]
    fn what_is_inside_is_read_and_written() {
        let (_place, inside) = hostile();
        let below = Below::open(&inside).unwrap();
        let read = |path: &str| below.read(Path::new(path), 3).unwrap();
        assert_eq!((read("./real/a").as_deref(), read("real/b"), read("no/a")), (Some("a"), None, None));
        below.replace(Path::new("more/deep/b"), b"abc").unwrap();
        assert_eq!(read("more/deep/b").as_deref(), Some("abc"));
        assert!(below.read(Path::new("more/deep/b"), 2).unwrap_err().to_string().contains("larger than 2 bytes"));
        assert!(below.read(Path::new("real"), 2).unwrap_err().to_string().contains("it is not a file"));
        below.remove(Path::new("more/deep/b")).unwrap();
        below.remove(Path::new("more/deep/b")).unwrap();
        assert_eq!((read("more/deep/b"), below.folder(Path::new("no")).unwrap().is_none()), (None, true));
        let real = below.folder(Path::new("real")).unwrap().unwrap();
        assert_eq!(real.names().unwrap(), ["a", "deep", "up"].map(PathBuf::from));
    }

    #[test]
    fn a_copy_has_the_links_and_not_what_they_lead_to() {
        let (place, inside) = hostile();
        let to = place.path().join("copy");
        fs::create_dir(&to).unwrap();
        let below = Below::open(&inside).unwrap();
        below.copy(&to, &mut CopyLimits { entries: 8, bytes: 1 }).unwrap();
        assert!(fs::symlink_metadata(to.join("folder")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(to.join("real/a")).unwrap(), "a");
        for (entries, bytes, expected) in [(7, 1, "too many files"), (8, 0, "too large together")] {
            let to = place.path().join(expected);
            fs::create_dir(&to).unwrap();
            let problem = below.copy(&to, &mut CopyLimits { entries, bytes }).unwrap_err();
            assert!(format!("{problem:#}").contains(expected), "{problem:#}");
        }
    }
}
