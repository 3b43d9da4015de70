//! `[protocol]`: which parts of MCP are served.

use anyhow::{Result, ensure};

use super::{
    raw,
    state_keys::{self, StateKeySource},
};
use wharf_policy::access::capability::Absolute;

/// The keys are described in `raw`; here is only what is not said there.
#[derive(Debug, Clone, PartialEq)]
pub struct Protocol {
    pub modern: bool,
    pub legacy: bool,
    pub sse: bool,
    pub state_keys: Vec<StateKeySource>,
}

pub fn resolve(raw: raw::Protocol, absolute: Absolute<'_>) -> Result<Protocol> {
    let (modern, legacy, sse) = (raw.modern, raw.legacy, raw.sse);
    ensure!(legacy || modern, "`legacy` and `modern` are both off, so no revision is left");
    ensure!(legacy || !sse, "`sse` needs `legacy`: that transport carries only revisions with a handshake");
    let state_keys = state_keys::resolve(raw.state_keys, absolute)?;
    Ok(Protocol { modern, legacy, sse, state_keys })
}
