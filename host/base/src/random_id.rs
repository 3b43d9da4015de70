//! Ids that nobody can guess, for sessions, streams and tasks.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use wharf_protocol::RpcError;

/// 192 random bits, in visible ASCII.
pub fn id() -> Result<String, RpcError> {
    let mut random = [0; 24];
    getrandom::fill(&mut random).map_err(|_| RpcError::internal("no randomness for an id"))?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}
