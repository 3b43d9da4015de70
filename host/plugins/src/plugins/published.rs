//! The channels through which the library publishes the catalog, the status of each plugin, and failures. The library holds the
//! [`Publisher`]; all other modules hold a [`Published`].

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};

use super::{
    catalog::Catalog,
    expected::{Expected, Sought},
    filter::Filter,
    served::Generations,
    status::{Problem, Stage, Status, Subject},
};
use crate::observe::{journal::Event, observers::Observers};
use wharf_base::text::escaped;
use wharf_config::config::PluginConfig;

/// How long clients wait for the first load. Plugins that are not ready by then are added to the catalog later.
pub const FIRST_LOAD_TIMEOUT: Duration = Duration::from_secs(15);

/// The capacity of the channel of failures. A listener that falls further behind misses the oldest ones.
const MAX_QUEUED_FAILURES: usize = 64;

/// The receiving ends: what all other modules see of the library.
#[derive(Clone)]
pub struct Published {
    pub catalog: watch::Receiver<Arc<Catalog>>,
    /// Whether the first load is over.
    pub ready: watch::Receiver<bool>,
    /// What should be served, and what of it is being loaded; `None` until the library has begun. A plugin that is not being loaded is in
    /// the catalog that is read after this, if it loads.
    pub expected: watch::Receiver<Option<Arc<Expected>>>,
    /// The generations of the lists at the end of the first load. No client has seen older lists.
    pub first: Arc<OnceLock<Generations>>,
    /// The number of the last config whose plugins are all either served or failed; 0 before the first.
    pub settled: watch::Receiver<u64>,
    pub(crate) status: Arc<Mutex<BTreeMap<Subject, Status>>>,
    /// Broadcasts each plugin failure, with a sentence for clients.
    pub failures: broadcast::Sender<Failure>,
}

/// The failure of a plugin to load.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The plugin's id, or the name of the subject if it is not a plugin.
    pub subject: Arc<str>,
    /// A sentence for clients.
    pub text: Arc<str>,
}

impl Published {
    pub fn status(&self) -> BTreeMap<Subject, Status> {
        self.status.lock().clone()
    }

    /// Returns why something is not in the catalog, for a client that may know: the plugin that its name means did not load.
    /// `knows`: whether the client may know of a plugin.
    pub fn lost(&self, sought: &Sought<'_>, filter: &Filter, knows: impl Fn(&str) -> bool) -> Option<String> {
        let expected = self.expected.borrow().clone()?;
        let status = self.status.lock();
        let mut known = expected.meant(sought, filter).into_iter().filter(|config| knows(&config.id));
        known.find_map(|config| {
            let Status::Failed { problem, last_good } = status.get(&Subject::plugin(&config.id))? else { return None };
            Some(problem.told(&config.id, *last_good))
        })
    }

    /// Returns a sentence for each plugin that did not load, in order of their ids, of those for which `knows` returns true.
    pub fn failed(&self, knows: impl Fn(&str) -> bool) -> Vec<String> {
        let told = |(subject, status): (&Subject, &Status)| match (subject, status) {
            (Subject::Plugin(id), Status::Failed { problem, last_good }) if knows(id) => {
                Some(problem.told(id, *last_good))
            }
            _ => None,
        };
        self.status.lock().iter().filter_map(told).collect()
    }

    /// Returns a sentence for each of these plugins, if none of them loads: with `details` for the operator, without for clients.
    pub fn none_of(&self, ids: &[String], details: bool) -> Option<Vec<String>> {
        let status = self.status.lock();
        let told = |id: &String| match status.get(&Subject::plugin(id))? {
            Status::Failed { problem, last_good: false } if details => {
                Some(format!("plugin {id} did not load: {}", problem.text))
            }
            Status::Failed { problem, last_good: false } => Some(problem.told(id, false)),
            _ => None,
        };
        ids.iter().map(told).collect()
    }

    /// Returns the catalog. Waits for the first load, but for at most [`FIRST_LOAD_TIMEOUT`].
    pub async fn catalog(&self) -> Arc<Catalog> {
        self.wait(FIRST_LOAD_TIMEOUT).await;
        Arc::clone(&self.catalog.borrow())
    }

    /// Waits for the first load, but for at most `limit`.
    pub async fn wait(&self, limit: Duration) {
        if !*self.ready.borrow() {
            let mut ready = self.ready.clone();
            // A closed channel means that the library is gone; its last catalog is still served.
            let _ = tokio::time::timeout(limit, ready.wait_for(|ready| *ready)).await;
        }
    }
}

