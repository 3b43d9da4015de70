//! Tools, resources, prompts and results in their newest, richest form. `encode` writes them for a revision.
//!
//! Fields called `more` contain members that the plugin provided as JSON, such as `_meta`, `icons`, `title`, `annotations`, and those that
//! later revisions may add. They never replace a member that has a field of its own here.
//!
//! Values of type [`Shown`] have no hidden characters: these were removed, or the value was refused. The other values are made by wharf, or
//! are data that a client requested.

use serde_json::{Value, value::RawValue};

pub use crate::content::{Body, Content, ResourceContents, ResourceLink};
use crate::{object::Object, shown::Shown};

/// A tool that a model can call.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The name under which clients call it, including the operator's prefix.
    pub name: String,
    /// The title that a person sees instead of the name; since 2025-06-18.
    pub title: Option<Shown>,
    /// The description for the model: what the tool does and when to use it.
    pub description: Shown,
    /// The JSON Schema of its arguments.
    pub input_schema: Shown<Box<RawValue>>,
    /// The JSON Schema of its structured content; since 2025-06-18.
    pub output_schema: Option<Shown<Box<RawValue>>>,
    /// Hints on what a call does, such as `readOnlyHint`; since 2025-03-26. They grant nothing.
    pub annotations: Option<Object>,
    /// Whether its calls may or must run as tasks.
    pub task: TaskSupport,
    /// Further members: see the top of this file.
    pub more: Shown<Object>,
}

/// Whether the calls of a tool run as tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSupport {
    /// A call is answered with its result, never with a task.
    Forbidden,
    /// The client may request a task, or the server may turn the call into one.
    Optional,
    /// Every call becomes a task, so clients without tasks cannot call it.
    Required,
}

/// A resource that a client can read under its URI.
#[derive(Debug, Clone)]
pub struct Resource {
    /// The URI as its plugin published it; it has no prefix.
    pub uri: Shown,
    /// The name that a person or a model sees.
    pub name: Shown,
    /// What the resource contains.
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
    /// The name that a person or a model sees.
    pub name: Shown,
    /// What the resources of this template contain.
    pub description: Option<Shown>,
    /// The type of their contents, if all of them have the same.
    pub mime_type: Option<Shown>,
    /// Further members: see the top of this file.
    pub more: Shown<Object>,
}

/// Messages that a person can start a conversation with.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The name under which clients get it, including the operator's prefix.
    pub name: String,
    /// A description for the person who chooses among prompts.
    pub description: Option<Shown>,
    /// The arguments that are filled in before the messages are created.
    pub arguments: Vec<PromptArgument>,
    /// Further members: see the top of this file.
    pub more: Shown<Object>,
}

/// An argument of a prompt.
#[derive(Debug, Clone)]
pub struct PromptArgument {
    /// The key under which the client passes the value.
    pub name: Shown,
    /// A description for the person who fills it in.
    pub description: Option<Shown>,
    /// Whether a request without it is refused.
    pub required: bool,
}

/// The result of a call of a tool.
#[derive(Debug, Clone, Default)]
pub struct ToolResult {
    /// The content that the model reads, in this order.
    pub content: Vec<Content>,
    /// The content for programs; it matches the tool's output schema, if there is one.
    pub structured: Option<Value>,
    /// Whether the tool failed; the content tells the model how.
    pub is_error: bool,
    /// The result's `_meta`, if the plugin gave one.
    pub meta: Option<Object>,
}

impl ToolResult {
    /// Creates the result of a call that answers one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![Content::Text(text.into())])
    }

    /// Creates the result of a call that answers this content.
    pub fn new(content: Vec<Content>) -> Self {
        Self { content, ..Self::default() }
    }

    /// Creates the result of a failed call, with one text for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }
}

/// The result of reading one URI.
#[derive(Debug, Clone)]
pub struct ReadResult {
    /// The contents: several pieces if the URI leads to several resources, such as a folder; never empty.
    pub contents: Vec<ResourceContents>,
}

/// A prompt that was filled in.
#[derive(Debug, Clone)]
pub struct PromptResult {
    /// A description for the person who chose the prompt.
    pub description: Option<Shown>,
    /// The messages that start the conversation, in this order.
    pub messages: Vec<PromptMessage>,
    /// The result's `_meta`, if the plugin gave one.
    pub meta: Option<Object>,
}

/// One message of a prompt.
#[derive(Debug, Clone)]
pub struct PromptMessage {
    /// The author of the message.
    pub role: Role,
    /// The content of the message.
    pub content: Shown<Content>,
}

/// The author of a message in a conversation.
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
    /// The suggestions, best first. At most 100 of them reach the client.
    pub values: Vec<Shown>,
    /// How many suggestions there are in all, if that is known.
    pub total: Option<u32>,
    /// Whether there are more suggestions than `values`.
    pub has_more: bool,
}

/// A question for the client: the `method` and `params` of a request that only it can answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// Asks a person to fill in a form.
    Form {
        /// The text of the question.
        message: Shown,
        /// The JSON Schema of the answer: an object whose properties are the form's fields.
        schema: Shown<Value>,
    },
    /// Asks a person to open a page.
    Page {
        /// Why the person should open the page.
        message: Shown,
        /// The address of the page.
        url: Shown,
    },
    /// Asks the client's model to write something; these are the parameters of `sampling/createMessage`.
    Sample(Shown<Object>),
    /// Asks for the client's roots.
    Roots,
}

/// The description of the server in the answers to `server/discover` and `initialize`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerInfo {
    /// The name for programs.
    pub name: String,
    /// The name for people; since 2025-06-18.
    pub title: Option<String>,
    /// The version of the server, not of the protocol.
    pub version: String,
    /// A description for people; since 2025-11-25.
    pub description: Option<String>,
}
