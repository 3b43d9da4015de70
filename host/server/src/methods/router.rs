//! Every method, in one match. What a method needs of its era comes in the context; what it answers is neutral until the
//! context's encoder writes it.

use wharf_protocol::{
    Level, Revision, RpcError,
    params::{self, Complete, CompleteContext, Params, Reference},
    revision::Era,
};
use wharf_sandbox::{Operation, Outcome, model::Target};

use super::{call, listen, response::Answer, tasks};
use crate::{
    access::scope::CallRoots,
    bridge::{self, check_uri},
    client::{context::Context, server::INSTRUCTIONS},
    plugins::catalog::List,
};

/// Answers one request with the JSON of its result.
pub async fn handle(ctx: &Context, method: &str, params: Option<&Params>) -> Result<Answer, RpcError> {
    if ctx.encoder.revision.era() == Era::Modern {
        ctx.meta.log_level()?;
    }
    match method {
        "tools/list" => list(ctx, List::Tools, params).await,
        "resources/list" => list(ctx, List::Resources, params).await,
        "resources/templates/list" => list(ctx, List::Templates, params).await,
        "prompts/list" => list(ctx, List::Prompts, params).await,
        _ => made(ctx, method, params).await.map(Answer::Own),
    }
}

/// What is made for one request.
async fn made(ctx: &Context, method: &str, params: Option<&Params>) -> Result<String, RpcError> {
    match (method, ctx.encoder.revision.era()) {
        ("tools/call", _) => call::tool(ctx, params).await,
        ("resources/read", _) => call::resource(ctx, params::read(params)?, params::read(params)?).await,
        ("prompts/get", _) => call::prompt(ctx, params::read(params)?, params::read(params)?).await,
        ("completion/complete", _) => complete(ctx, params::read(params)?).await,
        ("ping", Era::Legacy) => Ok(ctx.encoder.empty()),
        ("logging/setLevel", Era::Legacy) => set_level(ctx, params::read(params)?),
        ("resources/subscribe", Era::Legacy) => subscribe(ctx, params::read(params)?).await,
        ("resources/unsubscribe", Era::Legacy) => unsubscribe(ctx, params::read(params)?),
        ("tasks/get", _) if has_tasks(ctx) => tasks::get(ctx, &params::read(params)?),
        ("tasks/cancel", _) if has_tasks(ctx) => tasks::cancel(ctx, &params::read(params)?),
        ("tasks/update", Era::Modern) if has_tasks(ctx) => tasks::update(ctx, params::read(params)?),
        ("tasks/result", Era::Legacy) if has_tasks(ctx) => tasks::result(ctx, &params::read(params)?).await,
        ("tasks/list", Era::Legacy) if has_tasks(ctx) => tasks::list(ctx, &params::read(params)?),
        ("server/discover", Era::Modern) => Ok(ctx.encoder.discover(INSTRUCTIONS)),
        ("subscriptions/listen", Era::Modern) => listen::listen(ctx, params::read(params)?).await,
        _ => Err(RpcError::method_not_found(method)),
    }
}

/// Whether a method exists for modern requests, which HTTP must know before it looks at anything else.
pub fn is_modern_method(method: &str, tasks: bool) -> bool {
    let of_tasks = matches!(method, "tasks/get" | "tasks/update" | "tasks/cancel");
    matches!(
        method,
        "tools/list"
            | "tools/call"
            | "resources/list"
            | "resources/read"
            | "resources/templates/list"
            | "prompts/list"
            | "prompts/get"
            | "completion/complete"
            | "server/discover"
            | "subscriptions/listen"
    ) || (tasks && of_tasks)
}

/// Which revisions have tasks, if the operator does.
fn has_tasks(ctx: &Context) -> bool {
    ctx.encoder.tasks && ctx.encoder.revision >= Revision::V2025_11_25
}

async fn list(ctx: &Context, list: List, params: Option<&Params>) -> Result<Answer, RpcError> {
    let params: params::List = params::read(params)?;
    let catalog = ctx.server.shelf.catalog().await;
    catalog.page(list, params.cursor.as_deref(), &ctx.encoder).map(Answer::Kept)
}

async fn complete(ctx: &Context, params: Complete) -> Result<String, RpcError> {
    let catalog = ctx.server.shelf.catalog().await;
    let (served, target) = match &params.reference {
        Reference::Prompt { name } => {
            let found = catalog.prompt(name).map(|(served, prompt)| (served, Target::Prompt(prompt.own_name.clone())));
            found.ok_or_else(|| RpcError::invalid_params("unknown prompt"))?
        }
        Reference::Resource { uri } => {
            check_uri(uri)?;
            // Clients may name the template or a URI it covers.
            let served = catalog.template(uri).or_else(|| catalog.resource(uri).map(|(served, _)| served));
            (
                served.ok_or_else(|| RpcError::invalid_params("unknown resource template"))?,
                Target::Template(uri.clone()),
            )
        }
    };
    if !served.plugin.code().exports().completions {
        return Ok(ctx.encoder.completion(wharf_protocol::model::Completion {
            values: vec![],
            total: None,
            has_more: false,
        }));
    }
    let CompleteContext { arguments } = params.context.unwrap_or_default();
    let operation = Operation::Complete {
        target,
        argument: params.argument.name,
        value: params.argument.value,
        others: arguments.unwrap_or_default().into_iter().collect(),
    };
    match call::once(ctx, served, operation, &CallRoots::default()).await {
        Ok(Outcome::Completion(completion)) => Ok(ctx.encoder.completion(bridge::completion(completion))),
        Ok(_) => Err(ctx.server.incident("a completion had another outcome")),
        Err(failed) => call::other_failed(failed),
    }
}

fn set_level(ctx: &Context, params: params::SetLevel) -> Result<String, RpcError> {
    let level = Level::parse(&params.level).ok_or_else(|| RpcError::invalid_params("unknown log level"))?;
    if let Some(session) = &ctx.session {
        session.set_log_level(level);
    }
    Ok(ctx.encoder.empty())
}

async fn subscribe(ctx: &Context, params: params::Subscribe) -> Result<String, RpcError> {
    check_uri(&params.uri)?;
    let catalog = ctx.server.shelf.catalog().await;
    if catalog.resource(&params.uri).is_none() {
        return Err(RpcError::resource_not_found(&params.uri));
    }
    if let Some(session) = &ctx.session {
        session.subscribe(params.uri)?;
    }
    Ok(ctx.encoder.empty())
}

fn unsubscribe(ctx: &Context, params: params::Subscribe) -> Result<String, RpcError> {
    if let Some(session) = &ctx.session {
        session.unsubscribe(&params.uri);
    }
    Ok(ctx.encoder.empty())
}
