//! `prompts/get`.

use serde_json::json;
use wharf_protocol::{
    Method, RpcError, model as mcp,
    params::{self, Retry},
};
use wharf_sandbox::{GetPrompt, PromptAnswer};

use super::{
    failed::{Failed, defect, other_failed},
    request::Request,
};
use crate::client::context::Context;
use wharf_config::roles::{Entry, Kind};
use wharf_plugins::bridge;

pub async fn prompt(ctx: &Context, mut params: params::GetPrompt) -> Result<String, RpcError> {
    let retry = params.take_retry();
    match get(ctx, params, retry).await {
        Ok(result) => Ok(ctx.encoder.prompt_result(result)),
        Err(failed) => other_failed(failed),
    }
}

/// Gets a prompt.
pub async fn get(ctx: &Context, params: params::GetPrompt, retry: Retry) -> Result<mcp::PromptResult, Failed> {
    let view = ctx.view().await;
    let (served, prompt) = view.prompt(&params.name).map_err(Failed::unknown)?;
    let entry = Entry::new(Kind::Prompt, &served.config.id, &params.name);
    let given = params.arguments.unwrap_or_default();
    let arguments = &prompt.published.arguments;
    if let Some(missing) =
        arguments.iter().find(|argument| argument.required && !given.contains_key(argument.name.as_str()))
    {
        return Err(RpcError::invalid_params(format!("the argument `{}` is required", missing.name)).into());
    }
    let bound = json!(given);
    let bytes = given.iter().map(|(name, value)| name.len() + value.len()).sum();
    let request =
        Request { method: Method::GetPrompt, name: &params.name, arguments: &bound, bytes, served, entry, tool: None };
    let carried = request.open(ctx, &retry)?;
    let given: Vec<(String, String)> = given.into_iter().collect();
    let operation = |context| GetPrompt { name: prompt.own_name.clone(), args: given.clone(), context };
    let result = match request.prepare_and_run(ctx, retry, carried, operation).await?.outcome {
        PromptAnswer::Text(text) => bridge::prompt_text(text, prompt.published.description.clone()),
        PromptAnswer::Result(result) => bridge::prompt_result(result),
    };
    result.map_err(|problem| defect(served, &problem))
}
