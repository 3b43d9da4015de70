//! Calls into plugins: from the parameters of `tools/call`, `resources/read` and `prompts/get` to their results.
//!
//! The same steps for all three and for both eras: find the plugin, check, build the scope, run. If the plugin asks, put
//! its questions to the client and run it again from the start with all answers so far. Nothing is held while a person thinks: a
//! modern client gets the questions as its answer, and a legacy one as requests, with no sandbox alive meanwhile.

use std::sync::Arc;

use serde_json::{Value, json};
use wharf_protocol::{
    Object, RpcError,
    model::{self as mcp, ToolResult},
    params::{CallTool, GetPrompt, ReadResource, Retry},
    revision::Era,
};
use wharf_sandbox::{
    CallError, Denial, Operation, Outcome,
    model::{self as wit, PromptOutcome, ReadOutcome, Round, ToolOutcome},
};

use crate::{
    bridge,
    catalog::Served,
    context::Context,
    scope::CallRoots,
    seal::{Binding, Carried},
    text::escaped,
};

/// How often a plugin may ask in one request.
const MAX_ROUNDS: u32 = 8;
const MAX_QUESTIONS: usize = 16;
const MAX_STATE_BYTES: usize = 64 * 1024;
/// The key under which wharf itself asks modern clients for their roots.
pub const ROOTS_KEY: &str = "wharf.roots";

/// Why a call has no result.
pub enum Failed {
    /// A JSON-RPC error, whatever the method.
    Rpc(RpcError),
    /// The operation failed: a tool result with `isError`, or an internal error of other methods.
    Told(String),
    /// Not a failure: the client is to answer first. Modern only; the JSON of the result.
    InputRequired(String),
}

impl From<RpcError> for Failed {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

pub async fn tool(ctx: &Context, params: CallTool, retry: Retry) -> Result<String, RpcError> {
    let catalog = ctx.server.shelf.catalog().await;
    let Some((served, tool)) = catalog.tool(&params.name) else {
        return Err(RpcError::invalid_params(format!("unknown tool: {}", wharf_protocol::error::clip(&params.name))));
    };
    let arguments = bridge::arguments(params.arguments.as_deref())?;
    if let Some(missing) = bridge::missing_abilities(tool.needs, &ctx.capabilities) {
        let error = ctx.lacks("this tool", missing);
        return match ctx.encoder.revision.era() {
            Era::Modern => Err(error),
            Era::Legacy => Ok(ctx.encoder.tool_result(ToolResult::error(error.message))),
        };
    }
    let request = Request { method: "tools/call", name: &params.name, arguments: &arguments, served };
    let carried = request.open(ctx, &retry)?;
    let (bytes, limit) = (params.arguments.as_ref().map_or(2, |raw| raw.get().len()), served.config.limits.timeout);
    if let Err(problem) = tool.input.check_within(arguments.clone(), bytes, limit, &served.checks).await {
        let text = format!("The arguments do not fit the tool's schema: {problem}");
        return Ok(ctx.encoder.tool_result(ToolResult::error(text)));
    }
    let own_name = &tool.own_name;
    let text = arguments.to_string();
    let operation = |context| Operation::CallTool { name: own_name.clone(), args: text.clone(), context };
    let outcome = match request.run(ctx, retry, carried, operation).await {
        Ok(Outcome::Tool(outcome)) => outcome,
        Ok(_) => return Err(ctx.server.incident("a tool call had another outcome")),
        Err(failed) => return tool_failed(ctx, failed),
    };
    let structured_bytes = match &outcome {
        ToolOutcome::Structured(json) => json.len(),
        ToolOutcome::Done(result) => result.structured.as_ref().map_or(0, String::len),
        ToolOutcome::Text(_) | ToolOutcome::Ask(_) => 0,
    };
    // One large result of a plugin at a time, from here until it is written.
    let _turn = if structured_bytes > LARGE {
        match tokio::time::timeout(limit, Arc::clone(&served.results).acquire_owned()).await {
            Ok(turn) => turn.ok(),
            Err(_) => return tool_failed(ctx, defect(served, "too many large results wait to be checked")),
        }
    } else {
        None
    };
    let result = match outcome {
        ToolOutcome::Text(text) => Ok(ToolResult { content: vec![mcp::Content::Text(text)], ..ToolResult::default() }),
        ToolOutcome::Structured(json) => heavy(structured_bytes, || bridge::structured_result(&json)),
        ToolOutcome::Done(result) => heavy(structured_bytes, || bridge::tool_result(result)),
        ToolOutcome::Ask(_) => Err("it asked too often".to_owned()),
    };
    let result = match result {
        Ok(result) => conforming(served, tool, result, structured_bytes).await,
        Err(problem) => Err(problem),
    };
    match result {
        Ok(result) => Ok(heavy(structured_bytes, || ctx.encoder.tool_result(result))),
        Err(problem) => tool_failed(ctx, defect(served, &problem)),
    }
}

/// Larger results take milliseconds to read and write, and many times their size in memory.
const LARGE: usize = 64 * 1024;

/// Does what takes long for so many bytes without holding up the worker it runs on.
fn heavy<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > LARGE { tokio::task::block_in_place(work) } else { work() }
}

