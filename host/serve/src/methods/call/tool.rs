//! `tools/call`: checks the call, runs it at once or as a task, and checks the result.

use std::sync::Arc;

use http::HeaderValue;
use serde_json::{Value, value::RawValue};
use wharf_protocol::{
    Feature, Method, RpcError,
    error::METHOD_NOT_FOUND,
    model::{self as mcp, TaskSupport, ToolResult},
    params::{Retry, TaskTerms},
    revision::Era,
};
use wharf_sandbox::{CallTool, ToolAnswer, model::Content};

use super::{
    answered::Answered,
    background,
    failed::{Failed, defect},
    refused,
    request::Request,
    rounds::Prepared,
    run::Ran,
};
use crate::client::context::Context;
use wharf_base::{
    heavy::{LARGE_TEXT_BYTES, heavy},
    party::Party,
};
use wharf_config::roles::{Entry, Kind};
use wharf_plugins::{
    bridge::{self, OfferedTool},
    plugins::served::Served,
    tasks::Purpose,
};
use wharf_schema::Fits;

/// How a call is run.
enum Mode {
    AtOnce,
    /// As a task, with the time to live in milliseconds that the client asks for, if it does.
    Task(Option<u64>),
}

/// A requested call of a tool.
pub struct Wanted<'a> {
    pub name: String,
    /// The arguments as the client wrote them.
    pub arguments: Option<&'a RawValue>,
    pub retry: Retry,
    pub task: Option<TaskTerms>,
    /// Whether it is certain that a model chose the tool, rather than a page of the plugin.
    pub by_model: bool,
}

/// Calls a tool. A call that does not run is recorded too.
pub async fn call(ctx: &Context, wanted: Wanted<'_>) -> Result<Answered, RpcError> {
    let (name, written) = (ctx.server.observers.is_active().then(|| wanted.name.clone()), wanted.arguments);
    let answered = check_and_run(ctx, wanted).await;
    let why = match &answered {
        Err(error) => error.code.to_string(),
        Ok(answered) if answered.is_error() => "invalid".to_owned(),
        Ok(_) => return answered,
    };
    if let Some(name) = name
        && ctx.set_recorded()
    {
        let bytes = written.map_or(2, |raw| raw.get().len());
        refused::of(ctx, Method::CallTool, &name, bridge::arguments(written).ok().as_ref(), bytes, why).await;
    }
    answered
}

