//! Tools, resources, prompts and results in their newest, richest form. `encode` writes them for a revision.
//!
//! Fields called `more` hold members that the plugin gave as JSON, such as `_meta`, `icons`, `title`, `annotations`, and those that
//! later revisions may bring. They never replace a member that has a field of its own here.
//!
//! What is [`Shown`] was cleaned, or would have been refused. The rest is made by wharf, or data that somebody asked for.

use serde_json::{Value, value::RawValue};

use crate::{Object, Shown};

/// Something that a model can do.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The name under which clients call it, the operator's prefix included.
    pub name: String,
    /// What a person is shown instead of the name; since 2025-06-18.
    pub title: Option<Shown>,
    /// For the model: what the tool does and when to use it.
    pub description: Shown,
    /// The JSON Schema of its arguments.
    pub input_schema: Shown<Box<RawValue>>,
    /// The JSON Schema of its structured content; since 2025-06-18.
    pub output_schema: Option<Shown<Box<RawValue>>>,
    /// Hints on what a call does, such as `readOnlyHint`; since 2025-03-26. They grant nothing.
    pub annotations: Option<Object>,
    /// Whether its calls may or must run in the background.
    pub task: TaskSupport,
    /// Further members: see the top of this file.
    pub more: Shown<Object>,
}

/// Whether the calls of a tool run in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSupport {
    /// A call is answered with its result, never with a task.
    Forbidden,
    /// The client may ask for a task, or the server may make one of the call.
    Optional,
    /// Every call becomes a task, so clients without tasks cannot call it.
    Required,
}

/// Something that a client can read under its URI.
#[derive(Debug, Clone)]
pub struct Resource {
    /// The URI as its plugin published it; it has no prefix.
    pub uri: Shown,
    /// What a person or a model knows it by.
    pub name: Shown,
    /// What it holds.
    pub description: Option<Shown>,
    /// The type of its contents, if it is known beforehand.
    pub mime_type: Option<Shown>,
    /// Further members: see the top of this file.
    pub more: Shown<Object>,
}

/// A pattern of URIs that a client can fill in and then read.
#[derive(Debug, Clone)]
pub struct ResourceTemplate {
    /// A URI template of RFC 6570.
    pub uri_template: Shown,
    /// What a person or a model knows it by.
    pub name: Shown,
    /// What the resources hold that it leads to.
    pub description: Option<Shown>,
    /// The type of their contents, if all of them have the same.
    pub mime_type: Option<Shown>,
    /// Further members: see the top of this file.
    pub more: Shown<Object>,
}

/// Messages that a person can start a conversation with.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The name under which clients get it, the operator's prefix included.
    pub name: String,
    /// For the person who chooses among prompts.
    pub description: Option<Shown>,
    /// The arguments that are filled in before the messages are made.
    pub arguments: Vec<PromptArgument>,
    /// Further members: see the top of this file.
    pub more: Shown<Object>,
}

/// What a prompt wants to be told.
#[derive(Debug, Clone)]
pub struct PromptArgument {
    /// The key under which the client gives the value.
    pub name: Shown,
    /// For the person who fills it in.
    pub description: Option<Shown>,
    /// Whether a request without it is refused.
    pub required: bool,
}

/// A block of content, in a message or in the result of a tool.
#[derive(Debug, Clone)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// A picture.
    Image {
        /// Such as `image/png`.
        mime_type: String,
        /// The file itself; base64 is made of it when it is written.
        data: Vec<u8>,
    },
    /// A sound; since 2025-03-26, before which a text stands in its place.
    Audio {
        /// Such as `audio/wav`.
        mime_type: String,
        /// The file itself; base64 is made of it when it is written.
        data: Vec<u8>,
    },
    /// A resource to read if it is wanted; since 2025-06-18, before which a text stands in its place.
    Link(ResourceLink),
    /// A resource together with what it holds.
    Embedded(ResourceContents),
    /// A whole block as the plugin wrote it: an object whose `type` is a string.
    Raw(Object),
}

/// Names a resource without its contents.
#[derive(Debug, Clone)]
pub struct ResourceLink {
    /// Where it can be read.
    pub uri: String,
    /// What a person or a model knows it by.
    pub name: String,
    /// The type of its contents, if it is known.
    pub mime_type: Option<String>,
    /// Further members: see the top of this file.
    pub more: Object,
}

/// What a resource holds, or one piece of it.
#[derive(Debug, Clone)]
pub struct ResourceContents {
    /// The URI that was read, or one below it.
    pub uri: String,
    /// The type of the body, if it is known.
    pub mime_type: Option<String>,
    /// What was read.
    pub body: Body,
    /// Further members: see the top of this file.
    pub more: Object,
}

/// The contents of a resource, as text or as bytes.
#[derive(Debug, Clone)]
pub enum Body {
    /// Written as it is.
    Text(String),
    /// Written as base64.
    Bytes(Vec<u8>),
}

/// What a call of a tool came to.
#[derive(Debug, Clone, Default)]
pub struct ToolResult {
    /// For the model to read, in this order.
    pub content: Vec<Content>,
    /// What a program can use; it fits the tool's output schema, if there is one.
    pub structured: Option<Value>,
    /// Whether the tool failed; the content tells the model how.
    pub is_error: bool,
    /// The result's `_meta`, if the plugin gave one.
    pub meta: Option<Object>,
}

impl ToolResult {
    /// A failed call, of which the model is told in one text.
    pub fn error(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], is_error: true, ..Self::default() }
    }
}

/// What was read under one URI.
#[derive(Debug, Clone)]
pub struct ReadResult {
    /// Several pieces if the URI leads to several resources, such as a folder; never empty.
    pub contents: Vec<ResourceContents>,
}

/// A prompt that was filled in.
#[derive(Debug, Clone)]
pub struct PromptResult {
    /// For the person who chose it.
    pub description: Option<Shown>,
    /// What the conversation starts with, in this order.
    pub messages: Vec<PromptMessage>,
    /// The result's `_meta`, if the plugin gave one.
    pub meta: Option<Object>,
}

/// One message of a prompt.
#[derive(Debug, Clone)]
pub struct PromptMessage {
    /// Whose message it is.
    pub role: Role,
    /// What is said.
    pub content: Shown<Content>,
}

/// Who speaks in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Suggestions for an argument that a person is typing.
#[derive(Debug, Clone)]
pub struct Completion {
    /// Best first. No more than 100 of them reach the client.
    pub values: Vec<Shown>,
    /// How many there are in all, if that is known.
    pub total: Option<u32>,
    /// Whether there are more than `values`.
    pub has_more: bool,
}

/// A question for the client: the `method` and `params` of a request that only it can answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// Asks a person to fill in a form.
    Form {
        /// What the person is asked.
        message: Shown,
        /// The JSON Schema of the answer: an object whose properties are the form's fields.
        schema: Shown<Value>,
    },
    /// Asks a person to open a page.
    Page {
        /// Why they should.
        message: Shown,
        /// Where the page is.
        url: Shown,
    },
    /// Asks the client's model to write something; these are the parameters of `sampling/createMessage`.
    Sample(Shown<Object>),
    /// Asks for the client's roots.
    Roots,
}

/// What `server/discover` and `initialize` say of the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerInfo {
    /// For programs.
    pub name: String,
    /// For people; since 2025-06-18.
    pub title: Option<String>,
    /// The version of the server, not of the protocol.
    pub version: String,
    /// For people; since 2025-11-25.
    pub description: Option<String>,
    /// A URL; since 2025-11-25.
    pub website: Option<String>,
    /// Each with at least its `src`; since 2025-11-25.
    pub icons: Vec<Object>,
}
