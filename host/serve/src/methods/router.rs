//! Calls the function for each method. Differences between revisions are in the context, whose encoder writes the results.

use wharf_protocol::{
    Level, Method, RpcError,
    encode::Encoder,
    params::{self, Params},
    revision::Era,
};

use super::{call, listen, response::Answer, tasks};
use crate::client::context::Context;
use wharf_plugins::{bridge::check_uri, plugins::lists::List};

/// Answers one request with the JSON of its result. `method`: the name that the client wrote, which may be unknown.
pub async fn handle(ctx: &Context, method: &str, params: Option<&Params>) -> Result<Answer, RpcError> {
    if ctx.encoder.revision.era() == Era::Modern {
        ctx.meta.log_level()?;
    }
    let known = find(&ctx.encoder, method)?;
    let timing = ctx.server.observers.time(known, ctx.encoder.revision);
    let answer = dispatch(ctx, known, params).await;
    if let Some(timing) = timing {
        timing.end(answer.as_ref().err().map(|error| error.code));
    }
    if let Err(error) = &answer {
        call::refused(ctx, known, params, error).await;
    }
    answer
}

/// Returns the method with this name, if the revision has it.
pub fn find(encoder: &Encoder, name: &str) -> Result<Method, RpcError> {
    Method::parse(name)
        .filter(|method| method.is_in(encoder.revision, encoder.tasks))
        .ok_or_else(|| RpcError::method_not_found(name))
}

async fn dispatch(ctx: &Context, method: Method, params: Option<&Params>) -> Result<Answer, RpcError> {
    let result = match method {
        Method::ListTools => return list(ctx, List::Tools, params).await,
        Method::ListResources => return list(ctx, List::Resources, params).await,
        Method::ListTemplates => return list(ctx, List::Templates, params).await,
        Method::ListPrompts => return list(ctx, List::Prompts, params).await,
        Method::CallTool => call::tool(ctx, params).await,
        Method::ReadResource => call::resource(ctx, params::read(params)?).await,
        Method::GetPrompt => call::prompt(ctx, params::read(params)?).await,
        Method::Complete => call::complete(ctx, params::read(params)?).await,
        Method::Ping => Ok(ctx.encoder.empty()),
        Method::SetLevel => set_level(ctx, params::read(params)?),
        Method::Subscribe => subscribe(ctx, params::read(params)?).await,
        Method::Unsubscribe => unsubscribe(ctx, params::read(params)?),
        Method::GetTask => tasks::get(ctx, &params::read(params)?).await,
        Method::CancelTask => tasks::cancel(ctx, &params::read(params)?).await,
        Method::UpdateTask => tasks::update(ctx, params::read(params)?).await,
        Method::TaskResult => tasks::result(ctx, &params::read(params)?).await,
        Method::ListTasks => tasks::list(ctx, &params::read(params)?).await,
        Method::Discover => {
            ctx.server.ready_to_introduce().await;
            let instructions = ctx.server.instructions(ctx.caller(), ctx.profile());
            Ok(ctx.encoder.discover(instructions.as_ref()))
        }
        Method::Listen => listen::listen(ctx, params::read(params)?).await,
        // The transport handles it, before there is a context.
        Method::Initialize => Err(RpcError::method_not_found(method.as_str())),
    };
    result.map(Answer::Own)
}

async fn list(ctx: &Context, list: List, params: Option<&Params>) -> Result<Answer, RpcError> {
    let params: params::List = params::read(params)?;
    ctx.view().await.page(list, params.cursor.as_deref(), &ctx.encoder).map(Answer::Shared)
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
    ctx.view().await.resource(&params.uri)?;
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
