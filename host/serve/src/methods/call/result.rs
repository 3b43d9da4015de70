//! What a call of a tool gives its client, in the terms of MCP.

use wharf_protocol::{
    RpcError,
    model::{Content, ToolResult},
};

use super::failed::{Failed, Said};
use crate::client::context::Context;
use wharf_base::heavy::heavy;

/// The result of a call of a tool, before it is encoded.
pub enum CallResult {
    /// One text and nothing else, which is what most tools answer.
    Text(String),
    Result {
        result: ToolResult,
        /// The size of the structured content.
        bytes: usize,
    },
    /// The client has to answer questions first. The JSON of this result; modern revisions only.
    InputRequired(String),
    /// The call goes on as a task. The JSON of the result that says so.
    Task(String),
}

impl CallResult {
    /// Returns a result with `isError`, for the model to read.
    pub fn error(text: String) -> Self {
        Self::Result { result: ToolResult::error(text), bytes: 0 }
    }

    /// Returns what a call without a result gives its client.
    pub fn failed(failed: Failed) -> Result<Self, RpcError> {
        match failed.said {
            Said::Rpc(error) => Err(error),
            Said::Explained(text) => Ok(Self::error(text)),
            Said::InputRequired(result) => Ok(Self::InputRequired(result)),
        }
    }

    /// Adds a text of wharf itself, in a block of its own.
    pub fn and(self, text: String) -> Self {
        let (mut result, bytes) = match self {
            Self::Text(only) => (ToolResult { content: vec![Content::Text(only)], ..ToolResult::default() }, 0),
            Self::Result { result, bytes } => (result, bytes),
            other => return other,
        };
        result.content.push(Content::Text(text));
        Self::Result { result, bytes }
    }

    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Result { result, .. } if result.is_error)
    }

    /// Returns the result of `tools/call`, as JSON.
    pub fn into_json(self, ctx: &Context) -> String {
        match self {
            Self::Text(text) => heavy(text.len(), || ctx.encoder.text_result(&text)),
            Self::Result { result, bytes } => ctx.write(bytes, || ctx.encoder.tool_result(result)),
            Self::InputRequired(json) | Self::Task(json) => json,
        }
    }
}
