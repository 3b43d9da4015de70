//! `tasks/get` and the other methods that name a task: those of 2025-11-25, and those of the extension.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use wharf_protocol::{
    RpcError,
    meta::RELATED_TASK,
    model::Question,
    params::{self, TaskId, UpdateTask},
    revision::Era,
    task::{Detail, TaskStatus, related_task},
};

use crate::client::{context::Context, news::Question as AskReplica, server::Server, session::PERSON_TIMEOUT};
use wharf_base::ledger::Charged;
use wharf_cluster::Unanswered;
use wharf_plugins::{
    bridge,
    tasks::{Record, Running},
};

/// How long a change of a task of another replica is waited for before its record is read again.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);

/// Why a task has no result that ended while Redis did not answer.
const LOST: &str = "the result of this task could not be stored; what it does is done; call again if that is safe";

/// Returns the task as the client may see it now, if the client may know about it at all.
async fn find(ctx: &Context, id: &str) -> Result<Record, RpcError> {
    if ctx.encoder.revision.era() == Era::Modern && !ctx.capabilities.tasks {
        return Err(RpcError::missing_tasks("this request does not declare the tasks extension"));
    }
    let unknown = || RpcError::invalid_params("unknown task, or expired");
    let tasks = &ctx.server.tasks;
    let mut record = tasks.get(id, &ctx.owner()).await?;
    if let (Some(cluster), Some(found)) = (&ctx.server.cluster, &record)
        && found.replica.as_deref() == Some(cluster.address())
        && !found.task.status.is_terminal()
        && tasks.under_way(id).is_none()
    {
        // It ended here while Redis did not answer, so its result is lost. If it ended just now, nothing is changed.
        let lost = RpcError::internal(LOST);
        tasks.end(id, TaskStatus::Failed, Some(LOST), Some(Err(lost)), None).await;
        record = tasks.get(id, &ctx.owner()).await?;
    }
    record.and_then(|record| ctx.server.entitled(ctx.caller(), ctx.profile(), record)).ok_or_else(unknown)
}

pub async fn get(ctx: &Context, params: &TaskId) -> Result<String, RpcError> {
    find(ctx, &params.task_id).await.map(|record| ctx.encoder.task(&record.task, record.detail()))
}

/// Takes answers to the task's questions. Only the extension has this method.
pub async fn update(ctx: &Context, params: UpdateTask) -> Result<String, RpcError> {
    let record = find(ctx, &params.task_id).await?;
    let running = ctx.server.tasks.under_way(&record.task.id);
    let mut replies = Vec::new();
    for (key, reply) in params.input_responses {
        // Answers to anything but an open question are ignored. A question with a wrong answer stays open.
        let question = match &running {
            Some(running) => running.question(&key),
            None => record.questions.iter().find(|(open, _)| *open == key).map(|(_, question)| question.clone()),
        };
        let Some(question) = question else { continue };
        bridge::read_answer(&question, &reply)
            .map_err(|problem| RpcError::invalid_params(format!("`inputResponses.{key}`: {problem}")))?;
        replies.push((key, Ok(reply)));
    }
    match running {
        Some(running) => {
            let charge = &ctx.arrival.charge;
            let charged = |reply: Result<Value, String>| reply.map(|reply| Charged::new(reply, Arc::clone(charge)));
            running.reply(replies.into_iter().map(|(key, reply)| (key, charged(reply)))).await;
        }
        None => ask_runner(ctx, &record, AskReplica::AnswerTask { id: record.task.id.clone(), replies }).await?,
    }
    Ok(ctx.encoder.empty())
}

pub async fn cancel(ctx: &Context, params: &TaskId) -> Result<String, RpcError> {
    let record = find(ctx, &params.task_id).await?;
    let legacy = ctx.encoder.revision.era() == Era::Legacy;
    if record.task.status.is_terminal() {
        let message = format!("the task has ended already: {}", record.task.status.as_str());
        return if legacy { Err(RpcError::invalid_params(message)) } else { Ok(ctx.encoder.empty()) };
    }
    let tasks = &ctx.server.tasks;
    if tasks.under_way(&record.task.id).is_none() {
        ask_runner(ctx, &record, AskReplica::CancelTask { id: record.task.id.clone() }).await?;
    }
    tasks.cancel(&record.task.id).await;
    if !legacy {
        return Ok(ctx.encoder.empty());
    }
    find(ctx, &params.task_id).await.map(|record| ctx.encoder.task(&record.task, Detail::None))
}

/// Asks the replica that runs a task, if another one does.
async fn ask_runner(ctx: &Context, record: &Record, question: AskReplica) -> Result<(), RpcError> {
    let (Some(cluster), Some(replica)) = (&ctx.server.cluster, &record.replica) else { return Ok(()) };
    match Box::pin(cluster.ask::<_, Value>(replica, &question, ctx.party())).await {
        // A task of a replica that has stopped has failed, as the next request for it learns.
        Ok(_) | Err(Unanswered::Gone) => Ok(()),
        Err(Unanswered::Silent(silent)) => Err(RpcError::unavailable(format!("{silent}; try again"))),
        Err(Unanswered::NoRoom(no_room)) => Err(RpcError::unavailable(format!(
            "another replica of this server runs the task, and this does not fit there: {no_room}; send less"
        ))),
    }
}

/// Only 2025-11-25 has this method.
pub async fn list(ctx: &Context, params: &params::List) -> Result<String, RpcError> {
    let after = match &params.cursor {
        None => 0,
        Some(cursor) => cursor.parse().map_err(|_| RpcError::invalid_params("unknown cursor"))?,
    };
    let page = ctx.server.published.catalog.borrow().lists.page_items.max(1);
    // One more than a page has, to know whether there is another page.
    let mut records = ctx.server.tasks.list(&ctx.owner(), after, page + 1).await?;
    let more = records.len() > page;
    records.truncate(page);
    let next = records.last().filter(|_| more).map(|record| record.number.to_string());
    let entitled = |record| ctx.server.entitled(ctx.caller(), ctx.profile(), record);
    let tasks: Vec<_> = records.into_iter().filter_map(entitled).map(|record| record.task).collect();
    Ok(ctx.encoder.tasks(&tasks, next.as_deref()))
}

