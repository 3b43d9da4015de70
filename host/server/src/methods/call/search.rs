//! The tools that stand for all others where a client is better off with few: `find_tools`, `call_tool` and `read_resource`. What
//! they lead to goes the same way as a request for it.

use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use wharf_protocol::{
    RpcError,
    encode::Encoder,
    error::METHOD_NOT_FOUND,
    model::{Body, Content, ReadResult, ResourceContents, ToolResult},
    params::Retry,
};

use super::{
    answered::Answered,
    resource,
    tool::{self, Wanted},
};
use crate::{
    base::heavy::heavy,
    client::context::Context,
    plugins::{
        finder::{CALL, FIND, MOST_FOUND, READ, USUALLY_FOUND},
        lists::List,
    },
    profiles::Style,
};

/// Tools are found until their entries have so many bytes, but at least one.
const FOUND_BYTES: usize = 256 << 10;
/// How many resources, and how many templates, are listed.
const LISTED: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Find {
    query: String,
    limit: Option<u64>,
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

/// Whether this is one of the tools that stand for all others, and this client has them.
pub fn is_own(ctx: &Context, name: &str) -> bool {
    let profiles = &ctx.server.config.borrow().profiles;
    let style = profiles.find(ctx.profile.as_deref()).map_or(Style::Full, |profile| profile.style);
    style == Style::Search && [FIND, CALL, READ].contains(&name)
}

/// Answers a call of one of them.
pub async fn call(ctx: &Context, wanted: Wanted<'_>) -> Result<Answered, RpcError> {
    let Wanted { name, arguments, retry, task } = wanted;
    if task.is_some() {
        let message = format!("`{name}` does not run as a task; call the tool that you mean by its own name");
        return Err(RpcError::new(METHOD_NOT_FOUND, message));
    }
    let text = arguments.map_or("{}", RawValue::get);
    match name.as_str() {
        FIND => match read(text) {
            Ok(asked) => find(ctx, &asked, text.len()).await,
            Err(problem) => Ok(problem),
        },
        CALL => match read::<CallTool<'_>>(text) {
            Ok(CallTool { name, arguments }) => {
                // The client never saw the tool, so it could not repeat its arguments in headers.
                let mut ctx = ctx.clone();
                ctx.headers = None;
                Box::pin(tool::call(&ctx, Wanted { name, arguments, retry, task: None })).await
            }
            Err(problem) => Ok(problem),
        },
        _ => match read::<ReadResource>(text) {
            Ok(ReadResource { uri: Some(uri) }) => read_resource(ctx, &uri, retry).await,
            Ok(ReadResource { uri: None }) => list_resources(ctx).await,
            Err(problem) => Ok(problem),
        },
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Answered> {
    serde_json::from_str(text).map_err(|error| {
        Answered::error(format!("The arguments do not fit the tool's schema: {error}. Look at its inputSchema."))
    })
}

async fn find(ctx: &Context, asked: &Find, bytes: usize) -> Result<Answered, RpcError> {
    let view = ctx.view().await;
    let limit = usize::try_from(asked.limit.unwrap_or(USUALLY_FOUND).clamp(1, MOST_FOUND)).unwrap_or(1);
    // The first query after a change makes the index, of however many tools there are.
    let found = heavy(bytes.max(FOUND_BYTES), || view.find(&asked.query));
    let (mut tools, mut size) = (Vec::new(), 0);
    for tool in found.iter().take(limit) {
        let Value::Object(mut entry) = ctx.encoder.tool(&tool.published) else { continue };
        // What a model needs in order to call it, and nothing more.
        entry.retain(|key, _| ["name", "title", "description", "inputSchema", "annotations"].contains(&key.as_str()));
        size += tool.published.input_schema.get().len() + tool.published.description.len();
        if size > FOUND_BYTES && !tools.is_empty() {
            break;
        }
        tools.push(Value::Object(entry));
    }
    let mut answer = Map::new();
    if tools.is_empty() {
        let all = view.count_tools();
        answer.insert("hint".into(), format!("none of the {all} tools fits; try other words").into());
    }
    answer.insert("tools".into(), tools.into());
    answer.insert("total".into(), found.len().into());
    Ok(structured(Value::Object(answer), size))
}

/// A result with structured content, of which the encoder writes the text too.
fn structured(value: Value, bytes: usize) -> Answered {
    Answered::Result { result: ToolResult { structured: Some(value), ..ToolResult::default() }, bytes, turn: None }
}

async fn list_resources(ctx: &Context) -> Result<Answered, RpcError> {
    let view = ctx.view().await;
    let listed = |list: List, encoder: &Encoder| -> Vec<Value> {
        view.entries(list).take(LISTED).map(|one| one.encode(encoder)).collect()
    };
    let (resources, templates) = (listed(List::Resources, &ctx.encoder), listed(List::Templates, &ctx.encoder));
    let total = view.entries(List::Resources).count() + view.entries(List::Templates).count();
    let answer = json!({ "resources": resources, "resourceTemplates": templates, "total": total });
    Ok(structured(answer, FOUND_BYTES))
}

async fn read_resource(ctx: &Context, uri: &str, retry: Retry) -> Result<Answered, RpcError> {
    match resource::read(ctx, uri, retry).await {
        Ok(ReadResult { contents }) => {
            let bytes = contents.iter().map(size).sum();
            let content = contents.into_iter().map(block).collect();
            Ok(Answered::Result { result: ToolResult { content, ..ToolResult::default() }, bytes, turn: None })
        }
        Err(failed) => Answered::failed(failed),
    }
}

fn size(contents: &ResourceContents) -> usize {
    match &contents.body {
        Body::Text(text) => text.len(),
        Body::Bytes(bytes) => bytes.len(),
    }
}

/// A text is a text, because clients without resources may not know what holds one.
fn block(contents: ResourceContents) -> Content {
    match contents.body {
        Body::Text(text) => Content::Text(text),
        Body::Bytes(_) => Content::Embedded(contents),
    }
}
