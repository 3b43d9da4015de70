//! The key of the digests of arguments. It belongs to the installation and is made when it is first needed. Who has it can try out
//! which arguments have a digest, so nobody else may read it.

#![expect(clippy::disallowed_methods, reason = "the key is read and made here")]

use std::{
    fs::{DirBuilder, File, Permissions},
    io::{ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
};

use anyhow::{Context, Result, ensure};

use crate::{
    base::{guard::check_private_file, text::hex},
    config::parse_hex32,
};

/// Reads the key, or makes it, for a log that has no lines.
pub fn read_or_make(path: &Path) -> Result<[u8; 32]> {
    if !path.exists() {
        make(path).with_context(|| format!("{}: the key of the audit log cannot be made", path.display()))?;
    }
    parse(path)
}

/// Reads the key of a log that has lines. With another key, equal arguments would have other digests from here on, and nobody could
/// tell whether somebody has removed the key.
pub fn read(path: &Path, log: &Path) -> Result<[u8; 32]> {
    ensure!(
        path.exists(),
        "{}: the key of the audit log is missing, and {} has lines whose digests were made with it; put the key back, or begin a \
         log with a new key: move that file and the older ones with numbers away, or name another `file`",
        path.display(),
        log.display()
    );
    parse(path)
}

fn parse(path: &Path) -> Result<[u8; 32]> {
    check_private_file(path, "key of the audit log")?;
    let text = std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let key = parse_hex32("audit.key", text.trim());
    key.with_context(|| {
        format!(
            "{}: is no key; put the right one back, or remove it and move the audit log away, and both begin anew",
            path.display()
        )
    })
}

/// Makes a key in one step, so that of two processes that make one, both use the same.
fn make(path: &Path) -> Result<()> {
    let folder = path.parent().context("it has no folder")?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
    let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(folder)?;
    writeln!(file, "{}", hex(&key))?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != ErrorKind::AlreadyExists => Err(error.error.into()),
        _ => Ok(File::open(folder)?.sync_all()?),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_is_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/wharf/audit.key");
        let key = read_or_make(&path).unwrap();
        assert_eq!(read_or_make(&path).unwrap(), key);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        let mode = |mode| std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        mode(0o640);
        assert!(read_or_make(&path).unwrap_err().to_string().contains("others may read"));
        mode(0o600);
        std::fs::write(&path, "no key").unwrap();
        assert!(read_or_make(&path).unwrap_err().to_string().contains("is no key"));
    }

    #[test]
    fn a_log_with_lines_gets_no_new_key() {
        let folder = tempfile::tempdir().unwrap();
        let (path, log) = (folder.path().join("audit.key"), folder.path().join("audit.jsonl"));
        let refused = read(&path, &log).unwrap_err().to_string();
        assert!(refused.contains("audit.key: the key of the audit log is missing"), "{refused}");
        assert!(!path.exists(), "none is made");
        let key = read_or_make(&path).unwrap();
        assert_eq!(read(&path, &log).unwrap(), key);
    }
}
