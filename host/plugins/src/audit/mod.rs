//! The audit log: a file of JSON lines that form a hash chain, in which each line contains the hash of the previous one.
//!
//! `entry` builds the lines about runs, `event` all other lines, and `arguments` the members about a call's arguments; `members` encodes
//! them as JSON. `chain` implements the hash chain, without file access. `files` manages the log file and the rotated ones, and `writer`
//! serializes the writes. The rest of wharf uses [`Log`], which writes the line about a run before the run's answer is sent.

mod arguments;
pub mod chain;
mod entry;
mod event;
pub mod files;
mod key;
mod log;
mod members;
mod writer;

use anyhow::{Context, Result};

pub use self::log::Log;
use wharf_config::config::{Audit, audit::key_file};

/// Checks that the log could be written, as far as that is possible without opening it.
pub fn check(config: &Audit) -> Result<()> {
    let check = || {
        files::check(config)?;
        if files::has_lines(&config.file) { key::read(&key_file(&config.file), &config.file).map(drop) } else { Ok(()) }
    };
    check().context("[audit]")
}
