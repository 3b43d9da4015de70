//! Tells clients what changed: one loop that serves every kind of listener.
//!
//! A listener is a legacy session, untagged and with a level for messages, or a modern subscription, tagged with its id.
//! Lists are told by comparing generations, so that a burst is one notification; who falls behind on resource updates
//! is told of each of its resources.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use wharf_protocol::{Id, Level, message::notification_text, meta::SUBSCRIPTION_ID};

use crate::{catalog::Generations, outlet::Outlet, server::Server};

/// Who listens, and to what.
pub trait Listener: Send + Sync {
    fn wants_tools(&self) -> bool;
    fn wants_prompts(&self) -> bool;
    fn wants_resources(&self) -> bool;
    fn wants_resource(&self, uri: &str) -> bool;
    /// Every URI it wants, for when single updates were missed.
    fn resources(&self) -> Vec<String>;
    /// The id that marks everything sent to it, if it is a subscription.
    fn tag(&self) -> Option<&Id>;
    /// Whether it hears of failures at this level.
    fn wants_messages(&self, level: Level) -> bool;
    /// What it was last told; none until it has been told anything.
    fn told(&self) -> &Mutex<Option<Generations>>;
}

/// Feeds a listener until its outlet closes. `ready`: called once nothing can be missed any more.
pub async fn feed(server: &Arc<Server>, listener: &dyn Listener, outlet: &Outlet, ready: impl AsyncFnOnce()) {
    // Lists wait for the first load, so it is no change.
    server.shelf.catalog().await;
    let mut catalog = server.shelf.catalog.clone();
    let mut updates = server.updates.subscribe();
    let mut failures = server.shelf.failures.subscribe();
    ready().await;
    loop {
        let generations = catalog.borrow_and_update().generations;
        for method in list_changes(listener, generations) {
            if outlet.send(notification(method, None, listener.tag())).await.is_err() {
                return;
            }
        }
        let sent = tokio::select! {
            changed = catalog.changed() => if changed.is_err() { return } else { Ok(()) },
            () = outlet.closed() => return,
            updated = updates.recv() => match updated {
                Ok(uri) if listener.wants_resource(&uri) => outlet.send(updated_text(&uri, listener.tag())).await,
                Ok(_) => Ok(()),
                Err(RecvError::Lagged(_)) => {
                    let mut sent = Ok(());
                    for uri in listener.resources() {
                        sent = outlet.send(updated_text(&uri, listener.tag())).await;
                    }
                    sent
                }
                Err(RecvError::Closed) => return,
            },
            failure = failures.recv() => match failure {
                Ok(text) if listener.wants_messages(Level::Error) => {
                    let params = json!({ "level": Level::Error.as_str(), "logger": "wharf", "data": *text });
                    outlet.send(notification_text("notifications/message", Some(&params))).await
                }
                _ => Ok(()),
            },
        };
        if sent.is_err() {
            return;
        }
    }
}

fn list_changes(listener: &dyn Listener, now: Generations) -> Vec<&'static str> {
    let mut told = listener.told().lock().unwrap_or_else(PoisonError::into_inner);
    let mut methods = Vec::new();
    let Some(before) = told.replace(now) else { return methods };
    if before.tools != now.tools && listener.wants_tools() {
        methods.push("notifications/tools/list_changed");
    }
    if before.prompts != now.prompts && listener.wants_prompts() {
        methods.push("notifications/prompts/list_changed");
    }
    if before.resources != now.resources && listener.wants_resources() {
        methods.push("notifications/resources/list_changed");
    }
    methods
}

fn updated_text(uri: &str, tag: Option<&Id>) -> String {
    notification("notifications/resources/updated", Some(("uri", uri.into())), tag)
}

/// A notification with its tag, if it has one.
pub fn notification(method: &str, member: Option<(&str, Value)>, tag: Option<&Id>) -> String {
    let mut params = wharf_protocol::Object::new();
    if let Some((key, value)) = member {
        params.insert(key.into(), value);
    }
    if let Some(tag) = tag {
        params.insert("_meta".into(), json!({ SUBSCRIPTION_ID: tag.to_value() }));
    }
    let params = (!params.is_empty()).then_some(Value::Object(params));
    notification_text(method, params.as_ref())
}