async fn check_and_run(ctx: &Context, wanted: Wanted<'_>) -> Result<Answered, RpcError> {
    let Wanted { name, arguments: written, retry, task, by_model } = wanted;
    let view = ctx.view().await;
    let (served, tool) = view.tool(&name, by_model)?;
    let entry = Entry::new(Kind::Tool, &served.config.id, &name);
    let arguments = bridge::arguments(written)?;
    if let Some(headers) = &ctx.headers {
        for mirrored in &tool.mirrored {
            let given: Vec<&[u8]> = headers.get_all(&mirrored.header).iter().map(HeaderValue::as_bytes).collect();
            mirrored.check(&arguments, &given)?;
        }
    }
    let mode = match able(ctx, tool).and_then(|()| mode(ctx, tool, task.as_ref())) {
        Ok(mode) => mode,
        Err(failed) => return Answered::failed(failed),
    };
    let (bytes, limit) = (written.map_or(2, |raw| raw.get().len()), served.config.limits.timeout);
    let request = Request {
        method: Method::CallTool,
        name: &name,
        arguments: &arguments,
        bytes,
        served,
        entry,
        tool: Some(tool),
    };
    let carried = request.open(ctx, &retry)?;
    let Fits { value: arguments, without_nulls } =
        match tool.input.check_within(arguments, bytes, limit, (&served.checks, ctx.party)).await {
            Ok(fits) => fits,
            Err(problem) => {
                return Ok(Answered::error(format!("The arguments do not fit the tool's schema: {problem}")));
            }
        };
    // The plugin gets the arguments that were checked. They are what the client wrote, unless nulls were removed or a person is asked:
    // the plugin gets exactly what the person is shown, even for numbers that cannot be represented as written. Sealed state is bound
    // to what the client wrote.
    let (text, arguments) = if without_nulls || served.config.confirm.is_some() {
        (arguments.to_string(), bridge::arguments(written)?)
    } else {
        (written.map_or("{}", RawValue::get).to_owned(), arguments)
    };
    let text = Arc::new(text);
    let request = Request {
        method: Method::CallTool,
        name: &name,
        arguments: &arguments,
        bytes,
        served,
        entry,
        tool: Some(tool),
    };
    let prepared = match request.prepare(ctx, retry, carried).await {
        Ok(prepared) => prepared,
        Err(failed) => return Answered::failed(failed),
    };
    let (served, tool) = (Arc::clone(served), Arc::clone(tool));
    // Dropped here, so that a catalog that is replaced meanwhile is not retained for as long as the call takes.
    drop(view);
    let ask_first = tool.ask_before_task;
    let purpose = || Purpose {
        plugin: served.config.id.clone(),
        tool: name.clone(),
        access: served.access.number(),
        reach: prepared.reach(&Entry::new(Kind::Tool, &served.config.id, &name)),
    };
    let purpose = matches!(mode, Mode::Task(_)).then(purpose);
    let call = Call { served: Arc::clone(&served), tool, name, arguments, text, prepared };
    match (mode, purpose) {
        (Mode::AtOnce, _) | (_, None) => call.run(ctx).await,
        (Mode::Task(ttl_ms), Some(purpose)) => {
            let terms = background::Terms { ttl_ms, ask_first, purpose };
            background::begin(ctx, &served, terms, |ctx| Box::pin(async move { call.run(&ctx).await })).await
        }
    }
}

/// Whether the client can do what the tool needs.
fn able(ctx: &Context, tool: &OfferedTool) -> Result<(), Failed> {
    let Some(missing) = bridge::missing_capabilities(tool.needs, &ctx.capabilities) else { return Ok(()) };
    let error = ctx.lacks("this tool", missing);
    Err(match ctx.encoder.revision.era() {
        Era::Modern => Failed::Rpc(error),
        Era::Legacy => Failed::Explained(error.message),
    })
}

/// Decides whether a call is a task. In 2025-11-25 the client decides that, in 2026-07-28 the server. Earlier revisions have no
/// tasks.
fn mode(ctx: &Context, tool: &OfferedTool, wanted: Option<&TaskTerms>) -> Result<Mode, Failed> {
    let misused = |message: &str| Err(Failed::Rpc(RpcError::new(METHOD_NOT_FOUND, message)));
    let (revision, support) = (ctx.encoder.revision, tool.published.task);
    if revision.has(Feature::ServerTasks) && support != TaskSupport::Forbidden {
        return match support {
            _ if ctx.capabilities.tasks => Ok(Mode::Task(None)),
            TaskSupport::Required => Err(Failed::Rpc(RpcError::missing_tasks(
                "this tool runs only as a task, and this request does not declare the tasks extension",
            ))),
            _ => Ok(Mode::AtOnce),
        };
    }
    if revision.has(Feature::ClientTasks) && ctx.encoder.tasks {
        return match (support, wanted) {
            (TaskSupport::Forbidden, Some(_)) => misused("this tool does not run as a task; call it without `task`"),
            (TaskSupport::Required, None) => {
                misused("this tool runs only as a task; call it by its own name, with `task`")
            }
            (_, Some(terms)) => Ok(Mode::Task(terms.ttl)),
            (_, None) => Ok(Mode::AtOnce),
        };
    }
    match support {
        TaskSupport::Required => Err(Failed::Explained(
            "This tool runs only as a task, which this revision of the protocol does not have.".into(),
        )),
        _ => Ok(Mode::AtOnce),
    }
}

