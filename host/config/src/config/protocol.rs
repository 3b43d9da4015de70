//! `[protocol]`: which parts of MCP are served.

use anyhow::{Result, ensure};

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
    /// The keys that seal what clients carry; the first one seals. If the config names no key, wharf makes one.
    pub state_keys: Vec<StateKeySource>,
}

pub fn resolve(raw: raw::Protocol, absolute: Absolute<'_>) -> Result<Protocol> {
    let (modern, legacy, sse) = (raw.modern, raw.legacy, raw.sse);
    ensure!(legacy || modern, "`legacy` and `modern` are both off, so no revision is left");
    ensure!(legacy || !sse, "`sse` needs `legacy`: that transport carries only revisions with a handshake");
    let state_keys = state_keys::resolve(raw.state_keys, absolute)?;
    Ok(Protocol { modern, legacy, sse, state_keys })
}
