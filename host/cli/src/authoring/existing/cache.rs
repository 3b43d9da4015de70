//! Files and folders of the cache in which servers are built.

#![expect(clippy::disallowed_methods, reason = "works on files in the cache")]

use std::{fs, io::ErrorKind, os::unix::fs::DirBuilderExt, path::Path};

use anyhow::{Context, Result};

use wharf_base::{failed::OrFailed, text};

/// Makes a folder that only this user may enter, and those above it.
pub fn make_folder(folder: &Path) -> Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("{}: cannot be created", text::path(folder))).or_failed()
}

/// Returns the text of a file, or `None` if it cannot be read.
pub fn reads(file: &Path) -> Option<String> {
    fs::read_to_string(file).ok()
}

/// Writes a file whole or not at all.
pub fn put(file: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    use std::io::Write;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let write = || {
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(contents.as_ref())?;
        new.persist(file).map_err(|error| error.error)
    };
    write().with_context(|| format!("{}: cannot be written", text::path(file))).or_failed().map(drop)
}

pub fn gone(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(error).with_context(|| text::path(file)).or_failed()
        }
        _ => Ok(()),
    }
}
