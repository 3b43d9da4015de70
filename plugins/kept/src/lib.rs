//! What plugins share that keep a file: where it lies, how only one of them changes it at a time, and what went wrong with it.

#![expect(clippy::disallowed_methods, reason = "files are what it is for; the sandbox says which")]

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

/// A file of this name and more, in the same folder, so that renaming it is one step.
pub fn beside(file: &Path, more: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(more);
    PathBuf::from(name)
}

/// An error with the path it is about.
pub fn at(path: &Path, error: &io::Error) -> Error {
    let what = match error.kind() {
        ErrorKind::NotFound => "there is no such directory".to_owned(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "it is read only here, or a link leads outside".to_owned()
        }
        ErrorKind::IsADirectory => "it is a directory".to_owned(),
        // The number means something only to whoever knows WASI.
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
    };
    Error::failed(format!("{}: {what}", path.display()))
}

/// A number that nobody else has.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
