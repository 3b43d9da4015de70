//! The operations that a plugin can be asked to perform, their outcomes, and the errors that can take an outcome's place.

use std::{fmt, sync::Arc, time::Duration};

use wasmtime::Trap;
use wasmtime_wasi::I32Exit;

use crate::{
    bindings::{
        completions::Target,
        prompts::{Message, Prompt, PromptArgument, PromptOutcome, PromptResult},
        resources::{ReadOutcome, ResourceEntry, ResourceTemplate},
        tools::{Tool, ToolDetails, ToolOutcome, ToolResult},
        types::{Body, Content, Context, Failure, ResourceContents, Round},
    },
    bounds::written::NotWritten,
    contract::told::{Told, backtrace, told},
};

/// The most questions that a plugin may ask at once.
pub const MAX_QUESTIONS: usize = 16;

/// Lists everything that a plugin offers. It takes at most five seconds, whatever the plugin's limits say.
#[derive(Debug)]
pub struct ListEntries;

/// A text that may share its memory with others.
pub trait Text: AsRef<str> + fmt::Debug + Send + Sync {}

impl<T: AsRef<str> + fmt::Debug + Send + Sync> Text for T {}

/// Calls a tool of a plugin.
#[derive(Debug)]
pub struct CallTool {
    /// The tool's name, as the plugin gives it.
    pub name: String,
    /// A JSON object that matches the tool's input schema; the caller has checked that. It is shared, because a tool that asks questions is
    /// called again with the same arguments.
    pub args: Arc<dyn Text>,
    /// What the plugin may know about the client, and the client's answers to earlier questions.
    pub context: Context,
}

/// Reads a resource of a plugin.
#[derive(Debug)]
pub struct ReadResource {
    /// The URI as the client wrote it.
    pub uri: String,
    /// What the plugin may know about the client, and the client's answers to earlier questions.
    pub context: Context,
}

/// Fills in a prompt of a plugin.
#[derive(Debug)]
pub struct GetPrompt {
    /// The prompt's name, as the plugin gives it.
    pub name: String,
    /// The arguments by name.
    pub args: Vec<(String, String)>,
    /// What the plugin may know about the client, and the client's answers to earlier questions.
    pub context: Context,
}

/// Asks a plugin to suggest values for an argument that a person is typing.
#[derive(Debug)]
pub struct Complete {
    /// The prompt or the template whose argument it is.
    pub target: Target,
    /// The argument's name.
    pub argument: String,
    /// What has been typed so far.
    pub value: String,
    /// The arguments that have been chosen already, by name.
    pub arguments: Vec<(String, String)>,
}

/// The outcome of an operation in which a plugin may ask questions instead of answering.
#[derive(Debug)]
pub enum Outcome<T> {
    /// The plugin has answered.
    Done(T),
    /// The plugin asks questions instead, and has to be called again with the answers (MRTR).
    Ask(Round),
}

impl<T> Outcome<T> {
    /// Returns how many bytes count towards the output limit. `None` for questions, because they have limits of their own.
    pub(crate) fn bytes(&self, of_done: impl FnOnce(&T) -> usize) -> Option<usize> {
        match self {
            Self::Done(done) => Some(of_done(done)),
            Self::Ask(_) => None,
        }
    }
}

/// The answer of a tool.
#[derive(Debug)]
pub enum ToolAnswer {
    /// One block of text.
    Text(String),
    /// The JSON of structured content.
    Structured(String),
    /// Content and the other members of a result.
    Result(ToolResult),
}

/// The contents of a resource.
#[derive(Debug)]
pub enum ReadAnswer {
    /// One text, under the requested URI.
    Text(String),
    /// One or several pieces, each with its URI.
    Contents(Vec<ResourceContents>),
}

/// A prompt that was filled in.
#[derive(Debug)]
pub enum PromptAnswer {
    /// One message of the user.
    Text(String),
    /// Messages and the other members of a prompt.
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
    /// What an MCP server over HTTP says that models should know about it. Other plugins say it in a section of their file.
    pub instructions: Option<String>,
    /// The tools, in the plugin's order, like the other lists.
    pub tools: Vec<Tool>,
    /// The resources that it lists; it may have others under its templates.
    pub resources: Vec<ResourceEntry>,
    /// Patterns of URIs that it can read.
    pub templates: Vec<ResourceTemplate>,
    /// The prompts, by the plugin's own names.
    pub prompts: Vec<Prompt>,
}

