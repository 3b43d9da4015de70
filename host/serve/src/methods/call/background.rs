//! Runs a call as a task, which does the same work as any other call, but in the background. It asks its questions through the task, and
//! its result is stored there. It is cancelled when its time to live is over.

use std::{
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_util::FutureExt;
use wharf_protocol::{
    RpcError,
    revision::Era,
    task::{Task, TaskStatus},
};

use super::result::CallResult;
use crate::client::{context::Context, session::Session};
use wharf_base::{
    ledger::{Account, no_room},
    random_id,
};
use wharf_plugins::{
    plugins::served::Served,
    tasks::{Purpose, Record},
};

/// How often clients are told to poll a task.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long a tool that asks before its task begins may take to ask. After that, the task begins anyway.
const ASK_FIRST_TIMEOUT: Duration = Duration::from_secs(1);

/// The memory that a task takes besides its result.
const TASK_BYTES: usize = 4 * 1024;

/// How a call becomes a task.
pub struct Terms {
    /// The time to live that the client wants.
    pub ttl_ms: Option<u64>,
    /// Whether the tool asks its questions before the task begins.
    pub ask_first: bool,
    pub purpose: Purpose,
}

type Work = Pin<Box<dyn Future<Output = Result<CallResult, RpcError>> + Send>>;

/// Begins a call as a task and answers with the task, or with questions that the client has to answer first.
pub async fn begin(
    ctx: &Context,
    served: &Served,
    terms: Terms,
    work: impl FnOnce(Context) -> Work,
) -> Result<CallResult, RpcError> {
    let limits = served.config.tasks;
    let tasks = &ctx.server.tasks;
    let running = tasks.start(random_id::id()?);
    let mut work = work(ctx.for_task(&running));
    let mut done = None;
    if terms.ask_first {
        // As long as the client does not know of a task, the tool can ask as in an ordinary call.
        match tokio::time::timeout(ASK_FIRST_TIMEOUT, &mut work).await {
            Ok(Ok(questions @ CallResult::InputRequired(_))) => return Ok(questions),
            Ok(Err(error)) => return Err(error),
            Ok(answered) => done = Some(answered),
            Err(_) => {}
        }
    }
    running.detach();
    let most = u64::try_from(limits.ttl.as_millis()).unwrap_or(u64::MAX);
    let now = SystemTime::now();
    let task = Task {
        id: running.id.clone(),
        status: TaskStatus::Working,
        message: None,
        created: now,
        updated: now,
        ttl_ms: terms.ttl_ms.map_or(most, |wanted| wanted.clamp(1, most)),
        poll_ms: u64::try_from(POLL_INTERVAL.as_millis()).unwrap_or(u64::MAX),
    };
    let created = ctx.encoder.task_created(&task);
    let ttl = Duration::from_millis(task.ttl_ms);
    let status = if running.is_asking() { TaskStatus::InputRequired } else { TaskStatus::Working };
    let task = Task { status, ..task };
    // Held until the charge is made, because an account without a holder and without a charge is dropped.
    let holder;
    let account = match &ctx.session {
        Some(session) => session.account.clone(),
        None => {
            holder = ctx.server.ledger.client(ctx.party());
            Account::clone(&holder)
        }
    };
    // Charges for the task's record. What the call itself takes is covered by the charge of its request while it runs.
    let paid = account.charge(TASK_BYTES).map_err(|full| no_room(&full))?;
    let purpose = terms.purpose;
    let replica = ctx.server.cluster.as_ref().map(|cluster| cluster.address().into());
    let (owner, party) = (ctx.owner().key(), ctx.party());
    let record = |number| Record { number, task, owner, party, replica, purpose, questions: Vec::new(), outcome: None };
    let session = ctx.session.as_ref().map(|session| session.ended.clone());
    tasks.insert(&running, session.clone(), record, paid).await?;
    let work = match done {
        Some(answered) => Box::pin(std::future::ready(answered)),
        None => work,
    };
    let ctx = ctx.clone();
    let used = ctx.session.as_ref().map(Session::used);
    ctx.server.tracker.clone().spawn(async move {
        let tasks = Arc::clone(&ctx.server.tasks);
        let ended = session.unwrap_or_default();
        let finished = tokio::select! {
            finished = AssertUnwindSafe(work).catch_unwind() => Some(finished),
            () = running.cancelled.cancelled() => None,
            () = ended.cancelled() => None,
            () = ctx.server.stop.cancelled() => None,
            () = tokio::time::sleep(ttl) => None,
        };
        match finished {
            Some(Ok(answered)) => finish(&ctx, &running.id, answered, &account).await,
            Some(Err(_)) => finish(&ctx, &running.id, Err(ctx.server.incident("a task panicked")), &account).await,
            None => tasks.end(&running.id, TaskStatus::Cancelled, Some("cancelled"), None, None).await,
        }
        tasks.forget(&running);
        drop(used);
    });
    Ok(CallResult::Task(created))
}

/// Stores the result. A tool's failure makes a failed task in 2025-11-25, but a completed one in the extension.
async fn finish(ctx: &Context, id: &str, answered: Result<CallResult, RpcError>, account: &Account) {
    let tasks = &ctx.server.tasks;
    let answered = match answered {
        Ok(CallResult::InputRequired(_) | CallResult::Task(_)) => {
            Err(ctx.server.incident("a task returned questions in place of a result"))
        }
        Ok(answered) => {
            let is_error = answered.is_error();
            let json = answered.into_json(ctx);
            // The result is stored for as long as the task, so it is charged for.
            account.charge(json.len()).map(|charge| (json, is_error, charge)).map_err(|full| no_room(&full))
        }
        Err(error) => Err(error),
    };
    match answered {
        Ok((json, is_error, charge)) => {
            let failed = is_error && ctx.encoder.revision.era() == Era::Legacy;
            let status = if failed { TaskStatus::Failed } else { TaskStatus::Completed };
            let message = is_error.then_some("the tool reports a failure");
            tasks.end(id, status, message, Some(Ok(json.into())), Some(charge)).await;
        }
        Err(error) => {
            let message = error.message.clone();
            tasks.end(id, TaskStatus::Failed, Some(&message), Some(Err(error)), None).await;
        }
    }
}
