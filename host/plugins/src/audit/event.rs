//! Builds the members of all lines that are not about a run. Members are named as in `entry`.

use std::{path::Path, time::Duration};

use super::members::Members;
use crate::observe::journal::Event;

/// Returns the members of the line about an event.
pub fn noted(event: &Event) -> Vec<u8> {
    match event {
        Event::ConfigRead { file, digest } => {
            let mut line = about_file("config.read", file.as_deref());
            if let Some(digest) = digest {
                line.digest("wharf.file.sha256", digest);
            }
            line
        }
        Event::ConfigRefused { file, problem } => {
            let mut line = about_file("config.refused", file.as_deref());
            line.text("problem", problem);
            line
        }
        Event::Granted { plugin, added, removed } => {
            let mut line = about("grants.changed", plugin);
            for (name, grants) in [("wharf.grants.added", added), ("wharf.grants.removed", removed)] {
                if !grants.is_empty() {
                    line.json(name, grants);
                }
            }
            line
        }
        Event::Approved { plugin, name, principal, remembered } => {
            let mut line = about("approval.remembered", plugin);
            line.text("wharf.name", name);
            line.text("wharf.principal", principal);
            line.word("wharf.approval", remembered.as_str());
            line
        }
        Event::Served { plugin, digest, before } => {
            let mut line = about(if before.is_some() { "plugin.replaced" } else { "plugin.loaded" }, plugin);
            line.digest("wharf.plugin.sha256", digest);
            if let Some(before) = before {
                line.digest("wharf.plugin.sha256.before", before);
            }
            line
        }
        Event::Removed { plugin, digest } => {
            let mut line = about("plugin.removed", plugin);
            line.digest("wharf.plugin.sha256", digest);
            line
        }
        Event::Failed { plugin, stage, problem, last_good } => {
            let mut line = about("plugin.failed", plugin);
            line.word("outcome", if *last_good { "last_good_serves" } else { "not_served" });
            line.word("error.type", stage);
            line.text("problem", problem);
            line
        }
    }
    .and("")
}

fn about(event: &'static str, plugin: &str) -> Members {
    let mut line = Members::of(event);
    line.text("wharf.plugin", plugin);
    line
}

fn about_file(event: &'static str, file: Option<&Path>) -> Members {
    let mut line = Members::of(event);
    if let Some(file) = file {
        line.text("wharf.file", &file.display().to_string());
    }
    line
}

/// Returns the members of the line about the start of wharf.
pub fn started() -> Vec<u8> {
    let mut line = Members::of("start");
    line.word("wharf.version", env!("CARGO_PKG_VERSION"));
    line.number("process.pid", std::process::id().into());
    line.and("")
}

/// Returns the members of the line about the end of wharf. `unfinished`: the number of calls that have begun and not ended.
pub fn stopped(unfinished: u64) -> Vec<u8> {
    let mut line = Members::of("stop");
    line.number("process.pid", std::process::id().into());
    line.number("wharf.calls", unfinished);
    line.and("")
}

/// Returns the members of the line about an unfinished line that was found at the end of the log and moved into another file.
pub fn torn(file: &Path, bytes: usize) -> Vec<u8> {
    let mut line = about_file("torn", Some(file));
    line.number("wharf.bytes", bytes as u64);
    line.and("")
}

/// Returns the members of the line about a period in which the log could not be written. `refused`: the number of refused calls; `lost`:
/// the number of lines for which there was no room.
pub fn interrupted(problem: &str, lasted: Duration, refused: u64, lost: u64) -> Vec<u8> {
    let mut line = Members::of("interrupted");
    line.number("wharf.calls", refused);
    line.number("wharf.lost", lost);
    line.number("duration_us", u64::try_from(lasted.as_micros()).unwrap_or(u64::MAX));
    line.text("problem", problem);
    line.and("")
}

/// Returns the members of the first line in a new file, which was created because the log file had been moved or removed.
pub fn missing(file: &Path) -> Vec<u8> {
    about_file("file.missing", Some(file)).and("")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::audit::entry::tests::line;

    #[test]
    fn events_say_what_changed() {
        for (event, expected) in [
            (
                Event::Granted { plugin: "a".into(), added: vec!["$TZ".into()], removed: vec![] },
                json!({ "event": "grants.changed", "wharf.plugin": "a", "wharf.grants.added": ["$TZ"] }),
            ),
            (
                Event::Served { plugin: "a".into(), digest: [1; 32], before: Some([2; 32]) },
                json!({ "event": "plugin.replaced", "wharf.plugin": "a", "wharf.plugin.sha256": "01".repeat(32),
                        "wharf.plugin.sha256.before": "02".repeat(32) }),
            ),
            (
                Event::ConfigRefused { file: Some("/w.toml".into()), problem: "why".into() },
                json!({ "event": "config.refused", "wharf.file": "/w.toml", "problem": "why" }),
            ),
            (
                Event::Failed { plugin: "a".into(), stage: "load", problem: "why".into(), last_good: true },
                json!({ "event": "plugin.failed", "outcome": "last_good_serves", "error.type": "load",
                        "wharf.plugin": "a", "problem": "why" }),
            ),
        ] {
            assert_eq!(line(&noted(&event)), expected);
        }
    }
}
