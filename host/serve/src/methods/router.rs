//! Calls the function for each method. Differences between revisions are in the context, whose encoder writes the results.

use std::{any::Any, panic::AssertUnwindSafe, pin::pin};

use futures_util::FutureExt;
use tracing::Instrument;
use wharf_protocol::{
    Level, Method, RpcError,
    encode::Encoder,
    error::clip,
    params::{self, Params},
    revision::Era,
};

use super::{
    call::{self, CallResult, WantedCall},
    listen,
    response::Encoded,
    tasks,
};
use crate::client::{context::Context, news::Setting, session::Session};
use wharf_plugins::{bridge::check_uri, plugins::lists::List};

/// Answers one request with its result, even if wharf panics: that becomes an error with a number that the operator finds in the log.
/// `name`: the method that the client wrote, which may be unknown.
pub async fn answer(ctx: &Context, name: &str, params: Option<&Params>) -> Result<Encoded, RpcError> {
    if ctx.encoder.revision.era() == Era::Modern {
        ctx.meta.log_level()?;
    }
    let method = find(&ctx.encoder, name)?;
    let timing = ctx.server.observers.time(method, ctx.encoder.revision);
    // Pinned here, because wrapping a future moves it, and this one has some kilobytes.
    let work = pin!(async {
        Ok(Encoded::Own(match method {
            Method::CallTool => {
                let wanted = WantedCall::read(params)?;
                let is_search = call::is_search(ctx, &wanted.name);
                let result = if is_search {
                    call::search(ctx, wanted).await?
                } else {
                    call::tool(ctx, wanted).await.or_else(CallResult::failed)?
                };
                result.into_json(ctx)
            }
            Method::ListTools => return list(ctx, List::Tools, params).await,
            Method::ListResources => return list(ctx, List::Resources, params).await,
            Method::ListTemplates => return list(ctx, List::Templates, params).await,
            Method::ListPrompts => return list(ctx, List::Prompts, params).await,
            Method::ReadResource => call::resource(ctx, params::read(params)?).await?,
            Method::GetPrompt => call::prompt(ctx, params::read(params)?).await?,
            Method::Complete => call::complete(ctx, params::read(params)?).await?,
            Method::Ping => ctx.encoder.empty(),
            Method::SetLevel => set_level(ctx, params::read(params)?).await?,
            Method::Subscribe => subscribe(ctx, params::read(params)?).await?,
            Method::Unsubscribe => unsubscribe(ctx, params::read(params)?).await?,
            Method::GetTask => tasks::get(ctx, &params::read(params)?).await?,
            Method::CancelTask => tasks::cancel(ctx, &params::read(params)?).await?,
            Method::UpdateTask => tasks::update(ctx, params::read(params)?).await?,
            Method::TaskResult => tasks::result(ctx, &params::read(params)?).await?,
            Method::ListTasks => tasks::list(ctx, &params::read(params)?).await?,
            Method::Discover => discover(ctx).await?,
            Method::Listen => listen::listen(ctx, params::read(params)?).await?,
            // Admission handles it, before there is a context.
            Method::Initialize => return Err(RpcError::method_not_found(method.as_str())),
        }))
    });
    let span = tracing::debug_span!("request", method = %clip(name), id = ?ctx.id, principal = ctx.principal().short());
    let result = AssertUnwindSafe(work).catch_unwind().instrument(span).await;
    let result = result.unwrap_or_else(|panic| Err(ctx.server.incident(&said(&*panic))));
    if let Some(timing) = timing {
        timing.end(result.as_ref().err().map(|error| error.code));
    }
    if let Err(error) = &result {
        call::refused(ctx, method, params, error).await;
    }
    result
}

/// Returns the method with this name, if the revision has it.
pub fn find(encoder: &Encoder, name: &str) -> Result<Method, RpcError> {
    Method::parse(name).filter(|method| method.is_in(encoder.revision)).ok_or_else(|| RpcError::method_not_found(name))
}

/// Returns the message of a panic.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

async fn list(ctx: &Context, list: List, params: Option<&Params>) -> Result<Encoded, RpcError> {
    let params: params::List = params::read(params)?;
    let view = call::for_list(ctx, list).await;
    ctx.server.admit_introduction(ctx.caller())?;
    view.page(list, params.cursor.as_deref(), &ctx.encoder).map(Encoded::Shared)
}

async fn discover(ctx: &Context) -> Result<String, RpcError> {
    ctx.server.ready_to_introduce().await;
    ctx.server.admit_introduction(ctx.caller())?;
    let instructions = ctx.server.instructions(ctx.caller(), ctx.profile());
    Ok(ctx.encoder.discover(instructions.as_ref()))
}

async fn set_level(ctx: &Context, params: params::SetLevel) -> Result<String, RpcError> {
    let level = Level::parse(&params.level).ok_or_else(|| RpcError::invalid_params("unknown log level"))?;
    if let Some(session) = &ctx.session {
        share(ctx, session, || Setting::Level(params.level)).await?;
        session.set_log_level(level);
    }
    Ok(ctx.encoder.empty())
}

async fn subscribe(ctx: &Context, params: params::Subscribe) -> Result<String, RpcError> {
    check_uri(&params.uri)?;
    ctx.view().await.resource(&params.uri)?;
    if let Some(session) = &ctx.session {
        session.subscribe(params.uri.clone())?;
        if let Err(error) = share(ctx, session, || Setting::Subscribe(params.uri.clone())).await {
            session.unsubscribe(&params.uri);
            return Err(error);
        }
    }
    Ok(ctx.encoder.empty())
}

async fn unsubscribe(ctx: &Context, params: params::Subscribe) -> Result<String, RpcError> {
    check_uri(&params.uri)?;
    if let Some(session) = &ctx.session {
        session.unsubscribe(&params.uri);
        share(ctx, session, || Setting::Unsubscribe(params.uri)).await?;
    }
    Ok(ctx.encoder.empty())
}

/// Shares what the client has set with other replicas, if there are any.
async fn share(ctx: &Context, session: &Session, setting: impl FnOnce() -> Setting) -> Result<(), RpcError> {
    match ctx.server.cluster {
        // Boxed, so that the futures of requests stay small.
        Some(_) => Box::pin(ctx.server.share(session, setting())).await,
        None => Ok(()),
    }
}
