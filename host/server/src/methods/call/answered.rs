//! What becomes of a call of a tool.

use wharf_protocol::{RpcError, model::ToolResult};

use super::failed::Failed;
use crate::client::context::Context;

/// The answer to a call.
pub enum Answered {
    /// The JSON of the result, and whether it says that the call failed.
    Result { json: String, is_error: bool },
    /// The client is to answer first. Modern only; the JSON of the result.
    InputRequired(String),
}

impl Answered {
    pub fn tool(ctx: &Context, result: ToolResult) -> Self {
        let is_error = result.is_error;
        Self::Result { json: ctx.encoder.tool_result(result), is_error }
    }

    pub fn failed(ctx: &Context, failed: Failed) -> Result<Self, RpcError> {
        match failed {
            Failed::Rpc(error) => Err(error),
            Failed::Explained(text) => Ok(Self::tool(ctx, ToolResult::error(text))),
            Failed::InputRequired(result) => Ok(Self::InputRequired(result)),
        }
    }

    pub fn into_json(self) -> String {
        match self {
            Self::Result { json, .. } | Self::InputRequired(json) => json,
        }
    }
}
