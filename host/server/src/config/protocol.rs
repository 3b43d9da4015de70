//! `[protocol]`: which parts of MCP are served, and what clients are told of their lists.

use anyhow::{Result, bail, ensure};
use wharf_protocol::encode::CacheHint;

use super::{bounds::parse_hex32, raw};

#[derive(Debug, Clone, PartialEq)]
pub struct Protocol {
    /// The revisions without a handshake.
    pub modern: bool,
    /// The revisions with a handshake.
    pub legacy: bool,
    /// The transport of 2024-11-05, beside the endpoint of today.
    pub sse: bool,
    /// Calls in the background, as 2025-11-25 has them and as the extension of 2026-07-28 does.
    pub tasks: bool,
    /// Seals what modern clients carry between rounds. Without one, a key of this process alone.
    pub state_key: Option<StateKey>,
    /// How long clients may keep lists.
    pub lists: CacheHint,
}

/// A key, which no log shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StateKey(pub [u8; 32]);

impl std::fmt::Debug for StateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateKey(…)")
    }
}

/// The most that clients may be told to keep a list for: a day.
const MAX_TTL_MS: u64 = 24 * 3600 * 1000;

pub fn resolve(raw: &raw::Protocol) -> Result<Protocol> {
    let legacy = raw.legacy.unwrap_or(true);
    let modern = raw.modern.unwrap_or(true);
    let sse = raw.sse.unwrap_or(false);
    ensure!(legacy || modern, "`legacy` and `modern` are both off, so no revision is left");
    ensure!(legacy || !sse, "`sse` needs `legacy`: that transport carries only revisions with a handshake");
    let mut tasks = raw.extensions.is_none();
    for extension in raw.extensions.iter().flatten() {
        match extension.as_str() {
            "tasks" => tasks = true,
            other => bail!("`extensions`: `{other}` is not offered; there is: tasks"),
        }
    }
    let state_key = match &raw.state_key_env {
        None => None,
        Some(name) => {
            let key = std::env::var(name).unwrap_or_default();
            ensure!(!key.is_empty(), "`state_key_env`: the environment variable {name} is not set");
            Some(StateKey(parse_hex32(&format!("state_key_env`: the value of `{name}"), key.trim())?))
        }
    };
    let ttl_ms = raw.list_ttl_ms.unwrap_or(0);
    ensure!(ttl_ms <= MAX_TTL_MS, "`list_ttl_ms` is from 0 to {MAX_TTL_MS}");
    let public = match raw.list_scope.as_deref() {
        None | Some("private") => false,
        Some("public") => true,
        Some(other) => bail!("`list_scope`: `{other}` is neither \"private\" nor \"public\""),
    };
    Ok(Protocol { modern, legacy, sse, tasks, state_key, lists: CacheHint { ttl_ms, public } })
}
