//! URIs as clients name them.

use wharf_protocol::RpcError;

use super::offer::MAX_URI_BYTES;

/// No resource has a longer one, and what is refused is not repeated at any length.
pub fn check_uri(uri: &str) -> Result<(), RpcError> {
    if uri.len() > MAX_URI_BYTES {
        return Err(RpcError::invalid_params(format!("the URI has more than {MAX_URI_BYTES} bytes")));
    }
    Ok(())
}
