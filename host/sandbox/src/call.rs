//! One call: one instance, one deadline. Runs one operation in a fresh instance and drops it, or, where the operator chose
//! so, in one that this client used before and may use again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{AcquireError, OwnedSemaphorePermit};
use wasmtime::Trap;
use wasmtime_wasi::I32Exit;

use crate::{
    bindings::{
        completions::{Completion, Target},
        prompts::{Prompt, PromptOutcome},
        resources::{ReadOutcome, ResourceEntry, ResourceTemplate},
        tools::{Tool, ToolOutcome},
        types::{Body, Content, Context, Failure, ResourceContents},
    },
    engine::Sandbox,
    instance::{Instance, TRANSFER_SLACK_BYTES},
    limits::Refused,
    load::Plugin,
    runtime::Stopped,
    scope::{Denial, Events, Limits, Scope},
    store::{CallState, State, Traces},
    warm::Key,
};

/// How long a plugin may take to say what it offers.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

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

/// An outcome, and what else there is to know of the call.
#[derive(Debug)]
pub struct Report {
    pub result: Result<Outcome, CallError>,
    pub denials: Vec<Denial>,
    /// The last of what the guest printed, unescaped.
    pub printed: String,
    pub took: Duration,
}

/// What a plugin is to do, for whom, and within what.
pub struct Call {
    pub operation: Operation,
    pub scope: Scope,
    pub events: Arc<dyn Events>,
    /// How long it may take, if not as long as the plugin's limit says.
    pub timeout: Option<Duration>,
    /// For whom the instance is kept, and who may have left one. None: it gets a fresh one, which is dropped.
    pub client: Option<Arc<str>>,
}

impl Plugin {
    /// Runs a call. Dropping the future stops it.
    pub async fn call(&self, call: Call) -> Report {
        let Call { operation, scope, events, timeout, client } = call;
        let limits = &self.0.spec.limits;
        let own = if matches!(operation, Operation::List) { LIST_TIMEOUT } else { limits.timeout };
        let timeout = timeout.unwrap_or(own);
        let started = Instant::now();
        let (traces, overran) = (Traces::default(), Arc::new(AtomicBool::new(false)));
        let state = CallState::new(events, traces.clone(), Arc::clone(&overran));
        let sandbox = &self.0.code.0.sandbox;
        let run = sandbox.runtime.run(self.clone().run(operation, scope, state, client), &self.0.turns, overran);
        let result = match tokio::time::timeout(timeout, run).await {
            Ok(Ok(result)) => result,
            Ok(Err(Stopped(error))) if error.is_panic() => {
                Err(CallError::Trap { message: "a defect of wharf itself".into(), detail: error.to_string() })
            }
            Ok(Err(Stopped(_))) => Err(CallError::Stopped),
            Err(_) => Err(CallError::Timeout(timeout)),
        };
        let result = result.map_err(|error| explain(error, &traces, limits));
        Report { result, denials: traces.denials(), printed: traces.printed(), took: started.elapsed() }
    }

    /// A place to run in. A plugin's first call may have one that is kept for such.
    async fn slot(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        let sandbox = &self.0.code.0.sandbox;
        let slot = Arc::clone(&sandbox.slots).acquire_owned();
        if self.0.running.load(Ordering::Relaxed) > 1 {
            return slot.await;
        }
        tokio::select! {
            biased;
            slot = slot => slot,
            slot = Arc::clone(&sandbox.first_slots).acquire_owned() => slot,
        }
    }

    /// The call itself, from admission to outcome. Owns all it needs, so that it can move to another thread.
    async fn run(
        self,
        operation: Operation,
        scope: Scope,
        call: CallState,
        client: Option<Arc<str>>,
    ) -> Result<Outcome, CallError> {
        let code = &self.0.code.0;
        // Never closed, so waiting ends with a permit or with the deadline. The store is dropped before them.
        let _turn = loop {
            let turn = Arc::clone(&self.0.admission).acquire_owned().await;
            let Some(hold) = call.hold() else { break turn };
            drop(turn);
            hold.await;
        };
        let _running = Running::new(&self.0.running);
        let _slot = self.slot().await;
        let Sandbox { warm, total_memory, handles, .. } = &*code.sandbox;
        let key = client.zip(scope.reach()).map(|(client, reach)| Key { plugin: self.0.number, client, reach });
        let part = handles.take();
        let kept = key.as_ref().and_then(|key| warm.take(key)).filter(|kept| part.covers(kept.handles_limit()));
        // What crosses from the guest to the host exists twice for a while.
        let transfer = self.0.spec.limits.output_bytes.saturating_add(TRANSFER_SLACK_BYTES);
        let needed = if kept.is_some() { transfer } else { transfer.saturating_add(self.0.spec.limits.memory_bytes) };
        // What is only kept makes room for what runs.
        if total_memory.left() < needed {
            warm.clear();
        }
        let _transfer = total_memory.charge(transfer).map_err(|_| CallError::TotalMemory)?;
        let mut instance = match kept {
            Some(mut instance) => {
                instance.renew(|state| state.renew(part, call));
                instance
            }
            None => {
                let state = State::new(scope, &self.0.spec, total_memory, part, call);
                Instance::start(&self, state).await?
            }
        };
        let result = instance.perform(code, operation).await;
        // After anything but its own answer it is not used again.
        let limit = self.0.spec.limits.output_bytes;
        let result = match result {
            Ok(outcome) if outcome_bytes(&outcome) > limit => return Err(CallError::Output(limit)),
            Ok(_) | Err(CallError::Failed(_)) => result,
            Err(_) => return result,
        };
        if let Some(key) = key
            && let Some(bytes) = instance.rest()
        {
            warm.put(key, bytes, instance);
        }
        result
    }
}

/// Counts a call among those of its plugin.
struct Running<'a>(&'a AtomicUsize);

impl<'a> Running<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
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

/// What the call's traces add: a crash after a refused growth is a memory error.
fn explain(error: CallError, traces: &Traces, limits: &Limits) -> CallError {
    match (error, traces.refused()) {
        (CallError::Output(_), _) => CallError::Output(limits.output_bytes),
        (CallError::Trap { .. } | CallError::Exit(_), Some(Refused::Own)) => CallError::Memory(limits.memory_bytes),
        (CallError::Trap { .. } | CallError::Exit(_), Some(Refused::Total)) => CallError::TotalMemory,
        (error, _) => error,
    }
}

fn outcome_bytes(outcome: &Outcome) -> usize {
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
