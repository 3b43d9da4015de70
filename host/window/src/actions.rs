//! What a person can do on the page, apart from answers to questions. The commands of the binary implement it, which have the config files,
//! the record of changes and the audit log. All of it may block.

use std::path::Path;

/// What was done, or why nothing was done, a line each.
pub type Lines = Vec<String>;

/// Whether a config file has a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It cannot be written there: the file does not name the plugin, or cannot be read.
    Elsewhere,
    /// It is not there.
    Missing,
    /// It is there.
    Written,
}

/// A call that has changed something in folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedFiles {
    /// The name of its record.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    pub time: u64,
    /// The plugin.
    pub plugin: String,
    /// The tool.
    pub name: String,
    /// The first paths that it has changed.
    pub paths: Vec<String>,
    /// How many more paths it has changed.
    pub more: usize,
    /// Whether it has not ended yet.
    pub is_running: bool,
    /// Whether it was taken back.
    pub is_undone: bool,
}

/// A part of an audit log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditPart {
    /// Whether its hash chain is unbroken.
    pub is_whole: bool,
    /// What was found out about the chain, a line each.
    pub verdict: Lines,
    /// The last lines that contain the text that was searched for, the newest one first.
    pub lines: Lines,
}

/// What the page asks of the rest of wharf. Texts contain no characters that could deceive a reader; they may contain HTML.
pub trait Actions: Send + Sync {
    /// Returns the standing of each grant in a config file. A grant is a plugin and what it may, as the option `--allow` takes it.
    fn standing(&self, config: &Path, grants: &[(&str, &str)]) -> Vec<Standing>;

    /// Writes a grant into a config file.
    fn allow(&self, config: &Path, plugin: &str, grant: &str) -> Result<Lines, Lines>;

    /// Removes a grant from a config file.
    fn take_back(&self, config: &Path, plugin: &str, grant: &str) -> Result<Lines, Lines>;

    /// Returns the calls that have changed something in folders, the last one first.
    fn changes(&self) -> Result<Vec<ChangedFiles>, String>;

    /// Takes back what a call has changed.
    fn undo(&self, id: &str) -> Result<Lines, Lines>;

    /// Whether a config file turns on an audit log.
    fn has_audit_log(&self, config: &Path) -> bool;

    /// Verifies the audit log that a config file turns on, and returns the last lines that contain a text.
    fn audit(&self, config: &Path, search: &str) -> Result<AuditPart, String>;
}
