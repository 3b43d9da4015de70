//! What others see of the library: the catalog, how each plugin fares, and where to say that something changed; and the
//! library's end of the same.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast, watch};

use super::{
    announced::Announcements,
    catalog::{Catalog, Generations},
    status::{Problem, Stage, Status, Subject},
};
use crate::base::text::escaped;

/// How long clients wait for the first load; what is not ready by then follows.
pub const FIRST_LOAD: Duration = Duration::from_secs(15);

/// Failures that a slow listener may be behind.
const FAILURES_KEPT: usize = 64;

/// What others see of the library.
#[derive(Clone)]
pub struct Published {
    pub catalog: watch::Receiver<Arc<Catalog>>,
    /// True once the first load is over.
    pub ready: watch::Receiver<bool>,
    /// What there was when it was over: no list that a client has seen is older.
    pub first: Arc<OnceLock<Generations>>,
    /// Told when something on disk may have changed.
    pub files: Arc<Notify>,
    /// The number of the last config by which all is served that can be.
    pub settled: watch::Receiver<u64>,
    /// Where plugins say that their lists changed.
    pub announcements: Announcements,
    pub(crate) status: Arc<Mutex<BTreeMap<Subject, Status>>>,
    /// Told of plugins that fail, in one sentence for clients.
    pub failures: broadcast::Sender<Arc<str>>,
}

impl Published {
    pub fn status(&self) -> BTreeMap<Subject, Status> {
        self.status.lock().clone()
    }

    /// The catalog, once there is one; after [`FIRST_LOAD`] whatever there is.
    pub async fn catalog(&self) -> Arc<Catalog> {
        if !*self.ready.borrow() {
            let mut ready = self.ready.clone();
            // A closed channel means the library is gone; what it left is still served.
            let _ = tokio::time::timeout(FIRST_LOAD, ready.wait_for(|ready| *ready)).await;
        }
        Arc::clone(&self.catalog.borrow())
    }
}

/// The library's end: what it writes here, others see.
pub struct Publisher {
    catalog: watch::Sender<Arc<Catalog>>,
    ready: watch::Sender<bool>,
    first: Arc<OnceLock<Generations>>,
    settled: watch::Sender<u64>,
    status: Arc<Mutex<BTreeMap<Subject, Status>>>,
    failures: broadcast::Sender<Arc<str>>,
    pub files: Arc<Notify>,
    pub announcements: Announcements,
}

impl Publisher {
    pub fn new() -> (Self, Published) {
        let (catalog, catalog_seen) = watch::channel(Arc::default());
        let (ready, ready_seen) = watch::channel(false);
        let (settled, settled_seen) = watch::channel(0);
        let (failures, _) = broadcast::channel(FAILURES_KEPT);
        let publisher = Self {
            catalog,
            ready,
            first: Arc::default(),
            settled,
            status: Arc::default(),
            failures,
            files: Arc::default(),
            announcements: Announcements::default(),
        };
        let published = Published {
            catalog: catalog_seen,
            ready: ready_seen,
            first: Arc::clone(&publisher.first),
            files: Arc::clone(&publisher.files),
            settled: settled_seen,
            announcements: publisher.announcements.clone(),
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

    /// What clients were told last of how often lists have changed.
    pub fn generations(&self) -> Generations {
        self.catalog.borrow().generations
    }

    /// `first`: what counts as the first load, if there was none.
    pub fn publish(&self, catalog: Catalog, first: Generations) {
        self.first.get_or_init(|| first);
        self.catalog.send_replace(Arc::new(catalog));
    }

    /// All is served that can be by the config with this number.
    pub fn settle(&self, number: u64) {
        self.settled.send_if_modified(|settled| std::mem::replace(settled, number) != number);
    }

    pub fn retain(&self, keep: impl Fn(&Subject) -> bool) {
        self.status.lock().retain(|subject, _| keep(subject));
    }

    /// True if this is news.
    pub fn set_status(&self, subject: Subject, new: Option<Status>) -> bool {
        let mut status = self.status.lock();
        let old = match new.clone() {
            Some(new) => status.insert(subject, new),
            None => status.remove(&subject),
        };
        old != new
    }

    /// Tells operator and clients of a failure, once until it changes. Clients hear that there is one; what exactly is the
    /// operator's, since a plugin can put into it whatever it knows.
    pub fn report(&self, subject: Subject, stage: Stage, problem: &str, last_good: bool) {
        let problem = escaped(problem);
        let status = Status::Failed { problem: Problem { stage, text: problem.clone() }, last_good };
        let name = subject.to_string();
        if self.set_status(subject, Some(status)) {
            let still = if last_good { "; its last good version serves" } else { "" };
            tracing::error!(plugin = name, stage = %stage, "does not load: {problem}{still}");
            // Nobody listening is no failure.
            let shown = Path::new(&name).file_name().unwrap_or_default().to_string_lossy();
            let text =
                format!("The plugin `{}` does not load ({stage}){still}; the server's log says why.", escaped(&shown));
            self.failures.send(text.into()).ok();
        }
    }
}
