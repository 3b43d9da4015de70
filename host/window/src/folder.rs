//! The folder with the sockets of the wharfs that run. Only this user may reach it: no link leads there, and nobody else has any right in it.

use std::{
    ffi::OsStr,
    io::{self, ErrorKind},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, RawMode, fstat, open, statat, unlinkat},
    io::Errno,
    process::geteuid,
};

/// The most entries of the folder that are looked at.
const MAX_ENTRIES: usize = 1024;
/// How the name of a socket ends.
pub const EXTENSION: &str = ".sock";

/// The folder, open.
pub struct SocketFolder {
    path: PathBuf,
    folder: OwnedFd,
}

impl SocketFolder {
    /// Opens and checks the folder. `None`: it does not exist, so no wharf has run yet. The error is for a person.
    pub fn open(path: &Path) -> Result<Option<Self>, String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let about = |text: &str| format!("{}: {text}", wharf_base::text::path(path));
        let folder = match open(path, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(about("this is a link or a file, so wharfs are not looked for in it; remove it"));
            }
            Err(error) => return Err(about(&format!("cannot be opened: {error}"))),
        };
        let found = fstat(&folder).map_err(|error| about(&format!("cannot be read: {error}")))?;
        is_own(found.st_uid, found.st_mode).map_err(about)?;
        Ok(Some(Self { path: path.to_owned(), folder }))
    }

    /// Returns the names of the sockets of this user.
    pub fn sockets(&self) -> Vec<String> {
        let Ok(entries) = Dir::read_from(&self.folder) else { return Vec::new() };
        let names = entries.take(MAX_ENTRIES).filter_map(|entry| {
            let name = OsStr::from_bytes(entry.ok()?.file_name().to_bytes()).to_str()?.to_owned();
            let found = statat(&self.folder, &*name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let is_socket = FileType::from_raw_mode(found.st_mode) == FileType::Socket;
            (is_socket && name.ends_with(EXTENSION) && found.st_uid == geteuid().as_raw()).then_some(name)
        });
        names.collect()
    }

    /// Returns the path of a socket.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Removes a socket that nobody listens on.
    pub fn remove(&self, name: &str) {
        if let Err(error) = unlinkat(&self.folder, name, AtFlags::empty()) {
            tracing::debug!("the socket {name} of a wharf that has ended cannot be removed: {error}");
        }
    }
}

/// Whether the error of a connection says that nobody listens on a socket.
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::ConnectionRefused
}

/// Whether a folder with this owner and mode is out of reach for other users. The error says what to do.
fn is_own(owner: u32, mode: RawMode) -> Result<(), &'static str> {
    if owner != geteuid().as_raw() {
        return Err("this folder belongs to another user, so wharfs are not looked for in it");
    }
    if mode & 0o077 != 0 {
        return Err("others may enter this folder, so wharfs are not looked for in it; run `chmod 700` on it");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_that_another_user_can_reach_is_refused() {
        let own = geteuid().as_raw();
        for (owner, mode, wrong) in [
            (own, 0o40700, None),
            (own, 0o40500, None),
            (own + 1, 0o40700, Some("belongs to another user")),
            (own, 0o40710, Some("chmod 700")),
            (own, 0o40701, Some("chmod 700")),
            (own, 0o41777, Some("chmod 700")),
        ] {
            let said = is_own(owner, mode).err();
            assert_eq!(said.is_some(), wrong.is_some(), "{owner} {mode:o}");
            assert!(said.unwrap_or_default().contains(wrong.unwrap_or_default()), "{said:?}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test makes folders")]
    fn what_is_not_a_folder_of_this_user_alone_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let of = |name: &str| place.path().join(name);
        for (name, mode) in [("own", 0o700), ("open", 0o755)] {
            std::fs::create_dir(of(name)).unwrap();
            std::fs::set_permissions(of(name), PermissionsExt::from_mode(mode)).unwrap();
        }
        symlink(of("own"), of("link")).unwrap();
        std::fs::write(of("file"), "").unwrap();
        assert!(SocketFolder::open(&of("own")).unwrap().is_some());
        assert!(SocketFolder::open(&of("missing")).unwrap().is_none());
        for name in ["open", "link", "file"] {
            assert!(SocketFolder::open(&of(name)).is_err(), "{name}");
        }
        // Neither a file nor a link to a socket is one.
        let _socket = std::os::unix::net::UnixListener::bind(of("own/1-a.sock")).unwrap();
        let _other = std::os::unix::net::UnixListener::bind(of("own/other")).unwrap();
        symlink(of("own/1-a.sock"), of("own/2-b.sock")).unwrap();
        std::fs::write(of("own/3-c.sock"), "").unwrap();
        assert_eq!(SocketFolder::open(&of("own")).unwrap().unwrap().sockets(), ["1-a.sock"]);
    }
}
