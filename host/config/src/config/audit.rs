//! `[audit]`: the log of all calls of plugins and of all changes of grants. wharf trusts its file and the key of its digests, so no
//! plugin may write them.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

use super::{
    bounds::{mib, within_bounds},
    default_paths::state_dirs,
    defaults, raw,
};
use wharf_policy::access::capability::Absolute;

/// The largest value of `keep`.
const MAX_KEPT_FILES: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    pub file: PathBuf,
    pub arguments: Arguments,
    pub on_failure: OnFailure,
    /// The file is rotated before it grows beyond this.
    pub rotate_bytes: usize,
    /// How many rotated files are kept.
    pub keep: usize,
    /// The name of this replica, which is in each line.
    pub replica: Option<String>,
}

/// How much of a call's arguments is written. Their digest is always written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arguments {
    /// Nothing.
    Digest,
    /// Their structure.
    Redacted,
    /// All of them.
    Full,
}

/// What happens to calls while the log cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    Refuse,
    Continue,
}

pub fn resolve(raw: raw::Audit, absolute: Absolute<'_>) -> Result<Audit> {
    let file = absolute(&raw.file)?;
    ensure!(file.file_name().is_some(), "`file`: {} names no file", file.display());
    Ok(Audit {
        file,
        arguments: match raw.arguments.as_deref() {
            None | Some("digest") => Arguments::Digest,
            Some("redacted") => Arguments::Redacted,
            Some("full") => Arguments::Full,
            Some(other) => bail!("`arguments`: `{other}` is not one of \"digest\", \"redacted\", \"full\""),
        },
        on_failure: match raw.on_failure.as_deref() {
            None | Some("refuse") => OnFailure::Refuse,
            Some("continue") => OnFailure::Continue,
            Some(other) => bail!("`on_failure`: `{other}` is neither \"refuse\" nor \"continue\""),
        },
        rotate_bytes: mib("rotate_mib", raw.rotate_mib, defaults::AUDIT_ROTATE_MIB)?,
        keep: within_bounds("keep", raw.keep, defaults::AUDIT_KEEP, MAX_KEPT_FILES)?,
        replica: None,
    })
}

/// Returns where the key of the digests is: `$XDG_STATE_HOME/wharf/audit.key`, else `~/.local/state/wharf/audit.key`. Without a home
/// directory, next to the log.
pub fn key_file(log: &Path) -> PathBuf {
    let in_state = state_dirs().first().map(|folder| folder.join(KEY));
    in_state.unwrap_or_else(|| log.with_file_name(KEY))
}

const KEY: &str = "audit.key";

/// Returns the files of a log, which no plugin may write: the log, its rotated files next to it, and the key.
pub fn trusted(log: &Path) -> Vec<PathBuf> {
    vec![log.to_owned(), log.with_file_name("*"), key_file(log)]
}
