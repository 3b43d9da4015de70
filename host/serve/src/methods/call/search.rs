//! The search tools, which replace the list of all tools for clients that are better off with few: `find_tools`, `call_tool` and
//! `read_resource`. A request through them takes the same path as a direct one.

use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use tokio::sync::Mutex;
use wharf_protocol::{
    Method, RpcError, Written,
    error::{INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND},
    model::{Body, Content, ReadResult, ResourceContents, ToolResult},
    params::Retry,
};

use super::{
    coming,
    failed::{Failed, Said},
    refused, resource,
    result::CallResult,
    tool::{self, WantedCall},
};
use crate::client::context::Context;
use wharf_base::heavy::heavy;
use wharf_plugins::plugins::{
    finder::{CALL, DEFAULT_FOUND, FIND, MAX_FOUND, MAX_QUERY_CHARS, READ},
    lists::List,
    view::View,
};
use wharf_policy::profiles::Style;

/// The maximum size of the listed entries, as JSON; at least one entry is listed.
const MAX_LISTED_BYTES: usize = 128 << 10;
/// The maximum number of resources and templates that are listed.
const MAX_LISTED_RESOURCES: usize = 200;
/// The keys of a tool that a model needs in order to call it.
const TOOL_KEYS: [&str; 6] = ["name", "title", "description", "inputSchema", "annotations", "execution"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Find {
    query: String,
    limit: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallTool<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadResource {
    uri: Option<String>,
}

/// Whether this is one of the search tools, and this client has them.
pub fn is_own(ctx: &Context, name: &str) -> bool {
    [FIND, CALL, READ].contains(&name) && ctx.server.style(ctx.profile()) == Style::Search
}

/// Answers a call of a search tool. A mistake of the model becomes a result that explains it, since many programs stop at an error.
pub async fn call(ctx: &Context, wanted: WantedCall) -> Result<CallResult, RpcError> {
    let WantedCall { name, arguments, retry, task, by_model: _ } = wanted;
    if task.is_some() {
        let message = format!("`{name}` does not run as a task; call the tool that you mean by its own name");
        return Err(RpcError::new(METHOD_NOT_FOUND, message));
    }
    let written = arguments.unwrap_or_else(|| "{}".to_owned().into());
    let text = written.as_str();
    match name.as_str() {
        FIND => match read(text) {
            Ok(asked) => find(ctx, &asked).await,
            Err(problem) => Ok(problem),
        },
        CALL => match read::<CallTool<'_>>(text) {
            Ok(CallTool { name, arguments }) => {
                call_tool(ctx, name, arguments.map(|text| written.piece(text.get())), retry).await
            }
            Err(problem) => Ok(problem),
        },
        _ => match read::<ReadResource>(text) {
            Ok(ReadResource { uri: Some(uri) }) => read_resource(ctx, &uri, retry).await,
            Ok(ReadResource { uri: None }) => Ok(list_resources(ctx).await),
            Err(problem) => Ok(problem),
        },
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, CallResult> {
    serde_json::from_str(text).map_err(|error| {
        CallResult::error(format!("The arguments do not fit the tool's schema: {error}. Look at its inputSchema."))
    })
}

async fn find(ctx: &Context, asked: &Find) -> Result<CallResult, RpcError> {
    if asked.query.chars().count() > MAX_QUERY_CHARS {
        return Ok(CallResult::error(format!(
            "The query has more than {MAX_QUERY_CHARS} characters; a few words are enough."
        )));
    }
    let view = indexed(ctx).await;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a small number")]
    let limit = asked.limit.unwrap_or(DEFAULT_FOUND).clamp(1.0, MAX_FOUND) as usize;
    let found = heavy(MAX_LISTED_BYTES, || view.find(&asked.query));
    let (total, mut told) = (found.len(), Told::default());
    for (_, tool) in found.into_iter().take(limit) {
        let Value::Object(mut entry) = ctx.encoder.tool(&tool.published) else { continue };
        entry.retain(|key, _| TOOL_KEYS.contains(&key.as_str()));
        if !told.add(Value::Object(entry)) {
            break;
        }
    }
    let mut answer = Map::new();
    let mut hints = Vec::new();
    if told.entries.is_empty() {
        hints.push(format!("none of the {} tools fits; try other words", view.count_findable()));
        hints.extend(ctx.server.failed(&view));
    }
    hints.extend(coming::still_coming(ctx, &view));
    if !hints.is_empty() {
        answer.insert("hint".into(), hints.join(". ").into());
    }
    answer.insert("tools".into(), told.entries.into());
    answer.insert("total".into(), total.into());
    Ok(structured(Value::Object(answer), told.bytes))
}

/// Returns what the caller sees of the catalog, with the index for the search.
///
/// The first search after a change builds the index, which takes long for many tools. This process builds one index at a time: the other
/// searches wait here without a thread. The catalog may change while they wait, so each one then takes the newest, and no index is built
/// for a catalog that was replaced.
async fn indexed(ctx: &Context) -> View {
    static BUILD: Mutex<()> = Mutex::const_new(());
    let view = ctx.view().await;
    if view.is_indexed() {
        return view;
    }
    let _turn = BUILD.lock().await;
    let newest = ctx.server.view(ctx.caller(), ctx.profile());
    heavy(MAX_LISTED_BYTES, || newest.build_index());
    newest
}

/// The entries of a list, as many as fit.
#[derive(Default)]
struct Told {
    entries: Vec<Value>,
    bytes: usize,
}

impl Told {
    /// Adds an entry if there is room for it. Returns whether there was.
    fn add(&mut self, entry: Value) -> bool {
        self.bytes += entry.to_string().len();
        let fits = self.bytes <= MAX_LISTED_BYTES || self.entries.is_empty();
        if fits {
            self.entries.push(entry);
        }
        fits
    }
}

/// Returns a result with structured content, of which the encoder also writes the text.
fn structured(value: Value, bytes: usize) -> CallResult {
    CallResult::Result { result: ToolResult { structured: Some(value), ..ToolResult::default() }, bytes }
}

async fn call_tool(
    ctx: &Context,
    name: String,
    arguments: Option<Written>,
    retry: Retry,
) -> Result<CallResult, RpcError> {
    let answers = is_answer(&retry);
    let ctx = ctx.without_headers();
    let wanted = WantedCall { name: name.clone(), arguments: arguments.clone(), retry, task: None, by_model: true };
    let result = Box::pin(tool::call(&ctx, wanted)).await;
    if let Err(Failed { said: Said::Rpc(error), .. }) = &result {
        refused::tool(&ctx, &name, arguments.as_ref().map(Written::as_str), error.code.to_string()).await;
    }
    in_words(result.or_else(CallResult::failed), answers, "Look for it with find_tools.")
}

/// Whether a call carries answers to questions.
fn is_answer(retry: &Retry) -> bool {
    retry.request_state.is_some() || retry.input_responses.is_some()
}

/// Turns an error that the model can correct into a result with a remedy. All other errors go to the client, including those about answers
/// to questions, which the client sent.
fn in_words(result: Result<CallResult, RpcError>, answers: bool, remedy: &str) -> Result<CallResult, RpcError> {
    match result {
        Err(error) if !answers && [INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND].contains(&error.code) => {
            Ok(CallResult::error(format!("{}. {remedy}", error.message)))
        }
        result => result,
    }
}

async fn list_resources(ctx: &Context) -> CallResult {
    let view = ctx.view().await;
    let lists = [("resources", List::Resources), ("resourceTemplates", List::Templates)];
    let (mut answer, mut told, mut total) = (Map::new(), Told::default(), 0);
    for (key, list) in lists {
        let from = told.entries.len();
        let mut room = true;
        for entry in view.entries(list) {
            total += 1;
            room = room && told.entries.len() < MAX_LISTED_RESOURCES && told.add(entry.encode(&ctx.encoder));
        }
        answer.insert(key.into(), told.entries.get(from..).unwrap_or_default().into());
    }
    answer.insert("total".into(), total.into());
    structured(Value::Object(answer), told.bytes)
}

async fn read_resource(ctx: &Context, uri: &str, retry: Retry) -> Result<CallResult, RpcError> {
    let answers = is_answer(&retry);
    let failed = match resource::read(ctx, uri, retry).await {
        Ok(ReadResult { contents }) => {
            let bytes = contents.iter().map(size).sum();
            let content = contents.into_iter().map(block).collect();
            return Ok(CallResult::Result { result: ToolResult { content, ..ToolResult::default() }, bytes });
        }
        Err(failed) => failed,
    };
    refused::failed(ctx, Method::ReadResource, uri, Some(&json!({ "uri": uri })), uri.len(), &failed).await;
    in_words(CallResult::failed(failed), answers, "Without a URI, read_resource lists what there is.")
}

fn size(contents: &ResourceContents) -> usize {
    match &contents.body {
        Body::Text(text) => text.len(),
        Body::Bytes(bytes) => bytes.len(),
    }
}

/// Text becomes text content, because clients without resources may not know the content type that embeds a resource.
fn block(contents: ResourceContents) -> Content {
    match contents.body {
        Body::Text(text) => Content::Text(text),
        Body::Bytes(_) => Content::Embedded(contents),
    }
}
