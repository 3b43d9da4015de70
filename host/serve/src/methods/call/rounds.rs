//! The rounds of one request to a plugin that may ask questions: pass the gates, run, ask, and run again with the answers.

use std::sync::Arc;

use wharf_protocol::{Object, RpcError, model as mcp, params::Retry, revision::Era};
use wharf_sandbox::{
    MAX_QUESTIONS, Operation, Outcome,
    model::{self as wit, Question, Round},
};

use super::{
    failed::{Failed, Why, defect},
    gates::{self, Prepared},
    parsed::pay,
    request::Request,
    run::{Hints, run_once},
};
use crate::client::{context::Context, session::PERSON_TIMEOUT};
use wharf_base::{heavy::heavy, ledger::Charge, request_state::Carried};
use wharf_plugins::bridge::{self, Paid};
use wharf_policy::access::grants::{
    ask::{self, Ability},
    hint::{Allowed, Hint, Table},
};

/// How often a plugin may ask in one request.
const MAX_ROUNDS: u32 = 8;
const MAX_STATE_BYTES: usize = 64 * 1024;

/// Passes the gates and runs at once, for requests that never become tasks.
pub async fn pass_and_run<O: Operation<Outcome = Outcome<T>>, T>(
    ctx: &Context,
    request: &Request<'_>,
    retry: Retry,
    operation: impl Fn(wit::Context) -> O,
) -> Result<T, Failed> {
    let Retry { input_responses: answers, request_state } = retry;
    let carried = match &request_state {
        Some(state) => request.open(ctx, state, answers.as_ref()).await?,
        None => Carried::default(),
    };
    let mut prepared = gates::pass(ctx, request, answers, carried).await?;
    run(ctx, request, &mut prepared, operation).await.map(|(outcome, _)| outcome)
}

/// Runs the operation until it is done or the client must answer. Returns the outcome, and what the client may know about refused
/// permissions.
pub async fn run<O: Operation<Outcome = Outcome<T>>, T>(
    ctx: &Context,
    request: &Request<'_>,
    Prepared { offered, carried, passed }: &mut Prepared,
    operation: impl Fn(wit::Context) -> O,
) -> Result<(T, Hints), Failed> {
    // What is charged for the client's answers, of which the plugin gets copies in each round.
    let mut answered = Vec::new();
    loop {
        let mut context = ctx.for_plugin(&request.served.config.id);
        context.answers = carried.answers.iter().filter_map(bridge::carried_answer).collect();
        context.state.clone_from(&carried.state);
        let round = match run_once(ctx, request, operation(context), passed).await? {
            (Outcome::Ask(round), _) => round,
            (Outcome::Done(outcome), hints) => return Ok((outcome, hints)),
        };
        // Boxed, so that the futures of calls that ask nothing stay small.
        let (questions, _paid) = Box::pin(checked(ctx, request, &round)).await?;
        // If the client has answered all these questions already, the plugin only repeated those of the round before, which
        // shows what the answers belong to. That is not another round.
        let again = !carried.replayed && questions.iter().all(|(key, _)| offered.contains_key(key));
        carried.replayed = true;
        if !again {
            carried.rounds += 1;
            carried.state = round.state;
        }
        if carried.rounds > MAX_ROUNDS {
            return Err(defect(request.served, &format!("it asked more than {MAX_ROUNDS} times")));
        }
        answered.extend(Box::pin(answer(ctx, request, &questions, offered, carried)).await?);
    }
}

