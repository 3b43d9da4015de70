//! Tools, resources, prompts and results, as the embedding program gets them. They are types of their own, because those of the protocol
//! crate change with each revision, and the compiler reports here what a change is to mean for programs.

use serde_json::{Map, Value};
use wharf_protocol::{Shown, model as mcp};

/// A JSON object.
pub type Object = Map<String, Value>;

/// A tool that can be called.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Tool {
    /// The name under which it is called.
    pub name: String,
    /// The title that a person sees instead of the name.
    pub title: Option<String>,
    /// The description for models; empty if the plugin gives none.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of its structured content.
    pub output_schema: Option<Value>,
    /// Hints on what a call does, such as `readOnlyHint`. They grant nothing.
    pub annotations: Option<Object>,
    /// Further members of the tool in MCP, such as `icons` and `_meta`.
    pub more: Object,
}

/// A resource that can be read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Resource {
    /// The URI under which it is read.
    pub uri: String,
    /// The name that a person or a model sees.
    pub name: String,
    /// What it contains.
    pub description: Option<String>,
    /// The type of its contents, if it is known beforehand.
    pub mime_type: Option<String>,
    /// Further members of the resource in MCP, such as `title`, `annotations` and `_meta`.
    pub more: Object,
}

/// A pattern of URIs, which is filled in and then read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// A URI template of RFC 6570.
    pub uri_template: String,
    /// The name that a person or a model sees.
    pub name: String,
    /// What the resources of this template contain.
    pub description: Option<String>,
    /// The type of their contents, if all of them have the same.
    pub mime_type: Option<String>,
    /// Further members of the template in MCP, such as `title`, `annotations` and `_meta`.
    pub more: Object,
}

/// A prompt that can be filled in.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Prompt {
    /// The name under which it is filled in.
    pub name: String,
    /// A description for the person who chooses among prompts.
    pub description: Option<String>,
    /// Its arguments.
    pub arguments: Vec<PromptArgument>,
    /// Further members of the prompt in MCP, such as `title` and `_meta`.
    pub more: Object,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// A description for the person who fills it in.
    pub description: Option<String>,
    /// Whether the prompt cannot be made without it.
    pub required: bool,
}

/// A block of content, in a message or in the result of a tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Plain text.
    Text(String),
    /// A picture.
    #[non_exhaustive]
    Image {
        /// The type, such as `image/png`.
        mime_type: String,
        /// The bytes of the file.
        data: Vec<u8>,
    },
    /// A sound.
    #[non_exhaustive]
    Audio {
        /// The type, such as `audio/wav`.
        mime_type: String,
        /// The bytes of the file.
        data: Vec<u8>,
    },
    /// A link to a resource.
    Link(ResourceLink),
    /// A resource together with its contents.
    Resource(ResourceContents),
    /// A block of another kind, as MCP writes it.
    Other(Object),
}

impl Content {
    /// Returns the text, if the block is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A link to a resource, without its contents.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResourceLink {
    /// The URI under which the resource can be read.
    pub uri: String,
    /// The name that a person or a model sees.
    pub name: String,
    /// The type of its contents, if it is known.
    pub mime_type: Option<String>,
    /// Further members of the link in MCP, such as `title` and `annotations`.
    pub more: Object,
}

/// The contents of a resource, or one piece of them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResourceContents {
    /// The URI that was read, or one below it.
    pub uri: String,
    /// The type of the body, if it is known.
    pub mime_type: Option<String>,
    /// The body.
    pub body: Body,
    /// Further members of the contents in MCP, such as `_meta`.
    pub more: Object,
}

/// The body of a resource. MCP has these two kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// The result of a call of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The content that a model reads, in this order.
    pub content: Vec<Content>,
    /// The content for programs; it matches the tool's output schema, if there is one.
    pub structured: Option<Value>,
    /// Whether the tool failed; the content tells a model how.
    pub is_error: bool,
    /// The result's `_meta`, if the plugin gave one.
    pub meta: Option<Object>,
}

impl ToolResult {
    /// Returns all blocks of text, one per line.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n")
    }
}

/// The result of reading one URI.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReadResult {
    /// The contents: several pieces if the URI leads to several resources, such as a folder; never empty.
    pub contents: Vec<ResourceContents>,
}

/// A prompt that was filled in.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PromptResult {
    /// A description for the person who chose the prompt.
    pub description: Option<String>,
    /// The messages that start the conversation, in this order.
    pub messages: Vec<PromptMessage>,
    /// The result's `_meta`, if the plugin gave one.
    pub meta: Option<Object>,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PromptMessage {
    /// The author of the message.
    pub role: Role,
    /// The content of the message.
    pub content: Content,
}