/// Waits for the end of a task and answers as the call would have. Questions of the task go to the client on the stream of this
/// request. Only 2025-11-25 has this method.
pub async fn result(ctx: &Context, params: &TaskId) -> Result<String, RpcError> {
    let id = &params.task_id;
    loop {
        // Changes are watched before the record is read, so that no change is missed. The record is read after the look-up of the running
        // task, because a task that ends in between has its outcome only in its record.
        let running = ctx.server.tasks.under_way(id);
        let changes = running.as_ref().map(|running| running.watch());
        let record = find(ctx, id).await?;
        if record.task.status.is_terminal() {
            return match record.outcome {
                Some(Ok(result)) => Ok(ctx.encoder.task_result(&result, id)),
                Some(Err(error)) => Err(error),
                None => Err(RpcError::invalid_params("the task was cancelled")),
            };
        }
        let (Some(running), Some(mut changes)) = (running, changes) else {
            if record.replica.is_none() {
                return Err(RpcError::internal("the task is not under way any more"));
            }
            Box::pin(follow_elsewhere(ctx, &record)).await?;
            continue;
        };
        // The task holds its own place, so this request gives its place back while it waits, for as long as the task lives.
        let waited = async { put_question(ctx, &running).await || changes.changed().await.is_ok() };
        if !ctx.away(waited).await? {
            return Err(RpcError::internal("the task is gone"));
        }
    }
}

/// Waits for a change of a task that another replica runs, or asks the client one of its questions.
async fn follow_elsewhere(ctx: &Context, record: &Record) -> Result<(), RpcError> {
    let id = &record.task.id;
    let (Some(session), Some((key, question))) = (&ctx.session, record.questions.first()) else {
        return ctx.away(changed(ctx, id)).await;
    };
    let Some(_claim) = Claimed::take(ctx, format!("asks:{id}:{key}")).await? else {
        return ctx.away(changed(ctx, id)).await;
    };
    let (method, params) = task_question(ctx, id, question);
    let asked = session.ask(&ctx.outbox, method, Some(params), PERSON_TIMEOUT);
    let closed = async {
        while find(ctx, id).await.is_ok_and(|now| now.questions.iter().any(|(open, _)| open == key)) {
            changed(ctx, id).await;
        }
    };
    let asked = async {
        tokio::select! {
            reply = asked => Some(reply),
            () = closed => None,
        }
    };
    match Box::pin(ctx.away(asked)).await? {
        Some(reply) => {
            let (reply, _charge) = match reply.map(Charged::into_parts) {
                Ok((reply, charge)) => (Ok(reply), Some(charge)),
                Err(problem) => (Err(problem), None),
            };
            let replies = vec![(key.clone(), reply)];
            ask_runner(ctx, record, AskReplica::AnswerTask { id: id.clone(), replies }).await
        }
        None => Ok(()),
    }
}

/// Waits for a change of a task, or a moment: its replica may have stopped, and then it tells nothing.
async fn changed(ctx: &Context, id: &str) {
    let mut changes = ctx.server.tasks.changes();
    let this = async {
        while let Ok(changed) = changes.recv().await {
            if changed.task.id == id {
                return;
            }
        }
    };
    tokio::time::timeout(FOLLOW_INTERVAL, this).await.ok();
}

/// RAII guard: this request asks the client a question of a task, and no other one does, at whichever replica.
struct Claimed {
    server: Arc<Server>,
    name: String,
}

impl Claimed {
    /// None: another request asks it.
    async fn take(ctx: &Context, name: String) -> Result<Option<Self>, RpcError> {
        let Some(cluster) = &ctx.server.cluster else { return Ok(None) };
        let taken = cluster.claim(&name, PERSON_TIMEOUT, ctx.party()).await;
        let taken = taken.map_err(|not| RpcError::unavailable(format!("{not}; try again")))?;
        Ok(taken.then(|| Self { server: Arc::clone(&ctx.server), name }))
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if let Some(cluster) = self.server.cluster.clone() {
            let name = std::mem::take(&mut self.name);
            // If it cannot be given up now, it is over with the time that a person has.
            self.server.tracker.spawn(async move { cluster.delete(&name).await });
        }
    }
}

/// Returns the request that asks the client a question of a task.
fn task_question(ctx: &Context, id: &str, question: &Question) -> (&'static str, Value) {
    let (method, params) = ctx.encoder.question(question);
    let mut params = params.unwrap_or_else(|| json!({}));
    if let Some(params) = params.as_object_mut() {
        let meta = params.entry("_meta").or_insert_with(|| Value::Object(wharf_protocol::Object::new()));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(RELATED_TASK.into(), related_task(id));
        }
    }
    (method, params)
}

/// Asks the client one open question. Returns false if there is no open question.
async fn put_question(ctx: &Context, running: &Arc<Running>) -> bool {
    let (Some(session), Some(claim)) = (&ctx.session, running.claim()) else { return false };
    let (method, params) = task_question(ctx, &running.id, &claim.question);
    let asked = session.ask(&ctx.outbox, method, Some(params), PERSON_TIMEOUT);
    let reply = tokio::select! {
        reply = asked => reply,
        // The task was cancelled, so the answer is not needed any more.
        () = running.cancelled.cancelled() => return true,
    };
    running.reply([(claim.key.clone(), reply)]).await;
    true
}
