//! What wharf trusts must not be writable by others.

use std::{os::unix::fs::MetadataExt, path::Path};

use anyhow::{Context, Result, bail};
use rustix::process::{geteuid, getuid};

/// Refuses a file that another user owns or may write. `what`: a word for the message.
pub fn check_trusted_file(path: &Path, what: &str) -> Result<()> {
    let metadata = std::fs::metadata(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    if !metadata.is_file() {
        bail!("{}: not a file", path.display());
    }
    check(path, &metadata, what)?;
    // Who may write the folder may put another file in its place; a sticky folder keeps that to the owner.
    let real = std::fs::canonicalize(path)?;
    let Some(folder) = real.parent() else { return Ok(()) };
    let metadata = std::fs::metadata(folder)?;
    if metadata.mode() & 0o1000 != 0 { Ok(()) } else { check(folder, &metadata, &format!("folder of a {what}")) }
}

/// The same for a folder.
pub fn check_trusted_directory(path: &Path, what: &str) -> Result<()> {
    let metadata = std::fs::metadata(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    if !metadata.is_dir() {
        bail!("{}: not a directory", path.display());
    }
    check(path, &metadata, what)
}

fn check(path: &Path, metadata: &std::fs::Metadata, what: &str) -> Result<()> {
    let owner = metadata.uid();
    if owner != 0 && owner != geteuid().as_raw() && owner != getuid().as_raw() {
        bail!(
            "{}: this {what} belongs to another user (uid {owner}), who could change it; use one of your own",
            path.display()
        );
    }
    // Where every user has a group of their own, the group's right is the user's.
    let own_group = metadata.gid() == geteuid().as_raw();
    let writable = metadata.mode() & if own_group { 0o002 } else { 0o022 };
    if writable != 0 {
        bail!("{}: others may write this {what}; run `chmod go-w` on it", path.display());
    }
    Ok(())
}
