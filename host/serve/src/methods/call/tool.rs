//! `tools/call`: checks the call, runs it at once or as a task, and checks the result.

use std::{collections::BTreeMap, sync::Arc};

use http::HeaderValue;
use serde::de::IgnoredAny;
use serde_json::Value;
use wharf_protocol::{
    Feature, RpcError, Written,
    error::METHOD_NOT_FOUND,
    model::{self as mcp, TaskSupport, ToolResult},
    params::{self, Params, Retry, TaskTerms},
    revision::Era,
};
use wharf_sandbox::{CallTool, ToolAnswer, model::Content};

use super::{
    background, coming,
    failed::{Failed, Said, Why, defect},
    gates::{self, Prepared},
    parsed::converted,
    refused,
    request::Request,
    result::CallResult,
    rounds,
    run::Hints,
};
use crate::client::{context::Context, server::Server};
use wharf_base::{
    party::Party,
    request_state::Carried,
    text::{clip, escaped},
};
use wharf_plugins::{
    bridge::{self, CallArguments, OfferedTool, Paid},
    plugins::{
        expected::Sought,
        served::{Served, Sharing},
        view::View,
    },
    tasks::Purpose,
};
use wharf_policy::roles::{Entry, EntryKind};
use wharf_schema::Fits;

/// How a call is run.
enum Mode {
    AtOnce,
    /// As a task, with the time to live in milliseconds that the client asks for, if it does.
    Task(Option<u64>),
}

/// A requested call of a tool.
pub struct WantedCall {
    pub name: String,
    /// The arguments as the client wrote them.
    pub arguments: Option<Written>,
    pub retry: Retry,
    pub task: Option<TaskTerms>,
    /// Whether it is certain that a model chose the tool, rather than a page of the plugin.
    pub by_model: bool,
}

impl WantedCall {
    /// Reads the parameters of `tools/call`.
    pub fn read(params: Option<&Params>) -> Result<Self, RpcError> {
        let mut call: params::CallTool = params::read(params)?;
        let (arguments, retry) = (params.and_then(|params| params.get("arguments")).cloned(), call.take_retry());
        let params::CallTool { name, task, .. } = call;
        Ok(Self { name, arguments, retry, task, by_model: false })
    }
}

/// Calls a tool: checks the call, takes it through the gates, and runs it at once or begins a task. An error is recorded by the
/// function that called this one; a call that is refused in words for the model is recorded here.
pub async fn call(ctx: &Context, wanted: WantedCall) -> Result<CallResult, Failed> {
    let WantedCall { name, arguments: shared, retry, task, by_model } = wanted;
    let written = shared.as_ref().map(Written::as_str);
    let (view, mut late) = (ctx.server.view(ctx.caller(), ctx.profile()), None);
    let (served, tool) = match view.tool(&name, by_model) {
        Ok(found) => found,
        Err(_) => {
            let sought = Sought { kind: EntryKind::Tool, name: &name };
            let find = |view: &View| view.tool(&name, by_model).map(drop);
            let view = match Box::pin(coming::wait_for(ctx, sought, find)).await {
                Ok(view) => view,
                Err(failed) => return Err(refused_in_words(ctx, &name, written, failed, "loading").await),
            };
            late.insert(view).tool(&name, by_model).map_err(Failed::unknown)?
        }
    };
    let name = if tool.published.name == name { name } else { tool.published.name.clone() };
    let shared = shared.unwrap_or_else(|| "{}".to_owned().into());
    let written = shared.as_str();
    let fitting = CallArguments::fitting(&shared, &tool.input);
    let fits = fitting.is_some();
    let arguments = match fitting {
        Some(arguments) => arguments,
        None => bridge::arguments(Some(written))?.into(),
    };
    if let Some(headers) = &ctx.headers {
        for mirrored in &tool.mirrored {
            let given: Vec<&[u8]> = headers.get_all(&mirrored.header).iter().map(HeaderValue::as_bytes).collect();
            mirrored.check(arguments.value(), &given)?;
        }
    }
    let mode = match mode(ctx, tool, task.as_ref()) {
        Ok(mode) => mode,
        Err(failed) => return Err(refused_in_words(ctx, &name, Some(written), failed, "invalid").await),
    };
    let bytes = written.len();
    let Retry { input_responses: answers, request_state } = retry;
    let carried = match &request_state {
        Some(state) => {
            Request::of_tool(served, tool, &name, &arguments, bytes).open(ctx, state, answers.as_ref()).await?
        }
        None => Carried::default(),
    };
    let (arguments, rewritten) = if fits {
        (arguments, None)
    } else {
        Box::pin(checked_arguments(ctx, (served, tool), &name, written, arguments)).await?
    };
    // The plugin gets the arguments that were checked. They are what the client wrote, unless they were rewritten or a person is
    // asked: the plugin gets exactly what the person is shown, even for numbers that cannot be represented as written.
    let text = match rewritten {
        Some(value) => Written::from(value.to_string()),
        None if served.config.confirm.is_some() => Written::from(arguments.value().to_string()),
        None => shared.clone(),
    };
    let request = Request::of_tool(served, tool, &name, &arguments, bytes);
    let prepared = gates::pass(ctx, &request, answers, carried).await?;
    let (served, tool, text) = (Arc::clone(served), Arc::clone(tool), Arc::new(text));
    // Dropped here, so that a catalog that is replaced meanwhile is not retained for as long as the call takes.
    drop((view, late));
    let mut call = Call { served, tool, name, arguments, text, prepared };
    match mode {
        Mode::AtOnce => call.run(ctx).await,
        Mode::Task(ttl_ms) => {
            let (served, ask_first, purpose) =
                (Arc::clone(&call.served), call.tool.ask_before_task, call.purpose(&ctx.server));
            let terms = background::Terms { ttl_ms, ask_first, purpose };
            let begun = background::begin(ctx, &served, terms, |ctx| {
                // What is told of a failure becomes the result of the task.
                Box::pin(async move { call.run(&ctx).await.or_else(CallResult::failed) })
            });
            Box::pin(begun).await.map_err(Failed::from)
        }
    }
}

