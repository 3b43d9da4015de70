//! Tells clients what changed: one loop that serves every kind of listener.
//!
//! A listener is a legacy session, untagged and with a level for messages, or a modern subscription, tagged with its id.
//! Lists are told by comparing generations, so that a burst is one notification; who falls behind on resource updates
//! is told of each of its resources.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{
    broadcast::{self, error::RecvError},
    watch,
};
use wharf_protocol::{
    Id, Level, Revision,
    notification::{self, Listed},
};

use super::{outbox::Outbox, server::Server};
use crate::{
    plugins::catalog::{Catalog, Generations},
    tasks::Record,
};

/// Who listens, and to what.
pub trait Listener: Send + Sync {
    fn wants_tools(&self) -> bool;
    fn wants_prompts(&self) -> bool;
    fn wants_resources(&self) -> bool;
    fn wants_resource(&self, uri: &str) -> bool;
    fn wants_task(&self, task: &Record) -> bool;
    fn revision(&self) -> Revision;
    /// Every URI it wants, for when single updates were missed.
    fn resources(&self) -> Vec<String>;
    /// The id that marks everything sent to it, if it is a subscription.
    fn tag(&self) -> Option<&Id>;
    /// Whether it hears of failures at this level.
    fn wants_messages(&self, level: Level) -> bool;
    /// What it was last told; none until it has been told anything.
    fn last_told(&self) -> &Mutex<Option<Generations>>;
}

/// A listener's ends of everything that can change: what happens from [`Feed::open`] on reaches it.
pub struct Feed {
    server: Arc<Server>,
    catalog: watch::Receiver<Arc<Catalog>>,
    updates: broadcast::Receiver<Arc<str>>,
    failures: broadcast::Receiver<Arc<str>>,
    tasks: broadcast::Receiver<Arc<Record>>,
}

impl Feed {
    /// Opened before the client hears that it is listening: nothing it does after that can be missed.
    pub fn open(server: &Arc<Server>) -> Self {
        Self {
            server: Arc::clone(server),
            catalog: server.published.catalog.clone(),
            updates: server.updates.subscribe(),
            failures: server.published.failures.subscribe(),
            tasks: server.tasks.changes.subscribe(),
        }
    }

    /// Feeds the listener until its outbox closes.
    pub async fn run(mut self, listener: &dyn Listener, outbox: &Outbox) {
        // Lists wait for the first load, so it is no change; what failed in it is in the log.
        if !*self.server.published.ready.borrow() {
            self.server.published.catalog().await;
            self.failures = self.failures.resubscribe();
        }
        loop {
            let generations = self.catalog.borrow_and_update().generations;
            for list in list_changes(listener, generations, self.server.published.first.get().copied()) {
                if outbox.send(notification::list_changed(list, listener.tag())).await.is_err() {
                    return;
                }
            }
            let sent = tokio::select! {
                changed = self.catalog.changed() => if changed.is_err() { return } else { Ok(()) },
                () = outbox.closed() => return,
                updated = self.updates.recv() => match updated {
                    Ok(uri) if listener.wants_resource(&uri) => outbox.send(notification::resource_updated(&uri, listener.tag())).await,
                    Ok(_) => Ok(()),
                    Err(RecvError::Lagged(_)) => {
                        let mut sent = Ok(());
                        for uri in listener.resources() {
                            sent = outbox.send(notification::resource_updated(&uri, listener.tag())).await;
                        }
                        sent
                    }
                    Err(RecvError::Closed) => return,
                },
                // Who falls behind asks for its tasks anyway.
                changed = self.tasks.recv() => match changed {
                    Ok(task) if listener.wants_task(&task) => {
                        let encoder = self.server.encoder(listener.revision());
                        outbox.send(encoder.task_changed(&task.task, task.detail(), listener.tag())).await
                    }
                    _ => Ok(()),
                },
                failure = self.failures.recv() => match failure {
                    Ok(text) if listener.wants_messages(Level::Error) => {
                        outbox.send(notification::message(Level::Error, "wharf", (*text).into(), None)).await
                    }
                    _ => Ok(()),
                },
            };
            if sent.is_err() {
                return;
            }
        }
    }
}

/// Whether who subscribes to one resource hears of another: of itself, and of what lies below it.
pub fn covers(subscribed: &str, uri: &str) -> bool {
    uri.strip_prefix(subscribed)
        .is_some_and(|rest| rest.is_empty() || subscribed.ends_with('/') || rest.starts_with('/'))
}

fn list_changes(listener: &dyn Listener, now: Generations, first: Option<Generations>) -> Vec<Listed> {
    let mut told = listener.last_told().lock();
    let mut lists = Vec::new();
    // Who came before the first load may have seen its lists, and nothing older.
    let Some(before) = told.replace(now).or(first) else { return lists };
    if before.tools != now.tools && listener.wants_tools() {
        lists.push(Listed::Tools);
    }
    if before.prompts != now.prompts && listener.wants_prompts() {
        lists.push(Listed::Prompts);
    }
    if before.resources != now.resources && listener.wants_resources() {
        lists.push(Listed::Resources);
    }
    lists
}
