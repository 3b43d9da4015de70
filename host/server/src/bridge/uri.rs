//! Checks URIs that clients send.

use wharf_protocol::RpcError;

use super::offer::MAX_URI_BYTES;

/// Refuses a URI that is longer than that of any resource, so that error messages never repeat a very long one.
pub fn check_uri(uri: &str) -> Result<(), RpcError> {
    if uri.len() > MAX_URI_BYTES {
        return Err(RpcError::invalid_params(format!("the URI has more than {MAX_URI_BYTES} bytes")));
    }
    Ok(())
}
