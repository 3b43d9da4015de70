//! What a line of the audit log says of anything else than a run. Names are as in `entry`.

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use serde::Serialize;

use super::members;
use crate::{base::text::hex, observe::journal::Event};

/// Something else than a run.
#[derive(Serialize, Default)]
struct Other<'a> {
    time: String,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(rename = "error.type", skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(rename = "wharf.plugin", skip_serializing_if = "Option::is_none")]
    plugin: Option<&'a str>,
    #[serde(rename = "wharf.plugin.sha256", skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(rename = "wharf.plugin.sha256.before", skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// What was approved of: a tool, a prompt or a resource.
    #[serde(rename = "wharf.name", skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(rename = "wharf.principal", skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    #[serde(rename = "wharf.approval", skip_serializing_if = "Option::is_none")]
    approval: Option<&'static str>,
    #[serde(rename = "wharf.grants.added", skip_serializing_if = "<[String]>::is_empty")]
    added: &'a [String],
    #[serde(rename = "wharf.grants.removed", skip_serializing_if = "<[String]>::is_empty")]
    removed: &'a [String],
    #[serde(rename = "wharf.file", skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(rename = "wharf.file.sha256", skip_serializing_if = "Option::is_none")]
    file_digest: Option<String>,
    #[serde(rename = "wharf.version", skip_serializing_if = "Option::is_none")]
    version: Option<&'static str>,
    #[serde(rename = "process.pid", skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(rename = "wharf.bytes", skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    /// Calls that were refused while the log could not be written, or that have no end when wharf stops.
    #[serde(rename = "wharf.calls", skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
    /// Lines for which there was no room.
    #[serde(rename = "wharf.lost", skip_serializing_if = "Option::is_none")]
    lost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl Other<'_> {
    fn of(event: &'static str) -> Self {
        Self { time: now(), event, ..Self::default() }
    }
}

/// The members of a line about an event.
pub fn noted(event: &Event) -> Vec<u8> {
    let path = |path: &Option<std::path::PathBuf>| path.as_deref().map(shown);
    members::of_object(&match event {
        Event::ConfigRead { file, digest } => {
            Other { file: path(file), file_digest: digest.map(|digest| hex(&digest)), ..Other::of("config.read") }
        }
        Event::ConfigRefused { file, problem } => {
            Other { file: path(file), problem: Some(clipped(problem)), ..Other::of("config.refused") }
        }
        Event::Granted { plugin, added, removed } => {
            Other { plugin: Some(plugin), added, removed, ..Other::of("grants.changed") }
        }
        Event::Approved { plugin, name, principal, remembered } => Other {
            plugin: Some(plugin),
            name: Some(clipped(name)),
            principal: Some(clipped(principal)),
            approval: Some(remembered.as_str()),
            ..Other::of("approval.remembered")
        },
        Event::Served { plugin, digest, before } => Other {
            plugin: Some(plugin),
            digest: Some(hex(digest)),
            before: before.map(|before| hex(&before)),
            ..Other::of(if before.is_some() { "plugin.replaced" } else { "plugin.loaded" })
        },
        Event::Removed { plugin, digest } => {
            Other { plugin: Some(plugin), digest: Some(hex(digest)), ..Other::of("plugin.removed") }
        }
        Event::Failed { plugin, stage, problem, last_good } => Other {
            plugin: Some(plugin),
            error: Some(stage),
            outcome: Some(if *last_good { "last_good_serves" } else { "not_served" }),
            problem: Some(clipped(problem)),
            ..Other::of("plugin.failed")
        },
    })
}

pub fn started() -> Vec<u8> {
    members::of_object(&Other {
        version: Some(env!("CARGO_PKG_VERSION")),
        pid: Some(std::process::id()),
        ..Other::of("start")
    })
}

/// `unfinished`: how many calls have begun and not ended.
pub fn stopped(unfinished: u64) -> Vec<u8> {
    members::of_object(&Other { pid: Some(std::process::id()), calls: Some(unfinished), ..Other::of("stop") })
}

/// An unfinished line was found at the end of the log and put into another file.
pub fn torn(file: &Path, bytes: usize) -> Vec<u8> {
    members::of_object(&Other { file: Some(shown(file)), bytes: Some(bytes), ..Other::of("torn") })
}

/// The log could not be written for some time.
pub fn interrupted(problem: &str, lasted: Duration, refused: u64, lost: u64) -> Vec<u8> {
    members::of_object(&Other {
        problem: Some(clipped(problem)),
        duration_us: u64::try_from(lasted.as_micros()).ok(),
        calls: Some(refused),
        lost: Some(lost),
        ..Other::of("interrupted")
    })
}

/// Somebody else has moved or removed the file, so that another one was begun.
pub fn missing(file: &Path) -> Vec<u8> {
    members::of_object(&Other { file: Some(shown(file)), ..Other::of("file.missing") })
}

fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

fn clipped(text: &str) -> String {
    members::clipped(text).into_owned()
}

fn shown(path: &Path) -> String {
    clipped(&path.display().to_string())
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