/// Why a call has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The plugin reported that it failed, and why.
    #[error("{}", .0.message)]
    Failed(Failure),
    /// It did not answer within this time.
    #[error("it ran longer than its limit of {} ms", .0.as_millis())]
    Timeout(Duration),
    /// It did not begin within this time, because earlier calls of its client ran.
    #[error("its turn did not come within {} ms: calls of one client run one after the other", .0.as_millis())]
    Busy(Duration),
    /// It was refused memory beyond this many bytes, and crashed.
    #[error("it needs more than {} MiB of memory, its limit; `memory_mib` in its [limits] sets another", .0 >> 20)]
    Memory(usize),
    /// The memory of all calls together was used up, before it began or while it ran. Another attempt may succeed.
    #[error("the memory of all running calls together is used up")]
    TotalMemory,
    /// It answered more than this many bytes.
    #[error("its result is larger than its limit of {} KiB; the operator can raise `output_kib`", .0 >> 10)]
    Output(usize),
    /// It may not write more to files.
    #[error("{0}")]
    Files(NotWritten),
    /// The component does not export what the operation needs.
    #[error("it has no `{0}` interface")]
    NoInterface(&'static str),
    /// It is served as an MCP server over HTTP, and does not answer like one.
    #[error("it does not answer like an MCP server: {0}")]
    NotMcp(Told),
    /// It exited with this code.
    #[error("it ended its process with code {0} instead of answering")]
    Exit(i32),
    /// It crashed, or wharf itself did while running it.
    #[error("it crashed: {message}")]
    Trap {
        /// What happened, in a few words that a client may see.
        message: String,
        /// The whole chain of errors with the backtrace of the guest, for the operator alone.
        detail: String,
    },
    /// It was stopped from outside, for example because wharf shuts down.
    #[error("stopped")]
    Stopped,
}

/// The whole text of wasmtime's error about a guest that passes more to the host than it may.
const TOO_MUCH_DATA: &str =
    "too much data is being copied between the host and the guest: fuel allocated for hostcalls has been exhausted";

/// Converts an error of wasmtime, as far as the error alone shows its cause.
pub(crate) fn call_error(error: &wasmtime::Error) -> CallError {
    if let Some(I32Exit(code)) = error.downcast_ref::<I32Exit>() {
        return CallError::Exit(*code);
    }
    if let Some(not_written) = error.downcast_ref::<NotWritten>() {
        return CallError::Files(*not_written);
    }
    let cause = told(format_args!("{}", error.root_cause()));
    // The type of this error is private to wasmtime, so it can only be recognised by its text. A guest chooses only texts that are around
    // the cause, such as the names of its functions, and parts of a cause.
    if cause == TOO_MUCH_DATA {
        return CallError::Output(0);
    }
    let message = match error.downcast_ref::<Trap>() {
        Some(Trap::UnreachableCodeReached) => "it gave up (a panic, an abort or a failed assertion)".into(),
        Some(Trap::StackOverflow) => "its stack overflowed".into(),
        Some(trap) => trap.to_string().trim_start_matches("wasm trap: ").to_owned(),
        None => cause,
    };
    CallError::Trap { message, detail: backtrace(error) }
}

impl ToolAnswer {
    /// Returns about how much memory the answer takes.
    pub(crate) fn takes(&self) -> usize {
        let blocks = match self {
            Self::Text(_) | Self::Structured(_) => 0,
            Self::Result(result) => result.content.len(),
        };
        self.bytes() + blocks * size_of::<Content>()
    }

    /// Returns approximately how many bytes the answer takes.
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
    /// Returns about how much memory the answer takes.
    pub(crate) fn takes(&self) -> usize {
        let pieces = match self {
            Self::Text(_) => 0,
            Self::Contents(contents) => contents.len(),
        };
        self.bytes() + pieces * size_of::<ResourceContents>()
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Contents(contents) => contents.iter().map(contents_bytes).sum(),
        }
    }
}