/// Checks arguments against the schema, unless they are the tool's to validate. If they fit only when they are rewritten, also returns what
/// the plugin gets. Sealed state is bound to what the client wrote.
async fn checked_arguments(
    ctx: &Context,
    (served, tool): (&Served, &OfferedTool),
    name: &str,
    written: &str,
    arguments: CallArguments,
) -> Result<(CallArguments, Option<Value>), Failed> {
    let (limit, turns) = (served.config.limits.timeout, (&served.checks, ctx.party()));
    match tool.input.check_within(arguments.into_value(), written.len(), limit, turns).await {
        Ok(Fits { value, rewritten: false }) => Ok((value.into(), None)),
        Ok(Fits { value, rewritten: true }) => Ok((bridge::arguments(Some(written))?.into(), Some(value))),
        // The plugin says what is wrong, or takes a text for a number where the author's own validation does.
        Err(_) if tool.validates => Ok((bridge::arguments(Some(written))?.into(), None)),
        Err(problem) => {
            let unknown = unknown_argument(&tool.arguments(), written).unwrap_or_default();
            let text = format!("The arguments do not fit the tool's schema: {problem}{unknown}");
            let failed = Failed::new(Why::InvalidArguments(problem.pointer), text);
            Err(refused_in_words(ctx, name, Some(written), failed, "invalid").await)
        }
    }
}

/// Says which argument the tool's schema does not name, if there is one: often what is missing was written under another name.
fn unknown_argument(known: &[String], written: &str) -> Option<String> {
    let given: BTreeMap<String, IgnoredAny> = serde_json::from_str(written).ok()?;
    let odd = given.into_keys().find(|name| !known.contains(name)).filter(|_| !known.is_empty())?;
    let known = escaped(&clip(&known.join(", ")));
    Some(format!("; `{}` is not among the arguments that its schema names: {known}", escaped(&clip(&odd))))
}

/// Records a call that is refused in words for the model. `why`: one word for the record.
async fn refused_in_words(
    ctx: &Context,
    name: &str,
    written: Option<&str>,
    failed: Failed,
    why: &'static str,
) -> Failed {
    if let Said::Explained(_) = &failed.said {
        Box::pin(refused::tool(ctx, name, written, why.to_owned())).await;
    }
    failed
}