/// Returns the plugin's questions, checked: the operator must have granted them, they must be within limits, and the client must be
/// able to answer them. What their trees take is held for as long as they are.
async fn checked(
    ctx: &Context,
    request: &Request<'_>,
    round: &Round,
) -> Result<(Vec<(String, mcp::Question)>, Paid), Failed> {
    if round.questions.is_empty() || round.questions.len() > MAX_QUESTIONS {
        return Err(defect(request.served, &format!("a round has 1 to {MAX_QUESTIONS} questions")));
    }
    if round.state.as_ref().is_some_and(|state| state.len() > MAX_STATE_BYTES) {
        return Err(defect(request.served, &format!("its state is larger than {MAX_STATE_BYTES} bytes")));
    }
    let id = &request.served.config.id;
    let granted = request.served.config.grants.ask;
    let paid = pay(ctx, request.served, round).await?;
    let mut questions = Vec::with_capacity(round.questions.len());
    let mut needs = wit::ClientCapabilities::empty();
    for (key, question) in &round.questions {
        let ability = match question {
            Question::Form(_) | Question::Url(_) => Ability::Elicitation,
            Question::Sampling(_) => Ability::Sampling,
            Question::Roots => Ability::Roots,
        };
        if !granted.allows(ability) {
            ctx.server.hint(id, Hint { text: ask::Grant::hint(ability), allowed: Allowed::In(Table::Grants) });
            let text = format!(
                "The plugin `{id}` wants to ask you something ({}), which the operator of this server has not \
                 allowed.",
                ability.name()
            );
            return Err(Failed::new(Why::Failed, text));
        }
        if key.is_empty() || key.len() > 128 || key.starts_with("wharf.") {
            return Err(defect(
                request.served,
                "the key of a question has 1 to 128 characters and does not begin with `wharf.`",
            ));
        }
        let question = heavy(paid.bytes(), || bridge::question(id, question, &paid))
            .map_err(|problem| defect(request.served, &problem))?;
        needs |= bridge::capability_for(&question);
        if let Some(what) = ctx.encoder.cannot_ask(&question) {
            let text = format!(
                "The plugin `{id}` wants to ask you for {what}, which this revision of the protocol cannot carry."
            );
            return Err(Failed::new(Why::Failed, text));
        }
        questions.push((key.clone(), question));
    }
    if let Some(missing) = bridge::missing_capabilities(needs, &ctx.capabilities) {
        let error = ctx.lacks(&format!("the plugin `{id}`"), missing.clone());
        return Err(match ctx.encoder.revision.era() {
            Era::Modern => error.into(),
            Era::Legacy => Failed::new(Why::NeedsClient, format!("{}: {missing}", error.message)),
        });
    }
    Ok((questions, paid.without_place()))
}

/// Takes the answers that are there and gets the others: through the task, from the session's client, or by asking a modern
/// client to call again. Returns what is charged for those that it got.
async fn answer(
    ctx: &Context,
    request: &Request<'_>,
    questions: &[(String, mcp::Question)],
    offered: &Object,
    carried: &mut Carried,
) -> Result<Vec<Arc<Charge>>, Failed> {
    let task = ctx.task.as_ref().filter(|task| task.is_detached());
    let mut open = Vec::new();
    for (key, question) in questions {
        match offered.get(key) {
            // An answer is used once: a plugin that asks again under the same key wants a new answer.
            Some(reply) if carried.answers.iter().all(|(known, _)| known != key) => {
                let answer = bridge::read_answer(question, reply)
                    .map_err(|problem| RpcError::invalid_params(format!("`inputResponses.{key}`: {problem}")))?;
                carried.answers.push((key.clone(), bridge::carry_answer(&answer)));
            }
            _ => open.push((key.clone(), question.clone())),
        }
    }
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let replies = match (task, &ctx.session) {
        (Some(task), _) => ctx.away(task.ask(&open)).await?.map_err(|text| Failed::new(Why::Failed, text))?,
        (None, Some(session)) => {
            // The task may begin before the answer comes, so its status must show that a question is open.
            if let Some(task) = &ctx.task {
                task.set_asking(true).await;
            }
            let asked = async {
                let mut replies = Vec::with_capacity(open.len());
                for (_, question) in &open {
                    let (method, params) = ctx.encoder.question(question);
                    replies.push(session.ask(&ctx.outbox, method, params, PERSON_TIMEOUT).await?);
                }
                Ok(replies)
            };
            let asked = ctx.away(asked).await;
            if let Some(task) = &ctx.task {
                task.set_asking(false).await;
            }
            asked?.map_err(|text: String| Failed::new(Why::Failed, text))?
        }
        (None, None) => return Err(request.input_required(ctx, &open, std::mem::take(carried))),
    };
    for ((key, question), reply) in open.into_iter().zip(&replies) {
        let answer = bridge::read_answer(&question, reply).map_err(|problem| {
            Failed::new(Why::Failed, format!("The client's answer does not fit the question: {problem}."))
        })?;
        carried.answers.retain(|(known, _)| *known != key);
        carried.answers.push((key, bridge::carry_answer(&answer)));
    }
    Ok(replies.into_iter().map(|reply| reply.into_parts().1).collect())
}
