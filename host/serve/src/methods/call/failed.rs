//! Why a call has no result, and what the client and the operator learn about it.

use wharf_protocol::{
    RpcError,
    error::{
        HEADER_MISMATCH, INSUFFICIENT_SCOPE, INVALID_PARAMS, MISSING_CLIENT_CAPABILITY, RESOURCE_NOT_FOUND,
        TOO_MANY_REQUESTS,
    },
};

use wharf_base::text::{clean, escaped};
use wharf_plugins::plugins::served::Served;
use wharf_sandbox::Told;

/// The key of the question with which wharf itself asks modern clients for their roots.
pub const ROOTS_KEY: &str = "wharf.roots";

/// Why a call has no result.
pub struct Failed {
    pub why: Why,
    pub said: Said,
}

/// The kind of a failure, which a program that embeds wharf learns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// There is no such tool, resource, prompt or template.
    NotFound,
    /// The arguments are not valid. The JSON Pointer of the first problem, if it is known.
    InvalidArguments(Option<String>),
    /// A person has to approve the call, and cannot be asked.
    NeedsApproval,
    /// The client has to answer something, or to have a capability.
    NeedsClient,
    /// The call is not allowed.
    Refused,
    /// A limit is used up for now.
    Busy,
    /// Access that the call used was taken away.
    Revoked,
    /// The plugin ran and failed, or wharf has a defect.
    Failed,
}

/// What the client is told.
pub enum Said {
    /// The answer is this JSON-RPC error.
    Rpc(RpcError),
    /// The plugin's operation failed. The answer is a tool result with `isError`, or an internal error for other methods.
    Explained(String),
    /// Not a failure: the client has to answer questions first. The JSON of this result; modern revisions only.
    InputRequired(String),
}

impl From<RpcError> for Failed {
    fn from(error: RpcError) -> Self {
        let why = match error.code {
            INVALID_PARAMS | HEADER_MISMATCH => Why::InvalidArguments(None),
            RESOURCE_NOT_FOUND => Why::NotFound,
            MISSING_CLIENT_CAPABILITY => Why::NeedsClient,
            INSUFFICIENT_SCOPE => Why::Refused,
            TOO_MANY_REQUESTS => Why::Busy,
            _ => Why::Failed,
        };
        Self { why, said: Said::Rpc(error) }
    }
}

impl Failed {
    /// A failure that the client is told in a sentence.
    pub fn new(why: Why, text: impl Into<String>) -> Self {
        Self { why, said: Said::Explained(text.into()) }
    }

    /// The failure of a request for something that this caller does not have.
    pub fn unknown(error: RpcError) -> Self {
        match error.code {
            INVALID_PARAMS => Self { why: Why::NotFound, said: Said::Rpc(error) },
            _ => error.into(),
        }
    }
}

/// The answer to a failed request that is not `tools/call`.
pub fn other_failed(failed: Failed) -> Result<String, RpcError> {
    match failed.said {
        Said::Rpc(error) => Err(error),
        Said::Explained(text) => Err(RpcError::internal(text)),
        Said::InputRequired(result) => Ok(result),
    }
}

/// Reports that a plugin broke its contract, to the log and to the client. The problem may quote the plugin, so it is cut.
pub fn defect(served: &Served, problem: &str) -> Failed {
    let problem = Told::brief(format_args!("{problem}"));
    tracing::warn!(plugin = served.config.id, "a defect of the plugin: {}", escaped(&problem));
    Failed::new(Why::Failed, format!("The plugin `{}` failed: {}.", served.config.id, clean(&problem)))
}