/// The sending ends of [`Published`], which the library holds.
pub struct Publisher {
    catalog: watch::Sender<Arc<Catalog>>,
    ready: watch::Sender<bool>,
    first: Arc<OnceLock<Generations>>,
    expected: watch::Sender<Option<Arc<Expected>>>,
    settled: watch::Sender<u64>,
    status: Arc<Mutex<BTreeMap<Subject, Status>>>,
    failures: broadcast::Sender<Failure>,
    observers: Observers,
}

impl Publisher {
    /// `page_items`: the maximum number of entries in a page of a list.
    pub fn new(observers: Observers, page_items: usize) -> (Self, Published) {
        // Lists that are the same whatever is loaded are answered from this empty catalog.
        let (catalog, catalog_seen) = watch::channel(Arc::new(Catalog::empty(page_items)));
        let (expected, expected_seen) = watch::channel(None);
        let (ready, ready_seen) = watch::channel(false);
        let (settled, settled_seen) = watch::channel(0);
        let (failures, _) = broadcast::channel(MAX_QUEUED_FAILURES);
        let publisher = Self {
            catalog,
            ready,
            first: Arc::default(),
            expected,
            settled,
            status: Arc::default(),
            failures,
            observers,
        };
        let published = Published {
            catalog: catalog_seen,
            ready: ready_seen,
            expected: expected_seen,
            first: Arc::clone(&publisher.first),
            settled: settled_seen,
            status: Arc::clone(&publisher.status),
            failures: publisher.failures.clone(),
        };
        (publisher, published)
    }

    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    pub fn set_ready(&self) {
        self.ready.send_replace(true);
    }

    /// Returns the generations of the published catalog.
    pub fn generations(&self) -> Generations {
        self.catalog.borrow().generations
    }

    /// Publishes a catalog. `first`: the generations of the first load, if this is the first catalog.
    pub fn publish(&self, catalog: Catalog, first: Generations) {
        self.first.get_or_init(|| first);
        self.catalog.send_replace(Arc::new(catalog));
    }

    /// Publishes what should be served, and what of it is being loaded. Must be called after the catalog with what was loaded is published,
    /// so that a request that reads this first and the catalog then never misses a plugin.
    pub fn expect(&self, wanted: &Arc<[Arc<PluginConfig>]>, mut loading: Vec<Arc<PluginConfig>>) {
        loading.sort_by(|one, other| one.id.cmp(&other.id));
        self.expected.send_if_modified(|expected| {
            let same = expected.as_ref().is_some_and(|before| {
                Arc::ptr_eq(&before.wanted, wanted)
                    && before.loading.len() == loading.len()
                    && before.loading.iter().zip(&loading).all(|(one, other)| Arc::ptr_eq(one, other))
            });
            if !same {
                *expected = Some(Arc::new(Expected { wanted: Arc::clone(wanted), loading }));
            }
            !same
        });
    }

    /// Records that all plugins of the config with this number are either served or failed.
    pub fn settle(&self, number: u64) {
        self.settled.send_if_modified(|settled| std::mem::replace(settled, number) != number);
    }

    /// Removes the status of all subjects for which `keep` returns false.
    pub fn retain(&self, keep: impl Fn(&Subject) -> bool) {
        self.status.lock().retain(|subject, _| keep(subject));
    }

    /// Sets or removes a status. Returns whether that is a change.
    pub fn set_status(&self, subject: Subject, new: Option<Status>) -> bool {
        let mut status = self.status.lock();
        let old = match new.clone() {
            Some(new) => status.insert(subject, new),
            None => status.remove(&subject),
        };
        old != new
    }

    /// Reports a failure to the operator and to clients, once until it changes. Only the operator gets the details, because a plugin can
    /// put anything that it knows into them.
    pub fn report(&self, subject: Subject, stage: Stage, problem: &str, last_good: bool) {
        let told = Problem::new(stage, escaped(problem));
        let problem = told.text.clone();
        let status = Status::Failed { problem: told, last_good };
        let name = subject.to_string();
        if self.set_status(subject, Some(status)) {
            let still = if last_good { "; its last good version serves" } else { "" };
            tracing::error!(plugin = name, stage = %stage, "does not load: {problem}{still}");
            self.observers.note(|| Event::Failed {
                plugin: name.clone(),
                stage: stage.as_str(),
                problem: problem.to_string(),
                last_good,
            });
            // Sending fails only if there are no listeners, which is fine.
            let shown = Path::new(&name).file_name().unwrap_or_default().to_string_lossy();
            let text =
                format!("The plugin `{}` does not load ({stage}){still}; the server's log says why.", escaped(&shown));
            self.failures.send(Failure { subject: name.into(), text: text.into() }).ok();
        }
    }
}
