//! The HMAC key for the digests of arguments. It is generated for the installation when it is first needed. Anyone who has the key can
//! guess arguments and compare digests, so other users must not be able to read the file.

#![expect(clippy::disallowed_methods, reason = "the key is read and made here")]

use std::{
    fs::{DirBuilder, File, Permissions},
    io::{ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
};

use anyhow::{Context, Result, ensure};

use wharf_base::{guard::check_private_file, text::hex};
use wharf_config::config::parse_key;

/// Reads the key for a log without lines, or generates it if it does not exist.
pub fn read_or_make(path: &Path) -> Result<[u8; 32]> {
    if !path.exists() {
        make(path).with_context(|| format!("{}: the key of the audit log cannot be created", path.display()))?;
    }
    parse(path)
}

/// Reads the key of a log that has lines. A missing key is an error and is not replaced: with a new key, equal arguments would have other
/// digests than before, and a removed key would go unnoticed.
pub fn read(path: &Path, log: &Path) -> Result<[u8; 32]> {
    ensure!(
        path.exists(),
        "{}: the key of the audit log is missing, but {} has lines whose digests were made with it; restore the key, or start a \
         new log with a new key: move that file and its numbered files away, or set another `file` in [audit]",
        path.display(),
        log.display()
    );
    parse(path)
}

fn parse(path: &Path) -> Result<[u8; 32]> {
    check_private_file(path, "key of the audit log")?;
    let text = std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let key = parse_key("audit.key", text.trim());
    key.with_context(|| {
        format!(
            "{}: is not a key; restore the original key, or remove this file and move the audit log away, to start a new log with a \
             new key",
            path.display()
        )
    })
}

/// Generates a key. The file appears atomically, so that two processes that generate one at the same time use the same key.
fn make(path: &Path) -> Result<()> {
    let folder = path.parent().context("it has no folder")?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| anyhow::anyhow!("the system provides no random bytes: {error}"))?;
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
        for wrong in ["no key", &"07".repeat(32)] {
            std::fs::write(&path, wrong).unwrap();
            assert!(read_or_make(&path).unwrap_err().to_string().contains("is not a key"), "{wrong}");
        }
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