impl PromptAnswer {
    /// Returns about how much memory the answer takes.
    pub(crate) fn takes(&self) -> usize {
        let messages = match self {
            Self::Text(_) => 0,
            Self::Result(result) => result.messages.len(),
        };
        self.bytes() + messages * size_of::<Message>()
    }

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

impl Listing {
    /// Returns about how much memory the lists take. A new field does not compile until it is counted here.
    pub(crate) fn takes(&self) -> usize {
        let Self { instructions, tools, resources, templates, prompts } = self;
        let tools = tools.iter().map(|Tool { name, description, input_schema, details }| {
            let details = details.as_ref().map_or(
                0,
                |ToolDetails { title, output_schema, hints: _, needs: _, task: _, more }| {
                    json_bytes(title) + json_bytes(output_schema) + json_bytes(more)
                },
            );
            size_of::<Tool>() + name.len() + description.len() + input_schema.len() + details
        });
        let resources = resources.iter().map(|ResourceEntry { uri, name, description, mime_type, more }| {
            let texts = json_bytes(description) + json_bytes(mime_type) + json_bytes(more);
            size_of::<ResourceEntry>() + uri.len() + name.len() + texts
        });
        let templates =
            templates.iter().map(|ResourceTemplate { uri_template, name, description, mime_type, more }| {
                let texts = json_bytes(description) + json_bytes(mime_type) + json_bytes(more);
                size_of::<ResourceTemplate>() + uri_template.len() + name.len() + texts
            });
        let prompts = prompts.iter().map(|Prompt { name, description, arguments, more }| {
            let arguments = arguments.iter().map(|PromptArgument { name, description, required: _ }| {
                size_of::<PromptArgument>() + name.len() + json_bytes(description)
            });
            size_of::<Prompt>() + name.len() + json_bytes(description) + arguments.sum::<usize>() + json_bytes(more)
        });
        json_bytes(instructions)
            + tools.sum::<usize>()
            + resources.sum::<usize>()
            + templates.sum::<usize>()
            + prompts.sum::<usize>()
    }
}

/// Returns approximately how many bytes a failure takes.
pub(crate) fn failure_bytes(failure: &Failure) -> usize {
    failure.message.len() + json_bytes(&failure.data)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ClientCapabilities, TaskSupport};

    #[test]
    fn all_texts_of_a_list_count() {
        let some = || Some("x".repeat(1000));
        let (needs, task) = (ClientCapabilities::empty(), TaskSupport::Forbidden);
        let details =
            Some(ToolDetails { title: some(), output_schema: some(), hints: None, needs, task, more: some() });
        let [name, description, uri] = [(); 3].map(|()| "x".repeat(1000));
        let tool =
            Tool { name: name.clone(), description: description.clone(), input_schema: "x".repeat(1000), details };
        let (entry, template) = ((name.clone(), uri.clone()), (name.clone(), uri));
        let resource =
            ResourceEntry { name: entry.0, uri: entry.1, description: some(), mime_type: some(), more: some() };
        let template = ResourceTemplate {
            name: template.0,
            uri_template: template.1,
            description: some(),
            mime_type: some(),
            more: some(),
        };
        let argument = PromptArgument { name: name.clone(), description: some(), required: false };
        let prompt = Prompt { name, description: some(), arguments: vec![argument], more: some() };
        let of = |listing: Listing| listing.takes() / 1000;
        assert_eq!(of(Listing { instructions: some(), ..Listing::default() }), 1);
        assert_eq!(of(Listing { tools: vec![tool], ..Listing::default() }), 6);
        assert_eq!(of(Listing { resources: vec![resource], ..Listing::default() }), 5);
        assert_eq!(of(Listing { templates: vec![template], ..Listing::default() }), 5);
        assert_eq!(of(Listing { prompts: vec![prompt], ..Listing::default() }), 5);
    }

    #[test]
    fn errors_are_told_by_their_cause_and_not_by_what_a_guest_says() {
        let is_output = |error: wasmtime::Error| matches!(call_error(&error), CallError::Output(_));
        assert!(is_output(wasmtime::Error::msg(TOO_MUCH_DATA).context("wasm backtrace")));
        let named = format!("error while executing at wasm backtrace:\n    0: 0x1 - a!{TOO_MUCH_DATA}");
        for named in [named, TOO_MUCH_DATA.to_owned()] {
            assert!(!is_output(wasmtime::Error::from(Trap::UnreachableCodeReached).context(named)));
        }
    }
}
