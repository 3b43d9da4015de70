//! The possible answers to a call of a tool.

use wharf_protocol::{RpcError, model::ToolResult};
use wharf_sandbox::places::Place;

use super::failed::{Failed, Said};
use crate::client::context::Context;
use wharf_base::heavy::heavy;

/// The answer to a call.
pub enum Answered {
    /// One text and nothing else, which is what most tools answer.
    Text(String),
    Result {
        result: ToolResult,
        /// The size of the structured content.
        bytes: usize,
        /// If the result is large, held until it is written.
        turn: Option<Place>,
    },
    /// The client has to answer questions first. The JSON of this result; modern revisions only.
    InputRequired(String),
    /// The call goes on as a task. The JSON of the result that says so.
    Task(String),
}

impl Answered {
    pub fn error(text: String) -> Self {
        Self::Result { result: ToolResult::error(text), bytes: 0, turn: None }
    }

    /// What a client is answered to a call that failed.
    pub fn failed(failed: Failed) -> Result<Self, RpcError> {
        match failed.said {
            Said::Rpc(error) => Err(error),
            Said::Explained(text) => Ok(Self::error(text)),
            Said::InputRequired(result) => Ok(Self::InputRequired(result)),
        }
    }

    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Result { result, .. } if result.is_error)
    }

    /// The result of `tools/call`, as JSON.
    pub fn into_json(self, ctx: &Context) -> String {
        match self {
            Self::Text(text) => heavy(text.len(), || ctx.encoder.text_result(&text)),
            Self::Result { result, bytes, turn: _turn } => heavy(bytes, || ctx.encoder.tool_result(result)),
            Self::InputRequired(json) | Self::Task(json) => json,
        }
    }
}
