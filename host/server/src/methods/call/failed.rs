//! Why a call has no result, and who is told what of it.

use wharf_protocol::RpcError;

use crate::{
    base::text::{clean, escaped},
    plugins::catalog::Served,
};

/// The key under which wharf itself asks modern clients for their roots.
pub const ROOTS_KEY: &str = "wharf.roots";

/// Why a call has no result.
pub enum Failed {
    /// A JSON-RPC error, whatever the method.
    Rpc(RpcError),
    /// The operation failed: a tool result with `isError`, or an internal error of other methods.
    Explained(String),
    /// Not a failure: the client is to answer first. Modern only; the JSON of the result.
    InputRequired(String),
}

impl From<RpcError> for Failed {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

/// A failure of anything but a tool.
pub fn other_failed(failed: Failed) -> Result<String, RpcError> {
    match failed {
        Failed::Rpc(error) => Err(error),
        Failed::Explained(text) => Err(RpcError::internal(text)),
        Failed::InputRequired(result) => Ok(result),
    }
}

/// A plugin that breaks the contract: the client hears which, the operator how.
pub fn defect(served: &Served, problem: &str) -> Failed {
    tracing::warn!(plugin = served.config.id, "a defect of the plugin: {}", escaped(problem));
    Failed::Explained(format!("The plugin `{}` failed: {}.", served.config.id, clean(problem)))
}
