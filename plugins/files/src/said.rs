//! Answers in the reference server's form: text, and the same text again as structured content.

use wharf_sdk::{
    Content, IntoTool, Result, ToolOutcome, ToolResult, schemars, schemars::JsonSchema, serde, serde::Serialize,
};

/// The text of an answer.
pub struct Said(pub String);

/// The same answer as structured content.
#[derive(Serialize, JsonSchema)]
#[serde(crate = "serde")]
#[schemars(crate = "schemars")]
struct Structured {
    /// The text of the answer.
    content: String,
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl IntoTool for Said {
    fn schema() -> Option<String> {
        Some(wharf_sdk::output_schema::<Structured>())
    }

    fn into_tool(self) -> Result<ToolOutcome> {
        let structured = Structured { content: self.0 };
        let structured_json = serde_json::to_string(&structured)?;
        Ok(ToolOutcome::Done(ToolResult {
            content: vec![Content::Text(structured.content)],
            structured: Some(structured_json),
            is_error: false,
            more: None,
        }))
    }
}
