//! Tasks: calls that continue after they were answered. The type [`Task`] is the same for all revisions. It is written in two formats,
//! which have little in common: that of the core protocol of 2025-11-25, and that of the extension of 2026-07-28.

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::{
    encode::{Encoder, insert_some},
    error::RpcError,
    message::{Id, notification_text},
    meta::{RELATED_TASK, SUBSCRIPTION_ID},
    model::Question,
    object::Object,
};

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// The call is running.
    Working,
    /// The task waits for answers from the client.
    InputRequired,
    /// The task has a result.
    Completed,
    /// The task ended without a result or, in legacy revisions, with a result that is an error.
    Failed,
    /// The client or the server stopped it.
    Cancelled,
}

impl TaskStatus {
    /// Returns the name of the status in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the status with this name.
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Working, Self::InputRequired, Self::Completed, Self::Failed, Self::Cancelled];
        all.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether the task has ended, so that its status does not change any more.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Working | Self::InputRequired)
    }
}

/// A task at one moment, without its questions or its result.
#[derive(Debug, Clone)]
pub struct Task {
    /// The id with which the client requests the task.
    pub id: String,
    /// The status since `updated`.
    pub status: TaskStatus,
    /// A description of the status for people.
    pub message: Option<String>,
    /// When the call was made.
    pub created: SystemTime,
    /// When the status last changed.
    pub updated: SystemTime,
    /// The time to live in milliseconds, counted from `created`; after that the task can no longer be requested.
    pub ttl_ms: u64,
    /// The number of milliseconds that a client should wait between two requests for the task.
    pub poll_ms: u64,
}

/// The data that a client gets in addition to the task itself, depending on the status. Only the extension of 2026-07-28 includes it.
#[derive(Debug, Clone, Copy)]
pub enum Detail<'a> {
    /// Only the task itself.
    None,
    /// The questions that the client has to answer, with the keys for the answers.
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

    /// Returns the members of a task, including the `detail` that belongs to its status if the revision supports it.
    fn detailed(&self, task: &Task, detail: Detail) -> Object {
        let mut object = self.task_members(task);
        if self.modern() {
            match detail {
                Detail::None => {}
                Detail::Questions(questions) => {
                    object.insert("inputRequests".into(), self.input_requests(questions));
                }
                Detail::Result(result) => {
                    // The result was written by an encoder, so it is valid JSON.
                    object.insert("result".into(), serde_json::from_str(result).unwrap_or(Value::Null));
                }
                Detail::Error(error) => {
                    object.insert("error".into(), error.to_value(self.revision));
                }
            }
        }
        object
    }

    /// Writes the answer to a call that has become a task.
    pub fn task_created(&self, task: &Task) -> String {
        let members = self.task_members(task);
        if self.modern() {
            self.finish(members, "task")
        } else {
            self.complete([("task".to_owned(), Value::Object(members))].into_iter().collect())
        }
    }

    /// Writes the answer to `tasks/get`, and to `tasks/cancel` of 2025-11-25.
    pub fn task(&self, task: &Task, detail: Detail) -> String {
        self.complete(self.detailed(task, detail))
    }

    /// Writes a page of `tasks/list`, which only 2025-11-25 has.
    pub fn tasks(&self, tasks: &[Task], next_cursor: Option<&str>) -> String {
        let mut object = Object::new();
        let tasks = tasks.iter().map(|task| Value::Object(self.task_members(task)));
        object.insert("tasks".into(), tasks.collect());
        insert_some(&mut object, "nextCursor", next_cursor);
        self.complete(object)
    }

    /// Writes the answer to `tasks/result` of 2025-11-25: the result of the call, marked with its task.
    pub fn task_result(&self, result: &str, task_id: &str) -> String {
        let mut object: Object = serde_json::from_str(result).unwrap_or_default();
        let meta = object.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(RELATED_TASK.into(), related_task(task_id));
        }
        Value::Object(object).to_string()
    }

    /// Writes the notification that a task's status has changed. `tag` is the id of the subscription to which it belongs; only modern
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

/// Returns the value of [`RELATED_TASK`] in the `_meta` of messages that belong to a task.
pub fn related_task(task_id: &str) -> Value {
    json!({ "taskId": task_id })
}

fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}
