//! The mounts of the system, so that a folder is recognized under all its names.

#![expect(clippy::disallowed_methods, reason = "what the kernel says about mounts is read here")]

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Notices when something is mounted or unmounted.
#[derive(Debug, Default)]
pub struct MountsWatch(Option<std::fs::File>);

impl MountsWatch {
    /// Whether something may have been mounted or unmounted since the last call. Always false where the system does not list its
    /// mounts.
    pub fn changed(&mut self) -> bool {
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
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Mounts(Vec<Mount>);

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
    pub fn now() -> std::io::Result<Self> {
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
    pub fn other_names(&self, path: &Path) -> Vec<PathBuf> {
        let Some((device, place)) = self.place(path) else { return Vec::new() };
        let same = self.0.iter().filter(|mount| mount.device == device);
        same.filter_map(|mount| Some(mount.point.join(place.strip_prefix(&mount.root).ok()?)))
            .filter(|other| other != path)
            .collect()
    }

    /// Where else parts of a folder are mounted.
    pub fn parts(&self, folder: &Path) -> Vec<PathBuf> {
        let Some((device, place)) = self.place(folder) else { return Vec::new() };
        let parts = self.0.iter().filter(|mount| mount.device == device && mount.root.starts_with(&place));
        parts.map(|mount| mount.point.clone()).filter(|point| !point.starts_with(folder)).collect()
    }

    /// The file system of a path, and the path within it.
    fn place(&self, path: &Path) -> Option<(&str, PathBuf)> {
        // Of two mounts at one point, the later one hides the earlier, and `max_by_key` gives the later one.
        let containing = self.0.iter().filter(|mount| path.starts_with(&mount.point));
        let own = containing.max_by_key(|mount| mount.point.components().count())?;
        let rest = path.strip_prefix(&own.point).unwrap_or(Path::new(""));
        Some((&own.device, own.root.join(rest)))
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
        assert_eq!(mounts.parts(Path::new("/srv")), paths(&["/home/u/my proj", "/mnt/all", "/home/u/file"]));
        assert_eq!(mounts.parts(Path::new("/srv/plugins/p.wasm")), paths(&["/home/u/file"]));
        assert_eq!(mounts.parts(Path::new("/etc")), paths(&[]));
    }
}
