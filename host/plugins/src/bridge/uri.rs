//! Validates URIs that clients send.

use wharf_protocol::RpcError;

use super::offer::MAX_URI_BYTES;

/// Refuses a URI that is longer than any published one may be, so that error messages never repeat a very long URI.
pub fn check_uri(uri: &str) -> Result<(), RpcError> {
    if uri.len() > MAX_URI_BYTES {
        return Err(RpcError::invalid_params(format!("the URI has more than {MAX_URI_BYTES} bytes")));
    }
    Ok(())
}