/// Decides whether a call is a task, if the client can do what the tool needs. In 2025-11-25 the client decides that, in 2026-07-28 the
/// server. Earlier revisions have no tasks.
fn mode(ctx: &Context, tool: &OfferedTool, wanted: Option<&TaskTerms>) -> Result<Mode, Failed> {
    if let Some(missing) = bridge::missing_capabilities(tool.needs, &ctx.capabilities) {
        let error = ctx.lacks("this tool", missing);
        return Err(match ctx.encoder.revision.era() {
            Era::Modern => error.into(),
            Era::Legacy => Failed::new(Why::NeedsClient, error.message),
        });
    }
    let misused = |message: &str| Err(RpcError::new(METHOD_NOT_FOUND, message).into());
    let (revision, support) = (ctx.encoder.revision, tool.published.task);
    if revision.has(Feature::ServerTasks) && support != TaskSupport::Forbidden {
        // Where the server decides, it decides for what is possible now.
        let storable = ctx.server.cluster.as_ref().is_none_or(|cluster| cluster.is_up());
        return match support {
            TaskSupport::Optional if !storable => Ok(Mode::AtOnce),
            _ if ctx.capabilities.tasks => Ok(Mode::Task(None)),
            TaskSupport::Required => Err(RpcError::missing_tasks(
                "this tool runs only as a task, and this request does not declare the tasks extension",
            )
            .into()),
            _ => Ok(Mode::AtOnce),
        };
    }
    if revision.has(Feature::ClientTasks) {
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
        TaskSupport::Required => Err(Failed::new(
            Why::NeedsClient,
            "This tool runs only as a task, which this revision of the protocol does not have.",
        )),
        _ => Ok(Mode::AtOnce),
    }
}

/// A call that has passed all checks. It owns what it needs, so that it can go on as a task.
struct Call {
    served: Arc<Served>,
    tool: Arc<OfferedTool>,
    name: String,
    arguments: CallArguments,
    text: Arc<Written>,
    prepared: Prepared,
}

impl Call {
    async fn run(&mut self, ctx: &Context) -> Result<CallResult, Failed> {
        let Self { served, tool, name, arguments, text, prepared } = self;
        let request = Request::of_tool(served, tool, name, arguments, text.as_str().len());
        let operation = |context| CallTool { name: tool.own_name.clone(), args: Arc::<Written>::clone(text), context };
        let (outcome, hints) = rounds::run(ctx, &request, prepared, operation).await?;
        let result = checked(ctx, served, tool, with_hints(outcome, &hints)).await?;
        Ok(match lost(ctx, served) {
            Some(text) => result.and(text),
            None => result,
        })
    }

    /// Returns what the record of a task keeps about the call.
    fn purpose(&self, server: &Server) -> Purpose {
        let (plugin, tool) = (self.served.config.id.clone(), self.name.clone());
        let reach = self.prepared.reach(&Entry::new(EntryKind::Tool, &plugin, &tool));
        Purpose { access: server.access_of(&self.served), reach, plugin, tool }
    }
}

/// Returns, once, the sentence for the client that says that what a plugin kept in memory for it is gone, if it is.
fn lost(ctx: &Context, served: &Served) -> Option<String> {
    if served.sharing() != Sharing::One {
        return None;
    }
    served.plugin.tell_lost(&ctx.owner().key())
}

/// Adds the hints about what was refused to a result that is an error.
fn with_hints(outcome: ToolAnswer, hints: &Hints) -> ToolAnswer {
    match outcome {
        ToolAnswer::Result(mut result) if result.is_error => {
            let texts = result.content.iter().filter_map(|content| match content {
                Content::Text(text) | Content::Raw(text) => Some(text.as_str()),
                _ => None,
            });
            let hints = hints.about(texts);
            if !hints.is_empty() {
                result.content.push(Content::Text(hints));
            }
            ToolAnswer::Result(result)
        }
        outcome => outcome,
    }
}

/// Converts and checks the outcome of a call.
async fn checked(
    ctx: &Context,
    served: &Served,
    tool: &OfferedTool,
    outcome: ToolAnswer,
) -> Result<CallResult, Failed> {
    let outcome = match (outcome, &tool.output) {
        (ToolAnswer::Text(text), None) => return Ok(CallResult::Text(text)),
        (outcome, _) => outcome,
    };
    let bytes = match &outcome {
        ToolAnswer::Text(_) => 0,
        ToolAnswer::Structured(json) => json.len(),
        ToolAnswer::Result(result) => result.structured.as_ref().map_or(0, String::len),
    };
    let convert = |outcome, paid: &Paid| match outcome {
        ToolAnswer::Text(text) => Ok(ToolResult { content: vec![mcp::Content::Text(text)], ..ToolResult::default() }),
        ToolAnswer::Structured(json) => bridge::structured_result(&json, paid),
        ToolAnswer::Result(result) => bridge::tool_result(result, paid),
    };
    // Boxed, so that the futures of calls that answer with a text stay small.
    let result = Box::pin(converted(ctx, served, outcome, convert)).await?;
    match Box::pin(conforming(served, ctx.party(), tool, result, bytes)).await {
        Ok(result) => Ok(CallResult::Result { result, bytes }),
        Err(problem) => Err(defect(served, &problem)),
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
