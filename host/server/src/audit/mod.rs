//! The audit log: a file of JSON lines, each of which has the hash of the line before it.
//!
//! `entry` is what a line says of a run and `event` of anything else, `arguments` what of a call's arguments; `members` writes it as
//! JSON. `chain` is how lines hang together, without any files. `files` are the log and what was rotated away, and `writer` is who writes them, one at a time. [`Log`] is what the rest of wharf sees:
//! it keeps a line of every run before the run's answer leaves.

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
use crate::config::{Audit, audit::key_file};

/// Whether a log could be written there, as far as that can be seen without opening it.
pub fn check(config: &Audit) -> Result<()> {
    let check = || {
        files::check(config)?;
        if files::has_lines(&config.file) { key::read(&key_file(&config.file), &config.file).map(drop) } else { Ok(()) }
    };
    check().context("[audit]")
}
