//! Places in folders, by which a change is found again later.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::File,
    io::{self, ErrorKind},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, readlinkat, statat},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use wharf_base::paths;
use wharf_scope::{FileIdentity, changes::At, identity_of};

/// Folders that were made again, in order: the numbers on disk of each before, and now.
pub(crate) type Remade = Vec<(FileIdentity, FileIdentity)>;

/// A name in a folder, which is known by its path and by its numbers on disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Place {
    folder: String,
    numbers: FileIdentity,
    pub name: String,
}

impl Place {
    /// Finds out where a place is. The error is one that a person reads.
    pub fn of(at: At<'_>) -> io::Result<Self> {
        let numbers = identity_of(&fstat(at.folder)?);
        Ok(Self { folder: text(paths::of_open(at.folder)?.as_os_str())?, numbers, name: text(at.name)? })
    }

    /// Finds out where an open file is, and opens its folder.
    pub fn of_file(file: &File) -> io::Result<(File, Self)> {
        let path = paths::of_open(file)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it has no folder"));
        };
        let folder = open_without_links(parent)?;
        let place = Self::of(At { folder: &folder, name })?;
        Ok((folder, place))
    }

    /// Its path, for people.
    pub fn path(&self) -> PathBuf {
        Path::new(&self.folder).join(&self.name)
    }

    /// Opens its folder, if that is the same one as before. `None`: there is no folder at this path.
    pub fn open(&self, remade: &Remade) -> io::Result<Option<File>> {
        let folder = match open_without_links(Path::new(&self.folder)) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            folder => folder?,
        };
        // The system gives the numbers of a folder that is gone to others, so earlier ones count too.
        let mut expected = vec![self.numbers];
        for (before, now) in remade {
            if expected.contains(before) {
                expected.push(*now);
            }
        }
        if !expected.contains(&identity_of(&fstat(&folder)?)) {
            return Err(io::Error::other(format!("{} is another folder now", self.folder)));
        }
        Ok(Some(folder))
    }

    /// Returns those of these places that are below what is here.
    pub fn below<'p>(&self, places: &'p BTreeSet<Self>) -> impl Iterator<Item = &'p Self> {
        let path = self.path().display().to_string();
        let first = Self { folder: path.clone(), numbers: (0, 0), name: String::new() };
        let near = places.range(first..).take_while({
            let path = path.clone();
            move |place| place.folder.starts_with(&path)
        });
        near.filter(move |place| Path::new(&place.folder).starts_with(&path))
    }

    /// Returns the place that this one has become, when what was at the first place moved to the second one.
    pub fn moved(&self, from: &Self, to: &Self) -> Option<Self> {
        let rest = Path::new(&self.folder).strip_prefix(from.path()).ok()?;
        // An empty path would add a `/`.
        let folder = if rest == Path::new("") { to.path() } else { to.path().join(rest) };
        Some(Self { folder: folder.to_str()?.to_owned(), ..self.clone() })
    }

    /// Whether it is the other place, or below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self == other || Path::new(&self.folder).starts_with(other.path())
    }

    fn is_in_folder_of(&self, other: &Self) -> bool {
        (&self.folder, self.numbers) == (&other.folder, other.numbers)
    }
}

/// Returns what is at places now. Opens each folder once, if places are in order.
pub(crate) fn seen<'p>(
    places: impl IntoIterator<Item = &'p Place>,
    remade: &Remade,
) -> impl Iterator<Item = (&'p Place, Seen)> {
    let mut last: Option<(&Place, io::Result<Option<File>>)> = None;
    places.into_iter().map(move |place| {
        let folder = match last.take() {
            Some((before, folder)) if before.is_in_folder_of(place) => folder,
            _ => place.open(remade),
        };
        let seen = match &folder {
            Ok(Some(folder)) => Seen::at(At { folder, name: place.name.as_ref() }).unwrap_or(Seen::Unknown),
            Ok(None) => Seen::Nothing,
            Err(error) if error.kind() == ErrorKind::Other => Seen::Elsewhere,
            Err(_) => Seen::Unknown,
        };
        last = Some((place, folder));
        (place, seen)
    })
}

/// What is at a place, as far as it tells whether that has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Seen {
    Nothing,
    /// A file of this size, last changed at this second and nanosecond.
    File(u64, (i64, i64)),
    Link(String),
    Folder,
    /// Neither of these.
    Other,
    /// Another folder is in the place of its own.
    Elsewhere,
    /// It cannot be looked at.
    Unknown,
}

impl Seen {
    pub fn at(at: At<'_>) -> io::Result<Self> {
        let stat = match statat(at.folder, at.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(Self::Nothing),
            stat => stat?,
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::File(size(&stat), modified(&stat)),
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link(link(at)?),
            _ => Self::Other,
        })
    }
}

/// Returns the size of a file in bytes.
pub(crate) fn size(stat: &rustix::fs::Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// Returns when a file was last changed, in seconds and nanoseconds.
pub(crate) fn modified(stat: &rustix::fs::Stat) -> (i64, i64) {
    (stat.st_mtime, stat.st_mtime_nsec)
}

/// Reads a symbolic link.
pub(crate) fn link(at: At<'_>) -> io::Result<String> {
    let target = readlinkat(at.folder, at.name, Vec::new())?;
    target.into_string().map_err(|_| io::Error::new(ErrorKind::InvalidData, "it leads to a name that is not UTF-8"))
}

/// Opens a folder by its path, of which no part may be a symbolic link.
fn open_without_links(path: &Path) -> io::Result<File> {
    // Folders on the way may be closed to readers.
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = File::from(openat(CWD, c"/", flags, Mode::empty())?);
    for part in path.components() {
        match part {
            Component::RootDir => {}
            Component::Normal(name) => folder = openat(&folder, name, flags, Mode::empty())?.into(),
            _ => return Err(io::Error::new(ErrorKind::InvalidInput, "the path is not absolute")),
        }
    }
    Ok(folder)
}

fn text(name: &OsStr) -> io::Result<String> {
    let text = name.to_str().ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "its name is not UTF-8"))?;
    Ok(text.to_owned())
}
