//! `tasks/get` and the other methods that name a task: those of 2025-11-25, and those of the extension.

use std::sync::Arc;

use serde_json::{Value, json};
use wharf_protocol::{
    RpcError,
    meta::RELATED_TASK,
    params::{self, TaskId, UpdateTask},
    revision::Era,
    task::{Detail, TaskStatus, related_task},
};

use crate::client::{context::Context, session::PERSON_TIMEOUT};
use wharf_plugins::{
    bridge,
    tasks::{Record, Running},
};

/// Returns the task as the client may see it now, if the client may know about it at all.
async fn find(ctx: &Context, id: &str) -> Result<Record, RpcError> {
    if ctx.encoder.revision.era() == Era::Modern && !ctx.capabilities.tasks {
        return Err(RpcError::missing_tasks("this request does not declare the tasks extension"));
    }
    let unknown = || RpcError::invalid_params("unknown task, or expired");
    let record = ctx.server.tasks.get(id, &ctx.owner()).await?;
    record.and_then(|record| ctx.server.entitled(ctx.caller(), ctx.profile(), record)).ok_or_else(unknown)
}

pub async fn get(ctx: &Context, params: &TaskId) -> Result<String, RpcError> {
    find(ctx, &params.task_id).await.map(|record| ctx.encoder.task(&record.task, record.detail()))
}

/// Takes answers to the task's questions. Only the extension has this method.
pub async fn update(ctx: &Context, params: UpdateTask) -> Result<String, RpcError> {
    let record = find(ctx, &params.task_id).await?;
    let Some(running) = ctx.server.tasks.under_way(&record.task.id) else { return Ok(ctx.encoder.empty()) };
    let mut replies = Vec::new();
    for (key, reply) in params.input_responses {
        // Answers to anything but an open question are ignored. A question with a wrong answer stays open.
        let Some(question) = running.question(&key) else { continue };
        bridge::read_answer(&question, &reply)
            .map_err(|problem| RpcError::invalid_params(format!("`inputResponses.{key}`: {problem}")))?;
        replies.push((key, Ok(reply)));
    }
    running.reply(replies).await;
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
    let running = tasks.under_way(&record.task.id);
    tasks.end(&record.task.id, TaskStatus::Cancelled, Some("cancelled by the client"), None, None).await;
    if let Some(running) = running {
        running.cancelled.cancel();
    }
    if !legacy {
        return Ok(ctx.encoder.empty());
    }
    find(ctx, &params.task_id).await.map(|record| ctx.encoder.task(&record.task, Detail::None))
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
            return Err(RpcError::internal("the task is not under way any more"));
        };
        // The task holds its own place, so this request gives its place back while it waits, for as long as the task lives.
        let waited = async { put_question(ctx, &running).await || changes.changed().await.is_ok() };
        if !ctx.away(waited).await? {
            return Err(RpcError::internal("the task is gone"));
        }
    }
}

/// Asks the client one open question. Returns false if there is no open question.
async fn put_question(ctx: &Context, running: &Arc<Running>) -> bool {
    let (Some(session), Some(claim)) = (&ctx.session, running.claim()) else { return false };
    let (method, params) = ctx.encoder.question(&claim.question);
    let mut params = params.unwrap_or_else(|| json!({}));
    if let Some(params) = params.as_object_mut() {
        let meta = params.entry("_meta").or_insert_with(|| Value::Object(wharf_protocol::Object::new()));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(RELATED_TASK.into(), related_task(&running.id));
        }
    }
    let asked = session.ask(&ctx.outbox, method, Some(params), PERSON_TIMEOUT);
    let reply = tokio::select! {
        reply = asked => reply,
        // The task was cancelled, so the answer is not needed any more.
        () = running.cancelled.cancelled() => return true,
    };
    running.reply(vec![(claim.key.clone(), reply)]).await;
    true
}
