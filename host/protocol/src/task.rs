//! Tasks: calls that go on after they were answered. The type [`Task`] is the same for all revisions. It is written in two
//! ways, which share hardly more than the idea: as the core protocol of 2025-11-25 has it, and as the extension of 2026-07-28
//! does.

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::{
    Id, Object, RpcError,
    encode::{Encoder, insert_some},
    message::notification_text,
    meta::{RELATED_TASK, SUBSCRIPTION_ID},
    model::Question,
};

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// The call is under way.
    Working,
    /// It waits for answers of the client.
    InputRequired,
    /// It has a result.
    Completed,
    /// It ended without a result, or, in legacy revisions, with one that is an error.
    Failed,
    /// The client or the server stopped it.
    Cancelled,
}

impl TaskStatus {
    /// The name that messages have for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the task has ended, so that its status does not change any more.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Working | Self::InputRequired)
    }
}

/// A task at one moment, without its questions or its result.
#[derive(Debug, Clone)]
pub struct Task {
    /// The id by which the client asks for the task.
    pub id: String,
    /// The status since `updated`.
    pub status: TaskStatus,
    /// What a person may be told about the status, in words.
    pub message: Option<String>,
    /// When the call was made.
    pub created: SystemTime,
    /// When the status last changed.
    pub updated: SystemTime,
    /// Milliseconds from `created` on for which it is kept; then nobody can ask for it any more.
    pub ttl_ms: u64,
    /// Milliseconds that a client should wait between two requests for it.
    pub poll_ms: u64,
}

/// What a client is told besides the task itself; which of these it is follows from the status. Only the extension of
/// 2026-07-28 writes it.
#[derive(Debug, Clone, Copy)]
pub enum Detail<'a> {
    /// Nothing but the task itself.
    None,
    /// The questions that the client is to answer, with the keys under which it does.
    Questions(&'a [(String, Question)]),
    /// The JSON of the result of the call.
    Result(&'a str),
    /// Why there is no result.
    Error(&'a RpcError),
}

impl Encoder {
    fn task_members(&self, task: &Task) -> Object {
        let mut object = Object::new();
        object.insert("taskId".into(), task.id.clone().into());
        object.insert("status".into(), task.status.as_str().into());
        insert_some(&mut object, "statusMessage", task.message.as_deref());
        object.insert("createdAt".into(), timestamp(task.created).into());
        object.insert("lastUpdatedAt".into(), timestamp(task.updated).into());
        let (ttl, poll) = if self.modern() { ("ttlMs", "pollIntervalMs") } else { ("ttl", "pollInterval") };
        object.insert(ttl.into(), task.ttl_ms.into());
        object.insert(poll.into(), task.poll_ms.into());
        object
    }

    /// The members of a task, and the `detail` that belongs to its status if the revision has a place for it.
    fn detailed(&self, task: &Task, detail: Detail) -> Object {
        let mut object = self.task_members(task);
        if self.modern() {
            match detail {
                Detail::None => {}
                Detail::Questions(questions) => {
                    object.insert("inputRequests".into(), self.input_requests(questions));
                }
                Detail::Result(result) => {
                    // An encoder wrote it, so it is JSON.
                    object.insert("result".into(), serde_json::from_str(result).unwrap_or(Value::Null));
                }
                Detail::Error(error) => {
                    object.insert("error".into(), error.to_value(self.revision));
                }
            }
        }
        object
    }

    /// The answer to a call that has become a task.
    pub fn task_created(&self, task: &Task) -> String {
        let members = self.task_members(task);
        if self.modern() {
            self.finish(members, "task")
        } else {
            self.complete([("task".to_owned(), Value::Object(members))].into_iter().collect())
        }
    }

    /// The answer to `tasks/get`, and to `tasks/cancel` of 2025-11-25.
    pub fn task(&self, task: &Task, detail: Detail) -> String {
        self.complete(self.detailed(task, detail))
    }

    /// A page of `tasks/list`, which only 2025-11-25 has.
    pub fn tasks(&self, tasks: &[Task], next_cursor: Option<&str>) -> String {
        let mut object = Object::new();
        let tasks = tasks.iter().map(|task| Value::Object(self.task_members(task)));
        object.insert("tasks".into(), tasks.collect());
        insert_some(&mut object, "nextCursor", next_cursor);
        self.complete(object)
    }

    /// The answer to `tasks/result` of 2025-11-25: the result of the call, marked with its task.
    pub fn task_result(&self, result: &str, task_id: &str) -> String {
        let mut object: Object = serde_json::from_str(result).unwrap_or_default();
        let meta = object.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(RELATED_TASK.into(), related_task(task_id));
        }
        Value::Object(object).to_string()
    }

    /// Tells that a task has another status. `tag` is the id of the subscription that wants to hear of it; only modern
    /// revisions have one.
    pub fn task_changed(&self, task: &Task, detail: Detail, tag: Option<&Id>) -> String {
        let mut params = self.detailed(task, detail);
        if let Some(tag) = tag {
            params.insert("_meta".into(), json!({ SUBSCRIPTION_ID: tag.to_value() }));
        }
        let method = if self.modern() { "notifications/tasks" } else { "notifications/tasks/status" };
        notification_text(method, Some(&Value::Object(params)))
    }
}

/// The value that stands under [`RELATED_TASK`] in the `_meta` of what belongs to a task.
pub fn related_task(task_id: &str) -> Value {
    json!({ "taskId": task_id })
}

fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}
