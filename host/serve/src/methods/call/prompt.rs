//! `prompts/get`.

use serde_json::json;
use wharf_protocol::{
    RpcError, model as mcp,
    params::{self, Retry},
};
use wharf_sandbox::{GetPrompt, PromptAnswer};

use super::{
    coming,
    failed::{Failed, other_failed},
    parsed::converted,
    request::Request,
    rounds::pass_and_run,
};
use crate::client::context::Context;
use wharf_plugins::{
    bridge::{self, CallArguments},
    plugins::expected::Sought,
};
use wharf_policy::roles::EntryKind;

pub async fn prompt(ctx: &Context, mut params: params::GetPrompt) -> Result<String, RpcError> {
    let retry = params.take_retry();
    match get(ctx, params, retry).await {
        Ok(result) => Ok(ctx.write(0, || ctx.encoder.prompt_result(result))),
        Err(failed) => other_failed(failed),
    }
}

/// Gets a prompt.
pub async fn get(ctx: &Context, params: params::GetPrompt, retry: Retry) -> Result<mcp::PromptResult, Failed> {
    let sought = Sought { kind: EntryKind::Prompt, name: &params.name };
    let view = Box::pin(coming::wait_for(ctx, sought, |view| view.prompt(&params.name).map(drop))).await?;
    let (served, prompt) = view.prompt(&params.name).map_err(Failed::unknown)?;
    let given = params.arguments.unwrap_or_default();
    let arguments = &prompt.published.arguments;
    if let Some(missing) =
        arguments.iter().find(|argument| argument.required && !given.contains_key(argument.name.as_str()))
    {
        return Err(RpcError::invalid_params(format!("the argument `{}` is required", missing.name)).into());
    }
    let bound = CallArguments::from(json!(given));
    let bytes = given.iter().map(|(name, value)| name.len() + value.len()).sum();
    let request = Request::of_prompt(served, &params.name, &bound, bytes);
    let given: Vec<(String, String)> = given.into_iter().collect();
    let operation = |context| GetPrompt { name: prompt.own_name.clone(), args: given.clone(), context };
    let answer = pass_and_run(ctx, &request, retry, operation).await?;
    let converted = converted(ctx, served, answer, |answer, paid| match answer {
        PromptAnswer::Text(text) => bridge::prompt_text(text, prompt.published.description.clone()),
        PromptAnswer::Result(result) => bridge::prompt_result(result, paid),
    });
    // Boxed, as the futures of calls have to stay small.
    Box::pin(converted).await
}