/// A call that has passed all checks. It owns what it needs, so that it can go on as a task.
struct Call {
    served: Arc<Served>,
    tool: Arc<OfferedTool>,
    name: String,
    arguments: Value,
    text: Arc<String>,
    prepared: Prepared,
}

impl Call {
    async fn run(self, ctx: &Context) -> Result<Answered, RpcError> {
        let (served, tool) = (&*self.served, &*self.tool);
        let (method, bytes) = (Method::CallTool, self.text.len());
        let entry = Entry::new(Kind::Tool, &served.config.id, &self.name);
        let request =
            Request { method, name: &self.name, arguments: &self.arguments, bytes, served, entry, tool: Some(tool) };
        let operation = |context| CallTool { name: tool.own_name.clone(), args: Arc::clone(&self.text), context };
        match request.run(ctx, self.prepared, operation).await {
            Ok(Ran { outcome, hints }) => checked(served, ctx.party, tool, with_hints(outcome, hints)).await,
            Err(failed) => Answered::failed(failed),
        }
    }
}

/// Adds the hints about what was refused to a result that is an error.
fn with_hints(outcome: ToolAnswer, hints: String) -> ToolAnswer {
    match outcome {
        ToolAnswer::Result(mut result) if result.is_error && !hints.is_empty() => {
            result.content.push(Content::Text(hints));
            ToolAnswer::Result(result)
        }
        outcome => outcome,
    }
}

/// Converts and checks the outcome of a call.
async fn checked(served: &Served, party: Party, tool: &OfferedTool, outcome: ToolAnswer) -> Result<Answered, RpcError> {
    let outcome = match (outcome, &tool.output) {
        (ToolAnswer::Text(text), None) => return Ok(Answered::Text(text)),
        (outcome, _) => outcome,
    };
    let limit = served.config.limits.timeout;
    let structured_bytes = match &outcome {
        ToolAnswer::Structured(json) => json.len(),
        ToolAnswer::Result(result) => result.structured.as_ref().map_or(0, String::len),
        ToolAnswer::Text(_) => 0,
    };
    // Each plugin may have one large result at a time, from here until it is written.
    let turn = if structured_bytes > LARGE_TEXT_BYTES {
        match tokio::time::timeout(limit, served.results.wait(party)).await {
            Ok(turn) => Some(turn),
            Err(_) => return Answered::failed(defect(served, "too many large results wait to be checked")),
        }
    } else {
        None
    };
    let result = match outcome {
        ToolAnswer::Text(text) => Ok(ToolResult { content: vec![mcp::Content::Text(text)], ..ToolResult::default() }),
        ToolAnswer::Structured(json) => heavy(structured_bytes, || bridge::structured_result(&json)),
        ToolAnswer::Result(result) => heavy(structured_bytes, || bridge::tool_result(result)),
    };
    let result = match result {
        Ok(result) => conforming(served, party, tool, result, structured_bytes).await,
        Err(problem) => Err(problem),
    };
    match result {
        Ok(result) => Ok(Answered::Result { result, bytes: structured_bytes, turn }),
        Err(problem) => Answered::failed(defect(served, &problem)),
    }
}

/// Checks that the result of a tool with an output schema fits it.
async fn conforming(
    served: &Served,
    party: Party,
    tool: &OfferedTool,
    mut result: ToolResult,
    bytes: usize,
) -> Result<ToolResult, String> {
    if let Some(schema) = tool.output.as_ref().filter(|_| !result.is_error) {
        let structured = result.structured.take().ok_or("its result lacks the structured content it promises")?;
        let checked =
            schema.check_within(structured, bytes, served.config.limits.timeout, (&served.checks, party)).await;
        result.structured =
            Some(checked.map_err(|problem| format!("its result does not fit its own output schema: {problem}"))?.value);
    }
    Ok(result)
}