fn tool_failed(ctx: &Context, failed: Failed) -> Result<String, RpcError> {
    match failed {
        Failed::Rpc(error) => Err(error),
        Failed::Told(text) => Ok(ctx.encoder.tool_result(ToolResult::error(text))),
        Failed::InputRequired(result) => Ok(result),
    }
}

/// A tool with an output schema must answer by it.
async fn conforming(
    served: &Served,
    tool: &bridge::OfferedTool,
    mut result: ToolResult,
    bytes: usize,
) -> Result<ToolResult, String> {
    if let Some(schema) = tool.output.as_ref().filter(|_| !result.is_error) {
        let structured = result.structured.take().ok_or("its result lacks the structured content it promises")?;
        let checked = schema.check_within(structured, bytes, served.config.limits.timeout, &served.checks).await;
        result.structured =
            Some(checked.map_err(|problem| format!("its result does not fit its own output schema: {problem}"))?);
    }
    Ok(result)
}

pub async fn resource(ctx: &Context, params: ReadResource, retry: Retry) -> Result<String, RpcError> {
    let catalog = ctx.server.shelf.catalog().await;
    let uri = &params.uri;
    let Some((served, mime_type)) = catalog.resource(uri) else { return Err(RpcError::resource_not_found(uri)) };
    let none = json!({});
    let request = Request { method: "resources/read", name: uri, arguments: &none, served };
    let carried = request.open(ctx, &retry)?;
    let operation = |context| Operation::ReadResource { uri: uri.clone(), context };
    let outcome = match request.run(ctx, retry, carried, operation).await {
        Ok(Outcome::Read(outcome)) => outcome,
        Ok(_) => return Err(ctx.server.incident("a read had another outcome")),
        Err(failed) => return other_failed(failed),
    };
    let result = match outcome {
        ReadOutcome::Text(text) => Ok(mcp::ReadResult {
            contents: vec![mcp::ResourceContents {
                uri: uri.clone(),
                mime_type: mime_type.map(ToOwned::to_owned),
                body: mcp::Body::Text(text),
                more: Object::new(),
            }],
        }),
        ReadOutcome::Done(contents) => bridge::read_result(contents),
        ReadOutcome::Ask(_) => Err("it asked too often".into()),
    };
    match result {
        Ok(result) => Ok(ctx.encoder.read_result(result)),
        Err(problem) => other_failed(defect(served, &problem)),
    }
}

pub async fn prompt(ctx: &Context, params: GetPrompt, retry: Retry) -> Result<String, RpcError> {
    let catalog = ctx.server.shelf.catalog().await;
    let Some((served, prompt)) = catalog.prompt(&params.name) else {
        return Err(RpcError::invalid_params(format!("unknown prompt: {}", wharf_protocol::error::clip(&params.name))));
    };
    let given = params.arguments.unwrap_or_default();
    let arguments = &prompt.published.arguments;
    if let Some(missing) = arguments.iter().find(|argument| argument.required && !given.contains_key(&argument.name)) {
        return Err(RpcError::invalid_params(format!("the argument `{}` is required", missing.name)));
    }
    let bound = json!(given);
    let request = Request { method: "prompts/get", name: &params.name, arguments: &bound, served };
    let carried = request.open(ctx, &retry)?;
    let given: Vec<(String, String)> = given.into_iter().collect();
    let operation = |context| Operation::GetPrompt { name: prompt.own_name.clone(), args: given.clone(), context };
    let outcome = match request.run(ctx, retry, carried, operation).await {
        Ok(Outcome::Prompt(outcome)) => outcome,
        Ok(_) => return Err(ctx.server.incident("a prompt had another outcome")),
        Err(failed) => return other_failed(failed),
    };
    let result = match outcome {
        PromptOutcome::Text(text) => Ok(mcp::PromptResult {
            description: prompt.published.description.clone(),
            messages: vec![mcp::PromptMessage { role: mcp::Role::User, content: mcp::Content::Text(text) }],
            meta: None,
        }),
        PromptOutcome::Done(result) => bridge::prompt_result(result),
        PromptOutcome::Ask(_) => Err("it asked too often".into()),
    };
    match result {
        Ok(result) => Ok(ctx.encoder.prompt_result(result)),
        Err(problem) => other_failed(defect(served, &problem)),
    }
}

