//! Shared code of plugins that store data in a file: the file's path, a lock for changes to it, and errors about it.

#![expect(clippy::disallowed_methods, reason = "this crate works on files; the sandbox limits which")]

use std::{
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use wharf_sdk::{Error, Result};

mod lock;
mod place;

pub use lock::{Lock, Patience};
pub use place::Place;

/// Returns the path of a file with `suffix` appended to its name. It is in the same folder, so renaming one to the other is atomic.
pub fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The maximum number of links that are followed on the way to a file.
const MAX_LINKS: usize = 40;

/// Returns the file that a path leads to, which need not exist: the path itself or, if it is a link, the file behind it. A new file that is
/// renamed over a link would replace only the link.
pub fn target(file: &Path) -> Result<PathBuf> {
    let mut path = file.to_path_buf();
    for _ in 0..MAX_LINKS {
        if !path.is_symlink() {
            return Ok(path);
        }
        let leads = fs::read_link(&path).map_err(|error| at(&path, &error))?;
        path.pop();
        path.push(leads);
    }
    Err(Error::failed(format!("{}: its links lead round in a circle", file.display())))
}

/// The code of WASI for what is not possible with a file of this kind.
const NOT_SUPPORTED: i32 = 58;

/// Returns an error that names the path it is about.
pub fn at(path: &Path, error: &io::Error) -> Error {
    let what = match error.kind() {
        ErrorKind::NotFound => "there is no such directory".to_owned(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "this server has read-only access to it, or a link leads out of the open directories".to_owned()
        }
        ErrorKind::IsADirectory => "it is a directory".to_owned(),
        kind if kind == ErrorKind::Unsupported || error.raw_os_error() == Some(NOT_SUPPORTED) => {
            "it is a named pipe, a socket or a device, and not a file".to_owned()
        }
        // The number of a WASI error would help nobody, so it is cut off.
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
    };
    Error::failed(format!("{}: {what}", path.display()))
}

/// Returns a random number, to be used as a unique one.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
