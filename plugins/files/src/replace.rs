//! Replaces the text of a file, without replacing what is not a file.

use std::{
    fs::{self, File, OpenOptions},
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, ErrorKind, Write},
    path::Path,
};

use wharf_sdk::{Error, Result};

use crate::{
    folder::link_count,
    paths::{NOT_A_FILE, ODD_NAME, at_path, follow, odd_name},
};

/// Replaces the text of a file. The text is written to a temporary file, which is then renamed, so that readers see either the old text or
/// the new one. If that would replace more than the text, because the file has several names or is mounted, it is written in place.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    // If the path is a link, the file that it leads to is replaced, and the link stays. If only the sandbox can resolve the link, the file
    // is written in place.
    let leads = if path.is_symlink() { follow(path) } else { Some(path.to_path_buf()) };
    let failed = |error| at_path(path, error);
    let Some(path) = leads.as_deref() else { return in_place(path, text).map_err(failed) };
    let exists = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err(Error::failed(format!("{}: is a directory", path.display()))),
        Ok(metadata) if !metadata.is_file() => return Err(Error::failed(format!("{}: {NOT_A_FILE}", path.display()))),
        Ok(_) => true,
        Err(_) if odd_name(path) => return Err(Error::failed(format!("{}: {ODD_NAME}", path.display()))),
        Err(_) => false,
    };
    if exists && link_count(path) > 1 {
        return in_place(path, text).map_err(failed);
    }
    match by_renaming(path, text) {
        // The folder cannot be changed, or the file is mounted there; the file itself may be writable.
        Err(error) if exists && cannot_rename(&error) => in_place(path, text).map_err(failed),
        done => done.map_err(failed),
    }
}

fn cannot_rename(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::ResourceBusy
            | ErrorKind::CrossesDevices
    )
}

fn by_renaming(path: &Path, text: &str) -> io::Result<()> {
    // The name is random, because others may write the same file at the same time. It does not contain the file's own name,
    // which may be as long as names can be.
    let temporary = path.with_file_name(format!(".wharf-{:016x}", RandomState::new().build_hasher().finish()));
    let mut new = File::create_new(&temporary)?;
    new.write_all(text.as_bytes()).and_then(|()| fs::rename(&temporary, path)).inspect_err(|_| {
        fs::remove_file(&temporary).ok();
    })
}

/// Writes over the old text. The file is cut only afterwards, so that an error at the beginning leaves it as it was.
fn in_place(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}
