//! The steps between a correct request and the run of its plugin: it is counted towards its caller's limits, the embedding program
//! approves, the client's roots are found, and a person approves, who is shown them. Each step may end the request, and the last two
//! may ask the client.

use wharf_protocol::{Object, RpcError, model as mcp};

use super::{
    confirm,
    failed::{Failed, ROOTS_KEY},
    request::Request,
};
use crate::{
    access::{
        approval::Ask,
        scope::{CallRoots, Nothing},
    },
    base::{
        refusals::{Reason, What},
        request_state::Carried,
    },
    bridge,
    client::{context::Context, session::PERSON},
    observe::record::Approval,
    roles::allowance::Turn,
};

/// What the operator is told, now and then.
const TOO_OFTEN: What = What::new("calls beyond what `limits` of their caller's roles allow", Reason::Other("rate"));

/// What the gates found out for a request.
#[derive(Default)]
pub struct Passed {
    pub roots: CallRoots,
    /// Who approved, if anybody had to.
    pub approval: Option<Approval>,
    /// One of the calls that the caller may have under way at once, for as long as this is held.
    pub _turn: Option<Turn>,
}

/// Takes a request through all gates. `offered`: the client's answers, by key.
pub async fn pass(
    ctx: &Context,
    request: &Request<'_>,
    offered: &Object,
    carried: &mut Carried,
) -> Result<Passed, Failed> {
    let turn = begin(ctx, request)?;
    let by_program = program(ctx, request, carried).await?;
    let mut roots = roots(ctx, request, offered, carried).await?;
    roots.within = ctx.server.rights(&ctx.caller).and_then(|rights| rights.ceilings(&request.entry)).map(Into::into);
    let by_person = match &request.served.config.confirm {
        // In a box, so that calls that nobody has to approve are not larger for it.
        Some(confirm) => Box::pin(confirm::pass(ctx, request, confirm, &roots, offered, carried)).await?,
        None => None,
    };
    Ok(Passed { roots, approval: by_person.or(by_program), _turn: turn })
}

/// Counts the call towards what the caller's roles allow.
pub fn begin(ctx: &Context, request: &Request<'_>) -> Result<Option<Turn>, Failed> {
    let Some(rights) = ctx.server.rights(&ctx.caller) else { return Ok(None) };
    rights.begin(&request.entry).map_err(|after| {
        ctx.server.refusals.say_of(TOO_OFTEN, || ctx.principal().short());
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        let message = format!("your role allows no more calls of this kind for now; try again in {seconds} s");
        Failed::Rpc(RpcError::too_many_requests(message, seconds))
    })
}

/// Asks the embedding program, once for each request, even if it takes several rounds. None: it wants not to be asked.
async fn program(ctx: &Context, request: &Request<'_>, carried: &mut Carried) -> Result<Option<Approval>, Failed> {
    let Some(approver) = &ctx.server.approver else { return Ok(None) };
    if carried.approval.by_program {
        return Ok(Some(Approval::Program));
    }
    let ask = Ask {
        principal: ctx.principal().clone(),
        plugin: request.served.config.id.clone(),
        method: request.method.as_str(),
        name: request.name.to_owned(),
        arguments: request.arguments.clone(),
    };
    // No answer in time counts as no.
    if tokio::time::timeout(PERSON, approver.approve(ask)).await.unwrap_or(false) {
        carried.approval.by_program = true;
        return Ok(Some(Approval::Program));
    }
    request.record(ctx, None, Some(Approval::Refused)).refuse("approval".to_owned()).await;
    Err(Failed::Explained(format!("The call was not approved: `{}` was not run.", request.name)))
}

/// The roots of this call. A client whose roots are not known is asked for them.
async fn roots(
    ctx: &Context,
    request: &Request<'_>,
    offered: &Object,
    carried: &mut Carried,
) -> Result<CallRoots, Failed> {
    let scopes = &ctx.server.scopes;
    if !request.served.config.grants.roots.is_given() {
        return Ok(CallRoots::default());
    }
    if let Some(given) = &ctx.roots {
        return Ok(given.clone());
    }
    if !ctx.capabilities.roots {
        return Ok(scopes.in_place_of(Nothing::NotDeclared));
    }
    if let Err(why) = scopes.accepts_roots() {
        return Ok(scopes.in_place_of(why));
    }
    if let Some(session) = &ctx.session {
        return Ok(session.roots(&ctx.server, &ctx.outbox).await);
    }
    let known = match (&carried.roots, offered.get(ROOTS_KEY)) {
        (Some(uris), _) => uris.clone(),
        (None, Some(reply)) => {
            let roots = bridge::roots(reply)
                .map_err(|problem| RpcError::invalid_params(format!("`inputResponses.{ROOTS_KEY}`: {problem}")))?;
            roots.roots.into_iter().map(|root| root.uri).collect()
        }
        (None, None) => {
            let question = [(ROOTS_KEY.to_owned(), mcp::Question::Roots)];
            return Err(request.input_required(ctx, &question, std::mem::take(carried)));
        }
    };
    let roots: Vec<_> = known.iter().map(|uri| wharf_protocol::params::Root { uri: uri.clone(), name: None }).collect();
    carried.roots = Some(known);
    Ok(scopes.of_client(&roots, &CallRoots::default()))
}
