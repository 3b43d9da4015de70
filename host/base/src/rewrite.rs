//! Atomically replaces a file that wharf maintains for the operator: a reader finds either the old text or the new one. A lock file
//! makes sure that of two concurrent changes, neither is lost.

#![expect(clippy::disallowed_methods, reason = "files that wharf itself maintains are written here")]

use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions},
    io::Write,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::Path,
};

use anyhow::{Context, Result};

/// Waits for the lock under which the file is changed. It is released when the returned file is closed.
pub fn lock(path: &Path) -> Result<File> {
    let named = || path.display().to_string();
    let lock =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path.with_extension("lock"));
    let lock = lock.with_context(named)?;
    lock.lock().with_context(named)?;
    Ok(lock)
}

/// Writes the text that `changed` returns. `changed` runs under the lock, so it can read the current text. A new file is accessible to
/// this user only.
pub fn rewrite(path: &Path, changed: impl FnOnce() -> Result<String>) -> Result<()> {
    // A link is kept, and leads to the new text.
    let resolved = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let path = resolved.as_path();
    let named = || path.display().to_string();
    let folder = path.parent().with_context(named)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(|| folder.display().to_string())?;
    let _lock = lock(path)?;
    let text = changed()?;
    let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Ok(before) = std::fs::metadata(path) {
        // Mode and owner stay the same, so that a service can still read its file after root has changed it.
        file.as_file().set_permissions(Permissions::from_mode(before.mode() & 0o777))?;
        let own = file.as_file().metadata()?;
        if (own.uid(), own.gid()) != (before.uid(), before.gid()) {
            fchown(file.as_file(), Some(before.uid()), Some(before.gid())).with_context(named)?;
        }
    }
    file.as_file().sync_all()?;
    file.persist(path).with_context(named)?;
    File::open(folder)?.sync_all()?;
    Ok(())
}
