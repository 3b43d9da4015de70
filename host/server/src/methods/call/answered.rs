//! What becomes of a call of a tool.

use tokio::sync::OwnedSemaphorePermit;
use wharf_protocol::{
    RpcError,
    model::{Content, ToolResult},
};

use super::failed::Failed;
use crate::{base::heavy::heavy, client::context::Context};

/// The answer to a call.
pub enum Answered {
    /// Text and nothing else, as most tools answer.
    Text(String),
    Result {
        result: ToolResult,
        /// How large its structured content is.
        bytes: usize,
        /// Held until a large result is written.
        turn: Option<OwnedSemaphorePermit>,
    },
    /// The client is to answer first. Modern only; the JSON of the result.
    InputRequired(String),
    /// It goes on in the background; the JSON that says so.
    Task(String),
}

impl Answered {
    pub fn error(text: String) -> Self {
        Self::Result { result: ToolResult::error(text), bytes: 0, turn: None }
    }

    pub fn failed(failed: Failed) -> Result<Self, RpcError> {
        match failed {
            Failed::Rpc(error) => Err(error),
            Failed::Explained(text) => Ok(Self::error(text)),
            Failed::InputRequired(result) => Ok(Self::InputRequired(result)),
        }
    }

    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Result { result, .. } if result.is_error)
    }

    /// The JSON of the result of the method.
    pub fn into_json(self, ctx: &Context) -> String {
        match self {
            Self::Text(text) => heavy(text.len(), || ctx.encoder.text_result(&text)),
            Self::Result { result, bytes, turn: _turn } => heavy(bytes, || ctx.encoder.tool_result(result)),
            Self::InputRequired(json) | Self::Task(json) => json,
        }
    }

    /// The result itself, if there is one.
    pub fn into_result(self) -> Option<ToolResult> {
        match self {
            Self::Text(text) => Some(ToolResult { content: vec![Content::Text(text)], ..ToolResult::default() }),
            Self::Result { result, .. } => Some(result),
            Self::InputRequired(_) | Self::Task(_) => None,
        }
    }
}
