//! Replaces a file that wharf keeps for the operator, in one step: whoever reads it finds the old text or the new one, and of two that
//! change it at once, none undoes what the other did.

#![expect(clippy::disallowed_methods, reason = "files that wharf itself keeps are written here")]

use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use anyhow::{Context, Result};

/// Writes the text that `changed` makes, which reads the file as it is, while nobody else does the same. Only this user may read
/// what is written.
pub fn rewrite(path: &Path, changed: impl FnOnce() -> Result<String>) -> Result<()> {
    let named = || path.display().to_string();
    let folder = path.parent().with_context(named)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(|| folder.display().to_string())?;
    let lock = path.with_extension("lock");
    let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&lock);
    let lock = lock.with_context(named)?;
    lock.lock().with_context(named)?;
    let text = changed()?;
    let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).with_context(named)?;
    File::open(folder)?.sync_all()?;
    Ok(())
}
