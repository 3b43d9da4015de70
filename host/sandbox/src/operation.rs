//! What a plugin can be made to do, what comes of it, and why nothing does.

use std::{sync::Arc, time::Duration};

use wasmtime::Trap;
use wasmtime_wasi::I32Exit;

use crate::bindings::{
    completions::{Completion, Target},
    prompts::{Prompt, PromptOutcome},
    resources::{ReadOutcome, ResourceEntry, ResourceTemplate},
    tools::{Tool, ToolOutcome},
    types::{Body, Content, Context, Failure, ResourceContents},
};

/// Something to have a plugin do.
#[derive(Debug)]
pub enum Operation {
    /// Say everything you offer.
    List,
    CallTool {
        name: String,
        /// JSON. Shared, because a tool that asks is called again.
        args: Arc<String>,
        context: Context,
    },
    ReadResource {
        uri: String,
        context: Context,
    },
    GetPrompt {
        name: String,
        args: Vec<(String, String)>,
        context: Context,
    },
    Complete {
        target: Target,
        argument: String,
        value: String,
        others: Vec<(String, String)>,
    },
}

/// What came of it, in the kind that was asked for.
#[derive(Debug)]
pub enum Outcome {
    Listing(Listing),
    Tool(ToolOutcome),
    Read(ReadOutcome),
    Prompt(PromptOutcome),
    Completion(Completion),
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

/// What an outcome takes, about.
pub(crate) fn outcome_bytes(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Tool(ToolOutcome::Text(text) | ToolOutcome::Structured(text)) => text.len(),
        Outcome::Tool(ToolOutcome::Done(result)) => {
            let content: usize = result.content.iter().map(content_bytes).sum();
            content + json_bytes(&result.structured) + json_bytes(&result.more)
        }
        Outcome::Read(ReadOutcome::Text(text)) | Outcome::Prompt(PromptOutcome::Text(text)) => text.len(),
        Outcome::Read(ReadOutcome::Done(contents)) => contents.iter().map(contents_bytes).sum(),
        Outcome::Prompt(PromptOutcome::Done(result)) => {
            let messages: usize = result.messages.iter().map(|message| content_bytes(&message.content)).sum();
            messages + json_bytes(&result.description) + json_bytes(&result.more)
        }
        Outcome::Completion(completion) => completion.values.iter().map(String::len).sum(),
        // Questions have limits of their own, and lists were limited on their way in.
        Outcome::Listing(_) => 0,
        Outcome::Tool(ToolOutcome::Ask(_))
        | Outcome::Read(ReadOutcome::Ask(_))
        | Outcome::Prompt(PromptOutcome::Ask(_)) => 0,
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
