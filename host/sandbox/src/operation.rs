//! What a plugin can be made to do, what comes of it, and why nothing does.

use std::{sync::Arc, time::Duration};

use wasmtime::Trap;
use wasmtime_wasi::I32Exit;

use crate::bindings::{
    completions::Target,
    prompts::{Prompt, PromptOutcome, PromptResult},
    resources::{ReadOutcome, ResourceEntry, ResourceTemplate},
    tools::{Tool, ToolOutcome, ToolResult},
    types::{Body, Content, Context, Failure, ResourceContents, Round},
};

/// Say everything you offer.
#[derive(Debug)]
pub struct List;

/// Run a tool.
#[derive(Debug)]
pub struct CallTool {
    /// By the name that the plugin gives it.
    pub name: String,
    /// JSON. Shared, because a tool that asks is called again.
    pub args: Arc<String>,
    pub context: Context,
}

/// Read a resource.
#[derive(Debug)]
pub struct ReadResource {
    pub uri: String,
    pub context: Context,
}

/// Fill in a prompt.
#[derive(Debug)]
pub struct GetPrompt {
    /// By the name that the plugin gives it.
    pub name: String,
    pub args: Vec<(String, String)>,
    pub context: Context,
}

/// Complete an argument that a person is typing.
#[derive(Debug)]
pub struct Complete {
    pub target: Target,
    pub argument: String,
    pub value: String,
    pub others: Vec<(String, String)>,
}

/// What came of an operation in which a plugin may ask instead of answering.
#[derive(Debug)]
pub enum Outcome<T> {
    Done(T),
    /// It wants to be called again with the answers.
    Ask(Round),
}

impl<T> Outcome<T> {
    pub(crate) fn bytes(&self, of_done: impl FnOnce(&T) -> usize) -> Option<usize> {
        match self {
            Self::Done(done) => Some(of_done(done)),
            Self::Ask(_) => None,
        }
    }
}

/// What a tool answers.
#[derive(Debug)]
pub enum ToolAnswer {
    Text(String),
    /// JSON.
    Structured(String),
    Result(ToolResult),
}

/// What a resource holds.
#[derive(Debug)]
pub enum ReadAnswer {
    Text(String),
    Contents(Vec<ResourceContents>),
}

/// What a prompt comes to.
#[derive(Debug)]
pub enum PromptAnswer {
    Text(String),
    Result(PromptResult),
}

impl From<ToolOutcome> for Outcome<ToolAnswer> {
    fn from(outcome: ToolOutcome) -> Self {
        match outcome {
            ToolOutcome::Text(text) => Self::Done(ToolAnswer::Text(text)),
            ToolOutcome::Structured(json) => Self::Done(ToolAnswer::Structured(json)),
            ToolOutcome::Done(result) => Self::Done(ToolAnswer::Result(result)),
            ToolOutcome::Ask(round) => Self::Ask(round),
        }
    }
}

impl From<ReadOutcome> for Outcome<ReadAnswer> {
    fn from(outcome: ReadOutcome) -> Self {
        match outcome {
            ReadOutcome::Text(text) => Self::Done(ReadAnswer::Text(text)),
            ReadOutcome::Done(contents) => Self::Done(ReadAnswer::Contents(contents)),
            ReadOutcome::Ask(round) => Self::Ask(round),
        }
    }
}

impl From<PromptOutcome> for Outcome<PromptAnswer> {
    fn from(outcome: PromptOutcome) -> Self {
        match outcome {
            PromptOutcome::Text(text) => Self::Done(PromptAnswer::Text(text)),
            PromptOutcome::Done(result) => Self::Done(PromptAnswer::Result(result)),
            PromptOutcome::Ask(round) => Self::Ask(round),
        }
    }
}

/// Everything a plugin offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    pub tools: Vec<Tool>,
    pub resources: Vec<ResourceEntry>,
    pub templates: Vec<ResourceTemplate>,
    pub prompts: Vec<Prompt>,
}

/// Why a call has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The plugin says so itself.
    #[error("{}", .0.message)]
    Failed(Failure),
    #[error("it ran longer than its limit of {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("it needs more than its limit of {} MiB of memory", .0 >> 20)]
    Memory(usize),
    #[error("the memory of all running calls together is used up")]
    TotalMemory,
    #[error("its result is larger than its limit of {} KiB", .0 >> 10)]
    Output(usize),
    #[error("it has no `{0}` interface")]
    NoInterface(&'static str),
    #[error("it ended its process with code {0} instead of answering")]
    Exit(i32),
    /// `detail`: the chain with the WebAssembly backtrace, for the operator.
    #[error("it crashed: {message}")]
    Trap { message: String, detail: String },
    #[error("stopped")]
    Stopped,
}

/// What wasmtime's error means, as far as the error itself tells.
pub(crate) fn call_error(error: &wasmtime::Error) -> CallError {
    if let Some(I32Exit(code)) = error.downcast_ref::<I32Exit>() {
        return CallError::Exit(*code);
    }
    // wasmtime keeps the type of this error to itself.
    if error.chain().any(|cause| cause.to_string().contains("fuel allocated for hostcalls has been exhausted")) {
        return CallError::Output(0);
    }
    let message = match error.downcast_ref::<Trap>() {
        Some(Trap::UnreachableCodeReached) => "it gave up (a panic, an abort or a failed assertion)".into(),
        Some(Trap::StackOverflow) => "its stack overflowed".into(),
        Some(trap) => trap.to_string().trim_start_matches("wasm trap: ").to_owned(),
        None => error.root_cause().to_string(),
    };
    CallError::Trap { message, detail: format!("{error:?}") }
}

impl ToolAnswer {
    /// What it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Structured(text) => text.len(),
            Self::Result(result) => {
                let content: usize = result.content.iter().map(content_bytes).sum();
                content + json_bytes(&result.structured) + json_bytes(&result.more)
            }
        }
    }
}

impl ReadAnswer {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Contents(contents) => contents.iter().map(contents_bytes).sum(),
        }
    }
}

impl PromptAnswer {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Result(result) => {
                let messages: usize = result.messages.iter().map(|message| content_bytes(&message.content)).sum();
                messages + json_bytes(&result.description) + json_bytes(&result.more)
            }
        }
    }
}

fn content_bytes(content: &Content) -> usize {
    match content {
        Content::Text(text) | Content::Raw(text) => text.len(),
        Content::Image(media) | Content::Audio(media) => media.data.len() + media.mime_type.len(),
        Content::Link(link) => link.uri.len() + link.name.len() + json_bytes(&link.more),
        Content::Embedded(contents) => contents_bytes(contents),
    }
}

fn contents_bytes(contents: &ResourceContents) -> usize {
    let body = match &contents.body {
        Body::Text(text) => text.len(),
        Body::Bytes(bytes) => bytes.len(),
    };
    body + contents.uri.len() + json_bytes(&contents.more)
}

fn json_bytes(json: &Option<String>) -> usize {
    json.as_ref().map_or(0, String::len)
}
