//! The tasks there are: what is kept of each, and what runs for it. How a call becomes one is in `call::background`, and how
//! clients ask for it in `task_methods`.
//!
//! A task belongs to the session or principal that began it, and for everybody else it does not exist.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use wharf_protocol::{RpcError, task::TaskStatus};

use crate::base::{ledger::Charge, principal::Owner};

mod running;
mod store;

pub use running::Running;
pub use store::{Full, Memory, Record, TaskStore};

/// Changes that a slow listener may be behind.
const CHANGES_KEPT: usize = 256;

/// All tasks of the process.
pub struct Tasks {
    store: Box<dyn TaskStore>,
    under_way: Mutex<HashMap<String, Arc<Running>>>,
    /// Tasks as they are after a change.
    pub changes: broadcast::Sender<Arc<Record>>,
    /// Those that run at once; the rest of all slots is for calls that somebody waits for.
    running: Arc<Semaphore>,
    last_number: AtomicU64,
}

impl Tasks {
    /// `running`: how many may run at once.
    pub fn new(store: Box<dyn TaskStore>, running: usize) -> Arc<Self> {
        Arc::new(Self {
            store,
            under_way: Mutex::default(),
            changes: broadcast::channel(CHANGES_KEPT).0,
            running: Arc::new(Semaphore::new(running.max(1))),
            last_number: AtomicU64::new(0),
        })
    }

    /// A task, if it is this owner's.
    pub fn get(&self, id: &str, owner: &Owner) -> Option<Record> {
        self.store.get(id).filter(|record| record.owner == *owner)
    }

    /// Keeps a new task and what runs for it; the number is for its record.
    pub fn insert(&self, running: &Arc<Running>, record: impl FnOnce(u64) -> Record) -> Result<(), Full> {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        self.store.insert(record(number))?;
        self.under_way.lock().insert(running.id.clone(), Arc::clone(running));
        Ok(())
    }

    /// What has run is no longer under way.
    pub fn forget(&self, running: &Running) {
        self.under_way.lock().remove(&running.id);
    }

    /// A place to run in. One plugin's tasks leave room for the others', and all of them for ordinary calls.
    pub async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        // Never closed.
        Arc::clone(&self.running).acquire_owned().await.ok()
    }

    pub fn list(&self, owner: &Owner, after: u64, limit: usize) -> Vec<Record> {
        self.store.list(owner, after, limit)
    }

    pub fn under_way(&self, id: &str) -> Option<Arc<Running>> {
        self.under_way.lock().get(id).cloned()
    }

    /// Changes a task that has not ended, and tells who listens.
    fn change(&self, id: &str, change: impl Fn(&mut Record)) -> bool {
        let mut changed = false;
        self.store.update(id, &mut |record| {
            if !record.task.status.is_terminal() {
                change(record);
                record.task.updated = SystemTime::now();
                changed = true;
            }
        });
        if changed
            && self.changes.receiver_count() > 0
            && let Some(record) = self.store.get(id)
        {
            // Nobody listening is no failure.
            self.changes.send(Arc::new(record)).ok();
        }
        changed
    }

    pub fn end(
        &self,
        id: &str,
        status: TaskStatus,
        message: Option<&str>,
        outcome: Option<Result<Arc<str>, RpcError>>,
        charge: Option<Arc<Charge>>,
    ) {
        self.change(id, |record| {
            record.charges.extend(charge.clone());
            record.task.status = status;
            record.task.message = message.map(ToOwned::to_owned);
            record.questions.clear();
            record.outcome.clone_from(&outcome);
        });
        if let Some(running) = self.under_way(id) {
            running.changed();
        }
    }
}
