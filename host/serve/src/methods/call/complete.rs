//! `completion/complete`.

use serde_json::json;
use wharf_protocol::{
    Method, RpcError, model as mcp,
    params::{self, CompleteContext, Reference},
};
use wharf_sandbox::model::Target;

use super::{failed::other_failed, gates, request::Request, run::run_once};
use crate::client::context::Context;
use wharf_config::roles::{Entry, Kind};
use wharf_plugins::bridge::{self, check_uri};

pub async fn complete(ctx: &Context, params: params::Complete) -> Result<String, RpcError> {
    let view = ctx.view().await;
    let (served, target) = match &params.reference {
        Reference::Prompt { name } => {
            let (served, prompt) = view.prompt(name)?;
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
            let served = served.ok_or_else(|| RpcError::invalid_params("unknown resource template"))?;
            (served, Target::Template(uri.clone()))
        }
    };
    if !served.plugin.code().exports().completions {
        return Ok(ctx.encoder.completion(mcp::Completion { values: vec![], total: None, has_more: false }));
    }
    let (Reference::Prompt { name } | Reference::Resource { uri: name }) = &params.reference;
    let none = json!({});
    let entry = match &params.reference {
        Reference::Prompt { .. } => Entry::new(Kind::Prompt, &served.config.id, name),
        Reference::Resource { .. } => Entry::new(Kind::Resource, &served.config.id, name),
    };
    let bytes = params.argument.value.len();
    let request = Request { method: Method::Complete, name, arguments: &none, bytes, served, entry, tool: None };
    let CompleteContext { arguments } = params.context.unwrap_or_default();
    let operation = wharf_sandbox::Complete {
        target,
        argument: params.argument.name,
        value: params.argument.value,
        arguments: arguments.unwrap_or_default().into_iter().collect(),
    };
    // A person is typing and wants a quick answer, so no question about approval or roots is asked, and the call gets no roots.
    let passed = match gates::begin(ctx, &request) {
        Ok(passed) => passed,
        Err(failed) => return other_failed(failed),
    };
    match run_once(ctx, &request, operation, &passed).await {
        Ok(ran) => Ok(ctx.encoder.completion(bridge::completion(ran.outcome))),
        Err(failed) => other_failed(failed),
    }
}
