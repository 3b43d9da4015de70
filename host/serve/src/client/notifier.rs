//! Sends clients notifications about changes. One loop serves every kind of listener.
//!
//! A listener is a legacy session, which also gets log messages, or a modern subscription, whose id is in each of its notifications.
//! Changes of lists are found by comparing generations, so that a burst of changes leads to one notification. A listener that falls behind
//! on resource updates gets an update of each resource that it subscribed to.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{
    broadcast::{self, error::RecvError},
    watch,
};
use wharf_protocol::{
    Id, Level, Revision, Shown,
    notification::{self, ChangingList},
};

use super::{
    outbox::{Outbox, Unsent},
    server::Server,
};
use wharf_base::session_id::ListDigests;
use wharf_config::config::Config;
use wharf_plugins::{
    plugins::{
        catalog::Catalog,
        published::Failure,
        served::{Changed, Generations},
        view::{ListVersions, View},
    },
    tasks::Record,
};
use wharf_policy::{auth::Caller, profiles::Style};

/// A receiver of notifications, which says which ones it wants.
pub trait Listener: Send + Sync {
    fn wants_tools(&self) -> bool;
    fn wants_prompts(&self) -> bool;
    fn wants_resources(&self) -> bool;
    fn wants_resource(&self, uri: &str) -> bool;
    fn wants_task(&self, task: &Record) -> bool;
    fn revision(&self) -> Revision;
    /// Returns every URI that the listener subscribed to, for when single updates were missed.
    fn resources(&self) -> Vec<String>;
    /// Returns the id to put into each notification, if the listener is a subscription.
    fn tag(&self) -> Option<&Id>;
    /// Whether the listener wants log messages about failures at this level.
    fn wants_messages(&self, level: Level) -> bool;
    /// Returns the caller that listens, with the credentials of its latest request.
    fn caller(&self) -> Caller;
    /// Returns the profile that the listener connected to.
    fn profile(&self) -> Option<&str>;
    /// Returns what the listener last learned about the lists.
    fn last_told(&self) -> &Mutex<Told>;
    /// Stores for other replicas which lists the listener knows of.
    fn was_told(&self, _server: &Arc<Server>, _lists: ListDigests) {}
}

/// What a listener last learned about the lists.
#[derive(Debug, Clone, Copy)]
pub enum Told {
    /// It connected before the first load, and may have seen the lists of that load.
    Nothing,
    Versions(ListVersions),
    /// What the id of its session says, which this process may not have issued. `lists`: None if it could not have seen any list when the id
    /// was issued.
    Sealed {
        lists: Option<ListDigests>,
        issued: u64,
    },
}

/// Receives every change from [`Feed::open`] on, for one listener.
pub struct Feed {
    server: Arc<Server>,
    /// A change of the config may change roles and profiles.
    config: watch::Receiver<Arc<Config>>,
    catalog: watch::Receiver<Arc<Catalog>>,
    updates: broadcast::Receiver<Option<Arc<str>>>,
    failures: broadcast::Receiver<Failure>,
    tasks: broadcast::Receiver<Arc<Record>>,
    /// Whether the listener has missed changes of resources before the feed was opened.
    missed: bool,
}

/// Tells a listener that each of its resources may have changed.
async fn all_updated(listener: &dyn Listener, view: &View, outbox: &Outbox) -> Result<(), Unsent> {
    let mut sent = Ok(());
    for uri in listener.resources().into_iter().filter(|uri| view.sees_resource(uri)) {
        sent = outbox.send(notification::resource_updated(&uri, listener.tag())).await;
    }
    sent
}

impl Feed {
    /// Opens a feed. Must be called before the client learns that it is subscribed, so that no later change is missed.
    pub fn open(server: &Arc<Server>) -> Self {
        Self {
            server: Arc::clone(server),
            config: server.config.clone(),
            catalog: server.published.catalog.clone(),
            updates: server.updates.subscribe(),
            failures: server.published.failures.subscribe(),
            tasks: server.tasks.changes(),
            missed: false,
        }
    }

    /// The listener comes back from a stream whose rest is lost, if this is true.
    pub fn missed(self, missed: bool) -> Self {
        Self { missed, ..self }
    }

