//! The gates between a valid request and the run of its plugin: limits and quotas, approval by the embedding program, the client's roots,
//! and approval by a person, who is shown those roots. Each gate may end the request, and the last two may ask the client.

use wharf_protocol::{Object, RpcError, model as mcp, revision::Era};

use super::{
    confirm,
    counted::{self, NotCounted},
    failed::{Failed, ROOTS_KEY, Said, Why},
    request::Request,
};
use crate::client::{
    context::{Context, RunningCall},
    session::PERSON_TIMEOUT,
};
use wharf_base::{
    quota::{Quota, Span, Spent},
    refusals::{Reason, What},
    request_state::{Carried, Void},
    text::clean,
};
use wharf_plugins::{approvals::answer, bridge, observe::record::ApprovalOutcome, tasks::Reach};
use wharf_policy::{
    access::{
        approval::{ApprovalRequest, Decision},
        call_roots::CallRoots,
        closed::Nothing,
    },
    roles::{Entry, Rights},
};

/// The refusals that are logged, at a limited rate.
const TOO_OFTEN: What = What::new("calls beyond what `limits` of a role or a plugin allow", Reason::Other("rate"));
const USED_UP: What = What::new("calls beyond the quota of an hour or a day", Reason::Other("quota"));

/// The outcome of the gates for a request.
#[derive(Default)]
pub struct Passed {
    pub roots: CallRoots,
    /// The kind of approval that was given, if one was needed.
    pub approval: Option<ApprovalOutcome>,
    /// The caller's roles when the call was admitted, if the config has any.
    pub rights: Option<Rights>,
    /// RAII guard: the call counts as one of those that the caller may have under way at once, for as long as this is held.
    pub _turn: Option<RunningCall>,
}

/// What a request needs to run once it has passed the gates. It borrows nothing, so that a task can own it.
pub struct Prepared {
    /// The answers that came with the request, by key.
    pub offered: Object,
    /// What is carried from earlier rounds.
    pub carried: Carried,
    pub passed: Passed,
}

impl Prepared {
    /// Returns the folders that the roots of the call are limited to.
    pub fn reach(&self, entry: &Entry<'_>) -> Reach {
        if self.passed.roots.all.is_empty() {
            return Reach::NoRoots;
        }
        let within = self.passed.rights.as_ref().and_then(|rights| rights.ceilings(entry));
        within.map_or(Reach::Everywhere, |within| Reach::Within(within.iter().map(ToString::to_string).collect()))
    }
}

/// Takes a request through all gates. `answers`: the client's answers to questions, by key; only modern clients send any with a request.
/// `carried`: what the request carries from earlier rounds.
pub async fn pass(
    ctx: &Context,
    request: &Request<'_>,
    answers: Option<Object>,
    mut carried: Carried,
) -> Result<Prepared, Failed> {
    let mut offered = answers.filter(|_| ctx.encoder.revision.era() == Era::Modern).unwrap_or_default();
    match carried.void {
        Void::Nothing => {}
        Void::Approval => drop(offered.remove(answer::KEY)),
        Void::Answers => offered.clear(),
    }
    let begun = begin(ctx, request).await?;
    let by_program = program(ctx, request, &mut carried).await?;
    let mut roots = roots(ctx, request, &offered, &mut carried).await?;
    roots.within = begun.rights.as_ref().and_then(|rights| rights.ceilings(&request.entry)).map(Into::into);
    let by_person = match &request.served.config.confirm {
        // Boxed, so that the futures of calls that need no approval stay small.
        Some(confirm) => Box::pin(confirm::pass(ctx, request, confirm, &roots, &offered, &mut carried)).await?,
        None => None,
    };
    Ok(Prepared { offered, carried, passed: Passed { roots, approval: by_person.or(by_program), ..begun } })
}

