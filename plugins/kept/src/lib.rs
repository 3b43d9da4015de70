//! Shared code of plugins that store data in a file: the file's path, a lock for changes to it, and errors about it.

#![expect(clippy::disallowed_methods, reason = "this crate works on files; the sandbox limits which")]

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use wharf_sdk::Error;

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

/// Returns an error that names the path it is about.
pub fn at(path: &Path, error: &io::Error) -> Error {
    let what = match error.kind() {
        ErrorKind::NotFound => "there is no such directory".to_owned(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "this server has read-only access to it, or a link leads out of the open directories".to_owned()
        }
        ErrorKind::IsADirectory => "it is a directory".to_owned(),
        // The number of a WASI error would help nobody, so it is cut off.
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
    };
    Error::failed(format!("{}: {what}", path.display()))
}

/// Returns a random number, to be used as a unique one.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
