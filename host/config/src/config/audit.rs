//! `[audit]`: the log of all calls of plugins and of all changes of grants. wharf trusts its file and the key of its digests, so no
//! plugin may write them.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

pub use super::raw::{Arguments, OnFailure};
use super::{default_paths::state_dirs, raw};
use wharf_policy::access::capability::Absolute;

/// The keys are described in `raw`; here is only what is not said there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    pub file: PathBuf,
    pub arguments: Arguments,
    pub on_failure: OnFailure,
    pub rotate_bytes: usize,
    pub keep: usize,
    /// The name of this replica, which is in each line.
    pub replica: Option<String>,
}

pub fn resolve(raw: raw::Audit, replica: Option<String>, absolute: Absolute<'_>) -> Result<Audit> {
    let file = absolute(&raw.file)?;
    ensure!(file.file_name().is_some(), "`file`: {} names no file", file.display());
    Ok(Audit {
        file,
        arguments: raw.arguments,
        on_failure: raw.on_failure,
        rotate_bytes: raw.rotate_mib.get(),
        keep: raw.keep.get(),
        replica,
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
