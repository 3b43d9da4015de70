//! What others see of the library: the catalog, how each plugin fares, and where to send changes.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast, watch};

use super::{
    announced::Announcements,
    catalog::{Catalog, Generations},
    status::{Status, Subject},
};

/// How long clients wait for the first load; what is not ready by then follows.
pub const FIRST_LOAD: Duration = Duration::from_secs(15);

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
