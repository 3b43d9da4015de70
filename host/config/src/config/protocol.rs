//! `[protocol]`: which parts of MCP are served, and how long clients may cache lists.

use anyhow::{Result, bail, ensure};
use wharf_protocol::encode::CacheHint;

use super::{
    raw,
    state_keys::{self, StateKeySource},
};
use crate::access::capability::Absolute;

#[derive(Debug, Clone, PartialEq)]
pub struct Protocol {
    /// Whether the revisions without a handshake are served.
    pub modern: bool,
    /// Whether the revisions with a handshake are served.
    pub legacy: bool,
    /// Whether the HTTP transport of 2024-11-05 is served, besides the current one.
    pub sse: bool,
    /// Whether tasks are served: those of 2025-11-25, and those of the extension of 2026-07-28.
    pub tasks: bool,
    /// The keys that seal what clients carry; the first one seals. If the config names no key, wharf makes one.
    pub state_keys: Vec<StateKeySource>,
    /// How long clients may cache lists.
    pub lists: CacheHint,
}

/// The longest time for which clients may cache a list: a day.
const MAX_TTL_MS: u64 = 24 * 3600 * 1000;

pub fn resolve(raw: raw::Protocol, absolute: Absolute<'_>) -> Result<Protocol> {
    let (modern, legacy, sse) = (raw.modern, raw.legacy, raw.sse);
    ensure!(legacy || modern, "`legacy` and `modern` are both off, so no revision is left");
    ensure!(legacy || !sse, "`sse` needs `legacy`: that transport carries only revisions with a handshake");
    let mut tasks = raw.extensions.is_none();
    for extension in raw.extensions.iter().flatten() {
        match extension.as_str() {
            "tasks" => tasks = true,
            other => bail!("`extensions`: `{other}` is not offered; there is: tasks"),
        }
    }
    let state_keys = state_keys::resolve(raw.state_keys, raw.state_key_env, absolute)?;
    let ttl_ms = raw.list_ttl_ms.unwrap_or(0);
    ensure!(ttl_ms <= MAX_TTL_MS, "`list_ttl_ms` is from 0 to {MAX_TTL_MS}");
    let public = match raw.list_scope.as_deref() {
        None | Some("private") => false,
        Some("public") => true,
        Some(other) => bail!("`list_scope`: `{other}` is neither \"private\" nor \"public\""),
    };
    Ok(Protocol { modern, legacy, sse, tasks, state_keys, lists: CacheHint { ttl_ms, public } })
}