    /// Feeds the listener until its outbox closes.
    pub async fn run(mut self, listener: &dyn Listener, outbox: &Outbox) {
        if self.missed {
            let view = self.server.view(&listener.caller(), listener.profile());
            if all_updated(listener, &view, outbox).await == Err(Unsent::Closed) {
                return;
            }
        }
        // Requests for lists wait for the first load, so that load is not announced as a change. Failures during it are only in the log.
        if !*self.server.published.ready.borrow() {
            self.server.published.catalog().await;
            self.failures = self.failures.resubscribe();
        }
        loop {
            self.config.mark_unchanged();
            self.catalog.mark_unchanged();
            let view = self.server.view(&listener.caller(), listener.profile());
            let first = self.server.published.first.get().copied();
            let since = |sealed| self.server.lists_since(&view, sealed);
            let changes = list_changes(listener, view.list_versions(), first, view.filter.style(), since);
            if !changes.is_empty() && self.server.cluster.is_some() {
                listener.was_told(&self.server, view.list_digests());
            }
            for list in changes {
                if outbox.send(notification::list_changed(list, listener.tag())).await == Err(Unsent::Closed) {
                    return;
                }
            }
            let sent = tokio::select! {
                changed = self.catalog.changed() => if changed.is_err() { return } else { Ok(()) },
                // Of the config, only roles and profiles matter here. Without any of them, a new config changes nothing for the listener.
                Ok(()) = self.config.changed() => Ok(()),
                () = outbox.closed() => return,
                updated = self.updates.recv() => match updated {
                    Ok(Some(uri)) if listener.wants_resource(&uri) && view.sees_resource(&uri) => outbox.send(notification::resource_updated(&uri, listener.tag())).await,
                    Ok(Some(_)) => Ok(()),
                    Ok(None) | Err(RecvError::Lagged(_)) => all_updated(listener, &view, outbox).await,
                    Err(RecvError::Closed) => return,
                },
                // Changes of tasks that a slow listener misses are not sent again, since clients also poll their tasks.
                changed = self.tasks.recv() => match changed {
                    Ok(task) if listener.wants_task(&task) => {
                        let encoder = self.server.encoder(listener.revision());
                        match self.server.entitled(&listener.caller(), listener.profile(), (*task).clone()) {
                            Some(task) => outbox.send(encoder.task_changed(&task.task, task.detail(), listener.tag())).await,
                            None => Ok(()),
                        }
                    }
                    _ => Ok(()),
                },
                failure = self.failures.recv() => match failure {
                    Ok(failure) if listener.wants_messages(Level::Error) && view.sees_failure(&failure) => {
                        outbox.send(notification::message(Level::Error, "wharf", Shown::data((*failure.text).into()), None)).await
                    }
                    _ => Ok(()),
                },
            };
            // A notification that is dropped for lack of memory is not sent again; later changes are announced as usual.
            if sent == Err(Unsent::Closed) {
                return;
            }
        }
    }
}

/// Whether a subscription to one resource covers an update of `uri`: it covers the resource itself and all below it.
pub fn covers(subscribed: &str, uri: &str) -> bool {
    uri.strip_prefix(subscribed)
        .is_some_and(|rest| rest.is_empty() || subscribed.ends_with('/') || rest.starts_with('/'))
}

/// Returns the lists that changed for the listener since it last learned about them. `first`: the generations after the first load.
/// `style`: how tools are listed for the listener. `since`: returns what changed since the id of a session was issued.
fn list_changes(
    listener: &dyn Listener,
    now: ListVersions,
    first: Option<Generations>,
    style: Style,
    since: impl FnOnce((Option<ListDigests>, u64)) -> Changed,
) -> Vec<ChangingList> {
    let mut told = listener.last_told().lock();
    let changed = match (*told, first) {
        (Told::Sealed { lists, issued }, _) => since((lists, issued)),
        (Told::Versions(before), _) => match (before.own, now.own) {
            (Some(before), Some(now)) => now.since(before),
            (None, None) => now.all.since(before.all),
            // The first role or profile was added, or the last one removed, so any list may differ.
            _ => Changed::ALL,
        },
        // A listener that connected before the first load may have seen the lists of that load, but nothing older. The search tools, which
        // a client with the search style gets in place of all others, are the same at every load.
        (Told::Nothing, Some(first)) if style == Style::Search => Changed { tools: false, ..now.all.since(first) },
        (Told::Nothing, Some(first)) => now.all.since(first),
        (Told::Nothing, None) => Changed::NONE,
    };
    *told = Told::Versions(now);
    drop(told);
    let mut lists = Vec::new();
    if changed.tools && listener.wants_tools() {
        lists.push(ChangingList::Tools);
    }
    if changed.prompts && listener.wants_prompts() {
        lists.push(ChangingList::Prompts);
    }
    if changed.resources && listener.wants_resources() {
        lists.push(ChangingList::Resources);
    }
    lists
}
