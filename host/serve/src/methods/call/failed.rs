//! Why a call has no result, and what the client and the operator learn about it.

use wharf_protocol::RpcError;

use wharf_base::text::{clean, escaped};
use wharf_plugins::plugins::served::Served;

/// The key of the question with which wharf itself asks modern clients for their roots.
pub const ROOTS_KEY: &str = "wharf.roots";

/// Why a call has no result.
pub enum Failed {
    /// The answer is this JSON-RPC error.
    Rpc(RpcError),
    /// The plugin's operation failed. The answer is a tool result with `isError`, or an internal error for other methods.
    Explained(String),
    /// Not a failure: the client has to answer questions first. The JSON of this result; modern revisions only.
    InputRequired(String),
}

impl From<RpcError> for Failed {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

/// The answer to a failed request that is not `tools/call`.
pub fn other_failed(failed: Failed) -> Result<String, RpcError> {
    match failed {
        Failed::Rpc(error) => Err(error),
        Failed::Explained(text) => Err(RpcError::internal(text)),
        Failed::InputRequired(result) => Ok(result),
    }
}

/// Reports that a plugin broke its contract, to the log and to the client.
pub fn defect(served: &Served, problem: &str) -> Failed {
    tracing::warn!(plugin = served.config.id, "a defect of the plugin: {}", escaped(problem));
    Failed::Explained(format!("The plugin `{}` failed: {}.", served.config.id, clean(problem)))
}
