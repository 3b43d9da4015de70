//! Calls into plugins: from the parameters of `tools/call`, `resources/read` and `prompts/get` to their results.
//!
//! The same steps for all three and for both eras: find the plugin, check, build the scope, run. If the plugin asks, put
//! its questions to the client and run it again from the start with all answers so far. Nothing is held while a person thinks: a
//! modern client gets the questions as its answer, and a legacy one as requests, with no sandbox alive meanwhile.

use serde_json::json;
use wharf_protocol::{
    Object, RpcError, model as mcp,
    params::{GetPrompt, ReadResource, Retry},
};
use wharf_sandbox::{
    Operation, Outcome,
    model::{PromptOutcome, ReadOutcome},
};

use self::request::Request;
use crate::{bridge, catalog::Served, context::Context, text::escaped};

mod background;
mod once;
mod request;
mod tool;

pub use once::once;
pub use tool::tool;

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

pub async fn resource(ctx: &Context, params: ReadResource, retry: Retry) -> Result<String, RpcError> {
    let uri = &params.uri;
    crate::router::check_uri(uri)?;
    let catalog = ctx.server.shelf.catalog().await;
    let Some((served, mime_type)) = catalog.resource(uri) else { return Err(RpcError::resource_not_found(uri)) };
    let none = json!({});
    let request = Request { method: "resources/read", name: uri, arguments: &none, served };
    let carried = request.open(ctx, &retry)?;
    let operation = |context| Operation::ReadResource { uri: uri.clone(), context };
    let outcome = match request.prepare_and_run(ctx, retry, carried, operation).await {
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
    let outcome = match request.prepare_and_run(ctx, retry, carried, operation).await {
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
