//! Writes the notifications that a server sends, and recognises those of clients by their names.

use serde_json::{Value, json};

use crate::{
    level::Level,
    message::{Id, Notification, notification_text},
    meta::{RELATED_TASK, SUBSCRIPTION_ID},
    object::Object,
    params::ListenFilter,
    revision::{Feature, Revision},
    shown::Shown,
    task::related_task,
};

/// The notifications of clients that wharf handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownNotification {
    /// The handshake of a legacy session is over.
    Initialized,
    /// A request is cancelled, and its answer is not wanted any more.
    Cancelled,
    /// The roots of the client have changed.
    RootsChanged,
}

impl Notification {
    /// Returns the notification's kind; `None` if wharf ignores it.
    pub fn known(&self) -> Option<KnownNotification> {
        match self.method.as_str() {
            "notifications/initialized" => Some(KnownNotification::Initialized),
            "notifications/cancelled" => Some(KnownNotification::Cancelled),
            "notifications/roots/list_changed" => Some(KnownNotification::RootsChanged),
            _ => None,
        }
    }
}

/// A list that can change while a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangingList {
    /// `tools/list`.
    Tools,
    /// `resources/list` and `resources/templates/list`, which change together.
    Resources,
    /// `prompts/list`.
    Prompts,
}

/// Writes the notification that a list has changed. `tag` is the id of the subscription to which it belongs; only modern revisions have
/// one.
pub fn list_changed(list: ChangingList, tag: Option<&Id>) -> String {
    let method = match list {
        ChangingList::Tools => "notifications/tools/list_changed",
        ChangingList::Resources => "notifications/resources/list_changed",
        ChangingList::Prompts => "notifications/prompts/list_changed",
    };
    tagged(method, Object::new(), tag)
}

/// Writes the notification that a resource has new contents. `tag` is the id of the subscription to which it belongs; only modern revisions
/// have one.
pub fn resource_updated(uri: &str, tag: Option<&Id>) -> String {
    let mut params = Object::new();
    params.insert("uri".into(), uri.into());
    tagged("notifications/resources/updated", params, tag)
}

/// Writes a log message. `logger` names its source, and `task` is the id of the task to which it belongs.
pub fn message(level: Level, logger: &str, data: Shown<Value>, task: Option<&str>) -> String {
    let mut params = json!({ "level": level.as_str(), "logger": logger, "data": data.into_inner() });
    mark(&mut params, task);
    notification_text("notifications/message", Some(&params))
}

/// The progress of a request.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// A number that grows from report to report.
    pub done: f64,
    /// The value that `done` has at the end, in the same unit, if it is known.
    pub total: Option<f64>,
    /// A text for a person; since 2025-03-26.
    pub message: Option<&'a Shown>,
}

/// Writes the progress of a request. `token` is the progress token of the request, and `task` the id of the task that the request has
/// become, if any.
pub fn progress(revision: Revision, token: &Id, progress: Progress<'_>, task: Option<&str>) -> String {
    let Progress { done, total, message } = progress;
    let mut params = json!({ "progressToken": token.to_value(), "progress": number(done) });
    if let Some(object) = params.as_object_mut() {
        if let Some(total) = total {
            object.insert("total".into(), number(total));
        }
        if let Some(message) = message.filter(|_| revision.has(Feature::ProgressMessages)) {
            object.insert("message".into(), message.as_str().into());
        }
    }
    mark(&mut params, task);
    notification_text("notifications/progress", Some(&params))
}

/// Writes the notification that the server cancels one of its own requests, or ends a subscription.
pub fn cancelled(id: &Id, reason: &str) -> String {
    let params = json!({ "requestId": id.to_value(), "reason": reason });
    notification_text("notifications/cancelled", Some(&params))
}

/// Writes the confirmation of a subscription. `filter` is the subset of the client's filter that the server honours.
pub fn acknowledged(id: &Id, filter: &ListenFilter) -> String {
    let mut honoured = Object::new();
    for (key, wanted) in [
        ("toolsListChanged", filter.tools_list_changed),
        ("promptsListChanged", filter.prompts_list_changed),
        ("resourcesListChanged", filter.resources_list_changed),
    ] {
        if wanted == Some(true) {
            honoured.insert(key.into(), true.into());
        }
    }
    if let Some(uris) = &filter.resource_subscriptions {
        honoured.insert("resourceSubscriptions".into(), json!(uris));
    }
    if let Some(ids) = &filter.task_ids {
        honoured.insert("taskIds".into(), json!(ids));
    }
    let params = json!({ "notifications": honoured, "_meta": { SUBSCRIPTION_ID: id.to_value() } });
    notification_text("notifications/subscriptions/acknowledged", Some(&params))
}

fn tagged(method: &str, mut params: Object, tag: Option<&Id>) -> String {
    if let Some(tag) = tag {
        params.insert("_meta".into(), json!({ SUBSCRIPTION_ID: tag.to_value() }));
    }
    let params = (!params.is_empty()).then_some(Value::Object(params));
    notification_text(method, params.as_ref())
}

/// Marks the parameters as belonging to a task.
fn mark(params: &mut Value, task: Option<&str>) {
    if let (Some(task), Some(object)) = (task, params.as_object_mut()) {
        object.insert("_meta".into(), json!({ RELATED_TASK: related_task(task) }));
    }
}

/// Converts a number to JSON. Whole numbers have no fraction.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { Value::from(value as i64) } else { Value::from(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_words_where_the_revision_has_them() {
        let token = Id::number(7);
        let half = Shown::from("half");
        let half = Progress { done: 1.0, total: Some(2.5), message: Some(&half) };
        let text = progress(Revision::V2024_11_05, &token, half, None);
        let params = r#"{"progressToken":7,"progress":1,"total":2.5}"#;
        assert_eq!(text, format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#));
        assert!(progress(Revision::V2025_03_26, &token, half, None).contains(r#""message":"half""#));
        let marked = progress(Revision::V2025_11_25, &token, half, Some("t1"));
        assert!(marked.contains(r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}"#), "{marked}");
    }

    #[test]
    fn only_subscriptions_are_tagged() {
        assert_eq!(
            list_changed(ChangingList::Tools, None),
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#
        );
        assert!(resource_updated("a:b", Some(&Id::number(1))).contains(SUBSCRIPTION_ID));
    }
}
