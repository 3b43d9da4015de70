//! The types that functions of a plugin may return, and functions that make content.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Body, Content, Media, Message, PromptOutcome, PromptResult, ReadOutcome, ResourceContents, ResourceLink, Result,
    Role, ToolOutcome, ToolResult,
};

/// A structured result. The tool's output schema is derived from `T`.
pub struct Json<T>(pub T);

/// A type that a tool may return, by itself or in a [`Result`].
pub trait IntoTool {
    /// Returns the JSON Schema of the structured result, if the result is structured.
    fn schema() -> Option<String> {
        None
    }
    fn into_tool(self) -> Result<ToolOutcome>;
}

impl IntoTool for String {
    fn into_tool(self) -> Result<ToolOutcome> {
        Ok(ToolOutcome::Text(self))
    }
}

impl IntoTool for &str {
    fn into_tool(self) -> Result<ToolOutcome> {
        Ok(ToolOutcome::Text(self.to_owned()))
    }
}

impl IntoTool for () {
    fn into_tool(self) -> Result<ToolOutcome> {
        Vec::<Content>::new().into_tool()
    }
}

impl IntoTool for Content {
    fn into_tool(self) -> Result<ToolOutcome> {
        vec![self].into_tool()
    }
}

impl IntoTool for Vec<Content> {
    fn into_tool(self) -> Result<ToolOutcome> {
        Ok(ToolOutcome::Done(ToolResult { content: self, structured: None, is_error: false, more: None }))
    }
}

impl IntoTool for ToolResult {
    fn into_tool(self) -> Result<ToolOutcome> {
        Ok(ToolOutcome::Done(self))
    }
}

impl IntoTool for ToolOutcome {
    fn into_tool(self) -> Result<ToolOutcome> {
        Ok(self)
    }
}

impl<T: Serialize + JsonSchema> IntoTool for Json<T> {
    fn schema() -> Option<String> {
        Some(crate::output_schema::<T>())
    }
    fn into_tool(self) -> Result<ToolOutcome> {
        Ok(ToolOutcome::Structured(serde_json::to_string(&self.0)?))
    }
}

impl<T: IntoTool> IntoTool for Result<T> {
    fn schema() -> Option<String> {
        T::schema()
    }
    fn into_tool(self) -> Result<ToolOutcome> {
        self?.into_tool()
    }
}

/// A type that the function of a resource may return.
pub trait IntoRead {
    fn into_read(self) -> Result<ReadOutcome>;
}

impl IntoRead for String {
    fn into_read(self) -> Result<ReadOutcome> {
        Ok(ReadOutcome::Text(self))
    }
}

impl IntoRead for Vec<ResourceContents> {
    fn into_read(self) -> Result<ReadOutcome> {
        Ok(ReadOutcome::Done(self))
    }
}

impl<T: IntoRead> IntoRead for Result<T> {
    fn into_read(self) -> Result<ReadOutcome> {
        self?.into_read()
    }
}

/// A type that the function of a prompt may return.
pub trait IntoPrompt {
    fn into_prompt(self) -> Result<PromptOutcome>;
}

impl IntoPrompt for String {
    fn into_prompt(self) -> Result<PromptOutcome> {
        Ok(PromptOutcome::Text(self))
    }
}

impl IntoPrompt for Vec<(Role, Content)> {
    fn into_prompt(self) -> Result<PromptOutcome> {
        let messages = self.into_iter().map(|(role, content)| Message { role, content }).collect();
        Ok(PromptOutcome::Done(PromptResult { description: None, messages, more: None }))
    }
}

impl IntoPrompt for PromptResult {
    fn into_prompt(self) -> Result<PromptOutcome> {
        Ok(PromptOutcome::Done(self))
    }
}

impl<T: IntoPrompt> IntoPrompt for Result<T> {
    fn into_prompt(self) -> Result<PromptOutcome> {
        self?.into_prompt()
    }
}

pub fn image(mime_type: impl Into<String>, data: Vec<u8>) -> Content {
    Content::Image(Media { mime_type: mime_type.into(), data })
}

pub fn audio(mime_type: impl Into<String>, data: Vec<u8>) -> Content {
    Content::Audio(Media { mime_type: mime_type.into(), data })
}

pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Content {
    Content::Link(ResourceLink { uri: uri.into(), name: name.into(), mime_type: None, more: None })
}

/// Returns a content block with an embedded text resource.
pub fn resource_text(uri: impl Into<String>, mime_type: &str, text: impl Into<String>) -> Content {
    Content::Embedded(ResourceContents {
        uri: uri.into(),
        mime_type: Some(mime_type.to_owned()),
        body: Body::Text(text.into()),
        more: None,
    })
}

/// Returns a structured result with content of its own instead of the generated text block.
pub fn structured(content: Vec<Content>, value: &impl Serialize) -> Result<ToolResult> {
    Ok(ToolResult { content, structured: Some(serde_json::to_string(value)?), is_error: false, more: None })
}
