//! Ids that nobody can guess, for sessions, streams and tasks.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use wharf_protocol::RpcError;

/// Returns a random number of 63 bits. Without randomness, it is zero; but then no session gets an id either.
pub fn number() -> u64 {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_or(0, |()| u64::from_ne_bytes(random) >> 1)
}

/// 192 random bits, in visible ASCII.
pub fn id() -> Result<String, RpcError> {
    let mut random = [0; 24];
    getrandom::fill(&mut random).map_err(|_| RpcError::internal("no randomness for an id"))?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}