/// Counts the call towards the limits of the caller's roles and of the plugin. The call stays counted, whatever its outcome.
pub async fn begin(ctx: &Context, request: &Request<'_>) -> Result<Passed, Failed> {
    let of_plugin = request.served.config.calls.as_ref().map(|quota| (quota, None));
    let Some(rights) = ctx.server.rights(ctx.caller()) else {
        let turn = counted::count(ctx, of_plugin)
            .await
            .map_err(|refused| refused.or(|quota, spent| too_many(ctx, request, quota, "", spent)))?;
        return Ok(Passed { _turn: turn.map(|turn| ctx.run(turn)), ..Passed::default() });
    };
    let mut begun = None;
    let mut soonest: Option<(&Quota, &str, Spent)> = None;
    for limits in rights.rate_limits(&request.entry) {
        let own = limits.quotas(&request.entry).map(|quota| (quota, Some(rights.principal())));
        match counted::count(ctx, own.chain(of_plugin)).await {
            Ok(turn) => {
                begun = Some(turn);
                break;
            }
            Err(NotCounted::Silent) => return Err(counted::refused()),
            Err(NotCounted::Spent(_, spent)) if soonest.is_some_and(|(.., soonest)| soonest.after <= spent.after) => {}
            Err(NotCounted::Spent(quota, spent)) => {
                let kind = if limits.is_of(quota) { " of this kind" } else { "" };
                soonest = Some((quota, kind, spent));
            }
        }
    }
    match (begun, soonest) {
        (Some(turn), _) => {
            Ok(Passed { _turn: turn.map(|turn| ctx.run(turn)), rights: Some(rights), ..Passed::default() })
        }
        (None, Some((quota, kind, spent))) => Err(too_many(ctx, request, quota, kind, spent)),
        // The roles allowed this request when it was checked, and have changed since.
        (None, None) => {
            let error = RpcError::invalid_params("your roles do not allow this any more");
            Err(Failed { why: Why::Refused, said: Said::Rpc(error) })
        }
    }
}

/// Returns the refusal that names the limit, and says when calls are possible again.
fn too_many(ctx: &Context, request: &Request<'_>, quota: &Quota, kind: &str, spent: Spent) -> Failed {
    let Spent { most, span, after } = spent;
    let what = if matches!(span, Span::Hour | Span::Day) { USED_UP } else { TOO_OFTEN };
    ctx.server.refusals.say_of(what, || format!("{}: {} allows {most} {span}", ctx.principal().short(), quota.name));
    let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
    let plugin = &request.served.config;
    let limit = if plugin.calls.as_ref() == Some(quota) {
        format!("the plugin `{}` takes {most} calls {span} of all callers together", plugin.id)
    } else {
        format!("your role allows {most} calls{kind} {span}")
    };
    let clock = if span == Span::Day { ", at 00:00 UTC" } else { "" };
    let message = format!("{limit}, and all of them are used up; try again in {seconds} s{clock}");
    RpcError::too_many_requests(message, seconds).into()
}

/// Asks the embedding program, once for each request, even if the request takes several rounds. None: it has no approver.
async fn program(
    ctx: &Context,
    request: &Request<'_>,
    carried: &mut Carried,
) -> Result<Option<ApprovalOutcome>, Failed> {
    let Some(approver) = &ctx.server.approver else { return Ok(None) };
    if carried.approval.by_program {
        return Ok(Some(ApprovalOutcome::Program));
    }
    let asked = ApprovalRequest::new(
        ctx.principal().clone(),
        &request.served.config.id,
        request.method.as_str(),
        request.name,
        request.arguments.value().clone(),
    );
    let reason = match Box::pin(ctx.away(tokio::time::timeout(PERSON_TIMEOUT, approver.approve(asked)))).await? {
        Ok(Decision::Allow) => {
            carried.approval.by_program = true;
            return Ok(Some(ApprovalOutcome::Program));
        }
        Ok(Decision::Deny(reason)) => reason,
        // A decision of an unknown kind counts as no, and so does no answer in time.
        Ok(_) => String::new(),
        Err(_) => "Nobody answered in time.".to_owned(),
    };
    request.record(ctx, None, Some(ApprovalOutcome::Refused)).refuse("approval".to_owned()).await;
    let mut text = format!("The call was not approved: `{}` was not run.", request.name);
    if !reason.is_empty() {
        text += &format!(" {}", clean(&reason));
    }
    Err(Failed::new(Why::Refused, text))
}

/// Returns the roots of this call. A client whose roots are unknown is asked for them.
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
    if let Some(given) = &ctx.arrival.roots {
        return Ok(given.clone());
    }
    if !ctx.capabilities.roots {
        return Ok(scopes.in_place_of(Nothing::NotDeclared));
    }
    if let Err(why) = scopes.accepts_roots() {
        return Ok(scopes.in_place_of(why));
    }
    if let Some(session) = &ctx.session {
        // Boxed, so that the futures of calls that need no roots stay small.
        return Ok(Box::pin(ctx.away(session.roots(&ctx.server, &ctx.outbox, ctx.party()))).await?);
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
    Ok(scopes.of_client(&roots, &CallRoots::default(), (&ctx.server.refusals, ctx.party())))
}
