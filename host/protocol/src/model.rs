//! Tools, resources, prompts and results in their newest, richest form. `encode` writes them for a revision.
//!
//! `more` fields hold members that the plugin gave as JSON: `_meta`, `icons`, `title`, `annotations` and whatever comes
//! later. They never replace a member that has a field of its own here.

use serde_json::{Value, value::RawValue};

use crate::Object;

#[derive(Debug, Clone)]
pub struct Tool {
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    pub input_schema: Box<RawValue>,
    pub output_schema: Option<Box<RawValue>>,
    pub annotations: Option<Object>,
    pub task: TaskSupport,
    pub more: Object,
}

/// Whether a tool runs in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSupport {
    Forbidden,
    Optional,
    Required,
}

#[derive(Debug, Clone)]
pub struct Resource {
    pub uri: String,
    pub name: String,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    pub more: Object,
}

#[derive(Debug, Clone)]
pub struct ResourceTemplate {
    pub uri_template: String,
    pub name: String,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    pub more: Object,
}

#[derive(Debug, Clone)]
pub struct Prompt {
    pub name: String,
    pub description: Option<String>,
    pub arguments: Vec<PromptArgument>,
    pub more: Object,
}

#[derive(Debug, Clone)]
pub struct PromptArgument {
    pub name: String,
    pub description: Option<String>,
    pub required: bool,
}

#[derive(Debug, Clone)]
pub enum Content {
    Text(String),
    Image {
        mime_type: String,
        data: Vec<u8>,
    },
    Audio {
        mime_type: String,
        data: Vec<u8>,
    },
    Link(ResourceLink),
    Embedded(ResourceContents),
    /// A complete block as the plugin wrote it; an object with a string `type`.
    Raw(Object),
}

#[derive(Debug, Clone)]
pub struct ResourceLink {
    pub uri: String,
    pub name: String,
    pub mime_type: Option<String>,
    pub more: Object,
}

#[derive(Debug, Clone)]
pub struct ResourceContents {
    pub uri: String,
    pub mime_type: Option<String>,
    pub body: Body,
    pub more: Object,
}

#[derive(Debug, Clone)]
pub enum Body {
    Text(String),
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone, Default)]
pub struct ToolResult {
    pub content: Vec<Content>,
    pub structured: Option<Value>,
    pub is_error: bool,
    /// The result's `_meta`, if the plugin gave one.
    pub meta: Option<Object>,
}

impl ToolResult {
    /// A failed call, told to the model in one sentence.
    pub fn error(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], is_error: true, ..Self::default() }
    }
}

#[derive(Debug, Clone)]
pub struct ReadResult {
    pub contents: Vec<ResourceContents>,
}

#[derive(Debug, Clone)]
pub struct PromptResult {
    pub description: Option<String>,
    pub messages: Vec<PromptMessage>,
    pub meta: Option<Object>,
}

#[derive(Debug, Clone)]
pub struct PromptMessage {
    pub role: Role,
    pub content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    User,
    Assistant,
}

#[derive(Debug, Clone)]
pub struct Completion {
    pub values: Vec<String>,
    pub total: Option<u32>,
    pub has_more: bool,
}

/// A question for the client: the `method` and `params` of a request that only it can answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    Form { message: String, schema: Value },
    Page { message: String, url: String },
    Sample(Object),
    Roots,
}

/// What `server/discover` and `initialize` say of wharf.
#[derive(Debug, Clone)]
pub struct ServerInfo {
    pub name: String,
    pub title: Option<String>,
    pub version: String,
}