/// A failure of anything but a tool.
pub fn other_failed(failed: Failed) -> Result<String, RpcError> {
    match failed {
        Failed::Rpc(error) => Err(error),
        Failed::Told(text) => Err(RpcError::internal(text)),
        Failed::InputRequired(result) => Ok(result),
    }
}

/// A plugin that breaks the contract: the client hears which, the operator how.
fn defect(served: &Served, problem: &str) -> Failed {
    tracing::warn!(plugin = served.config.id, "a defect of the plugin: {}", escaped(problem));
    Failed::Told(format!("The plugin `{}` failed: {}.", served.config.id, crate::text::clean(problem)))
}

/// One request to one plugin, whichever of the three it is.
struct Request<'a> {
    method: &'static str,
    name: &'a str,
    arguments: &'a Value,
    served: &'a Served,
}

impl Request<'_> {
    fn binding<'a>(&'a self, ctx: &'a Context) -> Binding<'a> {
        Binding {
            principal: &ctx.principal,
            method: self.method,
            name: self.name,
            arguments: self.arguments,
            plugin_digest: self.served.plugin.code().digest(),
        }
    }

    /// What earlier rounds of a modern request left.
    fn open(&self, ctx: &Context, retry: &Retry) -> Result<Carried, RpcError> {
        match (&retry.request_state, ctx.encoder.revision.era()) {
            (Some(token), Era::Modern) => ctx.server.seal.open(token, &self.binding(ctx)),
            _ => Ok(Carried::default()),
        }
    }

    /// Runs the operation until it is done or the client must answer.
    async fn run(
        &self,
        ctx: &Context,
        retry: Retry,
        mut carried: Carried,
        operation: impl Fn(wit::Context) -> Operation,
    ) -> Result<Outcome, Failed> {
        let offered = match ctx.encoder.revision.era() {
            Era::Modern => retry.input_responses.unwrap_or_default(),
            Era::Legacy => Object::new(),
        };
        let roots = self.roots(ctx, &offered, &mut carried).await?;
        loop {
            let mut context = ctx.for_plugin();
            context.answers = carried.answers.iter().filter_map(bridge::carried_answer).collect();
            context.state.clone_from(&carried.state);
            let outcome = once(ctx, self.served, operation(context), &roots).await?;
            let round = match outcome {
                Outcome::Tool(ToolOutcome::Ask(round))
                | Outcome::Read(ReadOutcome::Ask(round))
                | Outcome::Prompt(PromptOutcome::Ask(round)) => round,
                done => return Ok(done),
            };
            let questions = self.questions(ctx, &round)?;
            // With the answers at hand, this only asked again what was asked when they were given: it tells what they answer,
            // and is not another round.
            let again = !carried.replayed && questions.iter().all(|(key, _)| offered.contains_key(key));
            carried.replayed = true;
            if !again {
                carried.rounds += 1;
                carried.state = round.state;
            }
            if carried.rounds > MAX_ROUNDS {
                return Err(defect(self.served, &format!("it asked more than {MAX_ROUNDS} times")));
            }
            self.answer(ctx, &questions, &offered, &mut carried).await?;
        }
    }

    /// The plugin's questions, checked: granted by the operator, within limits, possible for this client.
    fn questions(&self, ctx: &Context, round: &Round) -> Result<Vec<(String, mcp::Question)>, Failed> {
        if round.questions.is_empty() || round.questions.len() > MAX_QUESTIONS {
            return Err(defect(self.served, &format!("a round has 1 to {MAX_QUESTIONS} questions")));
        }
        if round.state.as_ref().is_some_and(|state| state.len() > MAX_STATE_BYTES) {
            return Err(defect(self.served, &format!("its state is larger than {MAX_STATE_BYTES} bytes")));
        }
        let id = &self.served.config.id;
        let granted = self.served.config.grants.ask;
        let mut questions = Vec::with_capacity(round.questions.len());
        let mut needs = wit::Abilities::empty();
        for (key, question) in &round.questions {
            let (allowed, ability) = match question {
                wit::Question::Form(_) | wit::Question::Page(_) => (granted.elicitation, "elicitation"),
                wit::Question::Sample(_) => (granted.sampling, "sampling"),
                wit::Question::Roots => (granted.roots, "roots"),
            };
            if !allowed {
                ctx.server
                    .hint(id, format!("it wanted to ask the client ({ability}); `ask = [\"{ability}\"]` allows it"));
                return Err(Failed::Told(format!(
                    "The plugin `{id}` wants to ask you something ({ability}), which the operator of this server has not \
                     allowed."
                )));
            }
            if key.is_empty() || key.len() > 128 || key.starts_with("wharf.") {
                return Err(defect(
                    self.served,
                    "the key of a question has 1 to 128 characters and does not begin with `wharf.`",
                ));
            }
            let question = bridge::question(id, question).map_err(|problem| defect(self.served, &problem))?;
            needs |= bridge::ability_for(&question);
            questions.push((key.clone(), question));
        }
        if let Some(missing) = bridge::missing_abilities(needs, &ctx.capabilities) {
            let error = ctx.lacks(&format!("the plugin `{id}`"), missing.clone());
            return Err(match ctx.encoder.revision.era() {
                Era::Modern => Failed::Rpc(error),
                Era::Legacy => Failed::Told(format!("{}: {missing}", error.message)),
            });
        }
        Ok(questions)
    }

    /// Takes the answers that are there and gets the others.
    async fn answer(
        &self,
        ctx: &Context,
        questions: &[(String, mcp::Question)],
        offered: &Object,
        carried: &mut Carried,
    ) -> Result<(), Failed> {
        let mut open = Vec::new();
        for (key, question) in questions {
            let reply = match (offered.get(key), &ctx.session) {
                // An answer counts once: a plugin that asks again under the same key wants another.
                (Some(reply), None) if carried.answers.iter().all(|(known, _)| known != key) => reply.clone(),
                (_, None) => {
                    open.push((key.clone(), question.clone()));
                    continue;
                }
                (_, Some(session)) => {
                    let (method, params) = ctx.encoder.question(question);
                    session.ask(&ctx.outlet, method, params, crate::era::legacy::PERSON).await.map_err(Failed::Told)?
                }
            };
            let answer = bridge::answer(question, &reply).map_err(|problem| match &ctx.session {
                None => Failed::Rpc(RpcError::invalid_params(format!("`inputResponses.{key}`: {problem}"))),
                Some(_) => Failed::Told(format!("The client's answer does not fit the question: {problem}.")),
            })?;
            carried.answers.retain(|(known, _)| known != key);
            carried.answers.push((key.clone(), bridge::carry_answer(&answer)));
        }
        if open.is_empty() { Ok(()) } else { Err(self.input_required(ctx, &open, std::mem::take(carried))) }
    }

    fn input_required(&self, ctx: &Context, open: &[(String, mcp::Question)], carried: Carried) -> Failed {
        // State only when there is something to carry: a single question needs none.
        let nothing = carried.answers.is_empty() && carried.state.is_none() && carried.roots.is_none();
        let sealed = if nothing { Ok(None) } else { ctx.server.seal.seal(carried, &self.binding(ctx)).map(Some) };
        match sealed {
            Ok(state) => Failed::InputRequired(ctx.encoder.input_required(open, state.as_deref())),
            Err(error) => Failed::Rpc(error),
        }
    }

    /// The roots of this call, asked for if need be.
    async fn roots(&self, ctx: &Context, offered: &Object, carried: &mut Carried) -> Result<CallRoots, Failed> {
        let scopes = &ctx.server.scopes;
        if self.served.config.grants.roots.is_none() {
            return Ok(CallRoots::default());
        }
        if !ctx.capabilities.roots {
            return Ok(scopes.fixed_roots());
        }
        if !scopes.accepts_roots() {
            return Ok(CallRoots::default());
        }
        if let Some(session) = &ctx.session {
            return Ok(session.roots(&ctx.server, &ctx.outlet).await);
        }
        let known = match (&carried.roots, offered.get(ROOTS_KEY)) {
            (Some(uris), _) => uris.clone(),
            (None, Some(reply)) => {
                let roots = bridge::roots(reply)
                    .map_err(|problem| RpcError::invalid_params(format!("`inputResponses.{ROOTS_KEY}`: {problem}")))?;
                roots.roots.into_iter().map(|root| root.uri).collect()
            }
            (None, None) => {
                let question = [(ROOTS_KEY.to_owned(), mcp::Question::Roots)];
                return Err(self.input_required(ctx, &question, std::mem::take(carried)));
            }
        };
        let roots: Vec<_> =
            known.iter().map(|uri| wharf_protocol::params::Root { uri: uri.clone(), name: None }).collect();
        carried.roots = Some(known);
        Ok(scopes.open(&roots, &CallRoots::default()))
    }
}