/// The author of a message in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Values that an argument may have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// The values, best first.
    pub values: Vec<String>,
    /// How many values there are in all, if that is known.
    pub total: Option<u32>,
    /// Whether there are more values than `values`.
    pub has_more: bool,
}

/// A schema was parsed when its plugin was loaded, so this cannot fail.
fn schema(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn text_of(text: Shown) -> String {
    text.into_inner()
}

impl From<mcp::Tool> for Tool {
    fn from(tool: mcp::Tool) -> Self {
        // Calls of a program never run as tasks.
        let mcp::Tool { name, title, description, input_schema, output_schema, annotations, task: _, more } = tool;
        Self {
            name,
            title: title.map(text_of),
            description: description.into_inner(),
            input_schema: schema(input_schema.get()),
            output_schema: output_schema.map(|text| schema(text.get())),
            annotations,
            more: more.into_inner(),
        }
    }
}

impl From<mcp::Resource> for Resource {
    fn from(resource: mcp::Resource) -> Self {
        let mcp::Resource { uri, name, description, mime_type, more } = resource;
        Self {
            uri: uri.into_inner(),
            name: name.into_inner(),
            description: description.map(text_of),
            mime_type: mime_type.map(text_of),
            more: more.into_inner(),
        }
    }
}

impl From<mcp::ResourceTemplate> for ResourceTemplate {
    fn from(template: mcp::ResourceTemplate) -> Self {
        let mcp::ResourceTemplate { uri_template, name, description, mime_type, more } = template;
        Self {
            uri_template: uri_template.into_inner(),
            name: name.into_inner(),
            description: description.map(text_of),
            mime_type: mime_type.map(text_of),
            more: more.into_inner(),
        }
    }
}

impl From<mcp::Prompt> for Prompt {
    fn from(prompt: mcp::Prompt) -> Self {
        let mcp::Prompt { name, description, arguments, more } = prompt;
        Self {
            name,
            description: description.map(text_of),
            arguments: arguments.into_iter().map(Into::into).collect(),
            more: more.into_inner(),
        }
    }
}

impl From<mcp::PromptArgument> for PromptArgument {
    fn from(argument: mcp::PromptArgument) -> Self {
        let mcp::PromptArgument { name, description, required } = argument;
        Self { name: name.into_inner(), description: description.map(text_of), required }
    }
}

impl From<mcp::Content> for Content {
    fn from(content: mcp::Content) -> Self {
        match content {
            mcp::Content::Text(text) => Self::Text(text),
            mcp::Content::Image { mime_type, data } => Self::Image { mime_type, data },
            mcp::Content::Audio { mime_type, data } => Self::Audio { mime_type, data },
            mcp::Content::Link(mcp::ResourceLink { uri, name, mime_type, more }) => {
                Self::Link(ResourceLink { uri, name, mime_type, more })
            }
            mcp::Content::Embedded(contents) => Self::Resource(contents.into()),
            mcp::Content::Raw(block) => Self::Other(block),
        }
    }
}

impl From<mcp::ResourceContents> for ResourceContents {
    fn from(contents: mcp::ResourceContents) -> Self {
        let mcp::ResourceContents { uri, mime_type, body, more } = contents;
        let body = match body {
            mcp::Body::Text(text) => Body::Text(text),
            mcp::Body::Bytes(bytes) => Body::Bytes(bytes),
        };
        Self { uri, mime_type, body, more }
    }
}

impl From<mcp::ToolResult> for ToolResult {
    fn from(result: mcp::ToolResult) -> Self {
        let mcp::ToolResult { content, structured, is_error, meta } = result;
        Self { content: content.into_iter().map(Into::into).collect(), structured, is_error, meta }
    }
}

impl From<mcp::ReadResult> for ReadResult {
    fn from(mcp::ReadResult { contents }: mcp::ReadResult) -> Self {
        Self { contents: contents.into_iter().map(Into::into).collect() }
    }
}

impl From<mcp::PromptResult> for PromptResult {
    fn from(result: mcp::PromptResult) -> Self {
        let mcp::PromptResult { description, messages, meta } = result;
        Self { description: description.map(text_of), messages: messages.into_iter().map(Into::into).collect(), meta }
    }
}

impl From<mcp::PromptMessage> for PromptMessage {
    fn from(mcp::PromptMessage { role, content }: mcp::PromptMessage) -> Self {
        let role = match role {
            mcp::Role::User => Role::User,
            mcp::Role::Assistant => Role::Assistant,
        };
        Self { role, content: content.into_inner().into() }
    }
}

impl From<mcp::Completion> for Completion {
    fn from(mcp::Completion { values, total, has_more }: mcp::Completion) -> Self {
        Self { values: values.into_iter().map(text_of).collect(), total, has_more }
    }
}
