//! `completion/complete`.

use wharf_protocol::{
    RpcError, model as mcp,
    params::{self, CompleteContext, Reference},
};
use wharf_sandbox::model::Target;

use super::{
    failed::{Failed, other_failed},
    gates,
    request::Request,
    run::run_once,
};
use crate::client::context::Context;
use wharf_plugins::bridge::{self, check_uri};
use wharf_policy::roles::EntryKind;

pub async fn complete(ctx: &Context, params: params::Complete) -> Result<String, RpcError> {
    match suggest(ctx, params).await {
        Ok(completion) => Ok(ctx.encoder.completion(completion)),
        Err(failed) => other_failed(failed),
    }
}

/// Asks the plugin for values of an argument.
pub async fn suggest(ctx: &Context, params: params::Complete) -> Result<mcp::Completion, Failed> {
    let view = ctx.view().await;
    let (served, target) = match &params.reference {
        Reference::Prompt { name } => {
            let (served, prompt) = view.prompt(name).map_err(Failed::unknown)?;
            (served, Target::Prompt(prompt.own_name.clone()))
        }
        Reference::Resource { uri } => {
            check_uri(uri)?;
            // Clients may name the template itself, or a URI that it matches if they may use the whole template.
            let of_uri = || {
                let (served, listed) = view.resource(uri).ok()?;
                listed.template.map_or(Some(served), |template| view.template(template))
            };
            let served = view.template(uri).or_else(of_uri);
            let unknown = || Failed::unknown(RpcError::invalid_params("unknown resource template"));
            let served = served.ok_or_else(unknown)?;
            (served, Target::Template(uri.clone()))
        }
    };
    if !served.plugin.completes() {
        return Ok(mcp::Completion { values: vec![], total: None, has_more: false });
    }
    let (kind, name) = match &params.reference {
        Reference::Prompt { name } => (EntryKind::Prompt, name),
        Reference::Resource { uri } => (EntryKind::Resource, uri),
    };
    let request = Request::of_completion(served, kind, name, params.argument.value.len());
    let CompleteContext { arguments } = params.context.unwrap_or_default();
    let operation = wharf_sandbox::Complete {
        target,
        argument: params.argument.name,
        value: params.argument.value,
        arguments: arguments.unwrap_or_default().into_iter().collect(),
    };
    // A person is typing and wants a quick answer, so no question about approval or roots is asked, and the call gets no roots.
    let passed = gates::begin(ctx, &request).await?;
    let (outcome, _) = run_once(ctx, &request, operation, &passed).await?;
    Ok(bridge::completion(outcome))
}