/// Runs a plugin once. Stops it when its access is taken away: a revoked grant, or a root the client has closed.
pub async fn once(ctx: &Context, served: &Served, operation: Operation, roots: &CallRoots) -> Result<Outcome, Failed> {
    let id = &served.config.id;
    let scope = ctx.server.scopes.for_call(&served.config, roots);
    let call = served.plugin.call(operation, &scope, ctx.events(id), None);
    let lost = async {
        match &ctx.session {
            Some(session) if served.config.grants.roots.is_some() => {
                session.lost(&ctx.server, &ctx.outlet, roots).await
            }
            _ => std::future::pending().await,
        }
    };
    let report = tokio::select! {
        report = call => report,
        () = served.revoked.cancelled() => {
            tracing::info!(plugin = id, "stopped a call whose access was taken away");
            return Err(Failed::Told(format!("The operator took away access of the plugin `{id}` during the call.")));
        }
        () = lost => {
            tracing::info!(plugin = id, "stopped a call whose root was closed");
            return Err(Failed::Told("A root that the call was using was closed.".into()));
        }
    };
    let hints = hints(ctx, served, &report.denials);
    if !report.printed.is_empty() {
        tracing::debug!(plugin = id, "printed: {}", escaped(&report.printed));
    }
    match report.result {
        Ok(Outcome::Tool(ToolOutcome::Done(mut result))) if result.is_error && !hints.is_empty() => {
            result.content.push(wit::Content::Text(hints));
            Ok(Outcome::Tool(ToolOutcome::Done(result)))
        }
        Ok(outcome) => Ok(outcome),
        Err(CallError::Failed(failure)) => Err(match bridge::failure_error(&failure) {
            Some(error) => Failed::Rpc(error),
            None => Failed::Told(join(&crate::text::clean(&failure.message), &hints)),
        }),
        Err(error) => {
            let detail = match &error {
                CallError::Trap { detail, .. } => escaped(detail),
                _ => String::new(),
            };
            let took = report.took.as_millis();
            tracing::warn!(
                plugin = id,
                took_ms = took,
                printed = escaped(&report.printed),
                detail,
                "a call failed: {error}"
            );
            let text = format!("The plugin `{id}` did not finish: {}.", crate::text::clean(&error.to_string()));
            Err(Failed::Told(join(&text, &hints)))
        }
    }
}

fn join(text: &str, hints: &str) -> String {
    if hints.is_empty() { text.to_owned() } else { format!("{text}\n{hints}") }
}

/// Tells the operator what was refused, and gives the sentence for the client.
fn hints(ctx: &Context, served: &Served, denials: &[Denial]) -> String {
    let id = &served.config.id;
    for denial in denials {
        match denial {
            Denial::Http(host) => {
                ctx.server.hint(
                    id,
                    format!("it was refused a connection to {}; no plugin has network access yet", escaped(host)),
                );
            }
            Denial::NoDirectory => {
                ctx.server.hint(
                    id,
                    "it looked for files and no directory is open to it; `roots` or `dirs` give it one".into(),
                );
            }
        }
    }
    if denials.is_empty() { String::new() } else { "The operator of this server can allow this.".into() }
}
