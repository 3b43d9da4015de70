//! All tasks: the record of each, and what runs for it. How a call becomes a task is in `methods::call::background`, and how
//! clients ask for tasks is in `methods::tasks`.
//!
//! A task belongs to the session or principal that began it. To everybody else it looks as if it did not exist.

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
pub use store::{Memory, Record, StoreError, TaskStore};

/// How many changes a slow listener may be behind before it misses some.
const CHANGES_KEPT: usize = 256;

/// All tasks of the process.
pub struct Tasks {
    store: Box<dyn TaskStore>,
    under_way: Mutex<HashMap<String, Arc<Running>>>,
    /// Sends each changed task, as it is after the change.
    pub changes: broadcast::Sender<Arc<Record>>,
    /// Bounds how many tasks run at once, so that there is room for calls that somebody waits for.
    running: Arc<Semaphore>,
    last_number: AtomicU64,
    /// What is charged for each task, by its id.
    paid: Mutex<HashMap<String, Paid>>,
}

struct Paid {
    until: SystemTime,
    charges: Vec<Charge>,
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
            paid: Mutex::default(),
        })
    }

    /// The task, if it belongs to this owner.
    pub async fn get(&self, id: &str, owner: &Owner) -> Result<Option<Record>, StoreError> {
        Ok(self.store.get(id).await?.filter(|record| record.owner == *owner))
    }

    /// Keeps a new task and what runs for it. `record`: makes the record with the number that it is given. `charge`: held for
    /// as long as the task is kept.
    pub async fn insert(
        &self,
        running: &Arc<Running>,
        record: impl FnOnce(u64) -> Record,
        charge: Charge,
    ) -> Result<(), StoreError> {
        let record = record(self.last_number.fetch_add(1, Ordering::Relaxed) + 1);
        let expires = record.expires();
        self.store.insert(record).await?;
        self.pay(&running.id, expires, charge);
        self.under_way.lock().insert(running.id.clone(), Arc::clone(running));
        Ok(())
    }

    /// Holds a charge for a task until the task has expired.
    fn pay(&self, id: &str, expires: SystemTime, charge: Charge) {
        let now = SystemTime::now();
        let mut paid = self.paid.lock();
        paid.retain(|_, paid| paid.until > now);
        paid.entry(id.to_owned()).or_insert_with(|| Paid { until: expires, charges: Vec::new() }).charges.push(charge);
    }

    /// Removes what ran for a task, when that has ended.
    pub fn forget(&self, running: &Running) {
        self.under_way.lock().remove(&running.id);
    }

    /// Waits for a permit to run. All tasks together get only a part of what can run at once, the rest is for ordinary calls.
    pub async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed, so this cannot fail.
        Arc::clone(&self.running).acquire_owned().await.ok()
    }

    pub async fn list(&self, owner: &Owner, after: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.store.list(owner, after, limit).await
    }

    pub fn under_way(&self, id: &str) -> Option<Arc<Running>> {
        self.under_way.lock().get(id).cloned()
    }

    /// Changes a task that has not ended, and tells listeners. A failure of the store is only logged, so that the task itself
    /// goes on.
    async fn change(&self, id: &str, change: impl Fn(&mut Record) + Send + Sync) {
        let change = |record: &mut Record| {
            let goes_on = !record.task.status.is_terminal();
            if goes_on {
                change(record);
                record.task.updated = SystemTime::now();
            }
            goes_on
        };
        match self.store.update(id, &change).await {
            // Sending fails only if the last listener has just gone, which is fine.
            Ok(Some(record)) if self.changes.receiver_count() > 0 => drop(self.changes.send(Arc::new(record))),
            Ok(_) => {}
            Err(error) => tracing::error!("a task is not kept: {error}"),
        }
    }

    /// Ends a task. `charge`: for its outcome, held until the task has expired.
    pub async fn end(
        &self,
        id: &str,
        status: TaskStatus,
        message: Option<&str>,
        outcome: Option<Result<Arc<str>, RpcError>>,
        charge: Option<Charge>,
    ) {
        if let Some((paid, charge)) = self.paid.lock().get_mut(id).zip(charge) {
            paid.charges.push(charge);
        }
        self.change(id, |record| {
            record.task.status = status;
            record.task.message = message.map(ToOwned::to_owned);
            record.questions.clear();
            record.outcome.clone_from(&outcome);
        })
        .await;
        if let Some(running) = self.under_way(id) {
            running.changed();
        }
    }
}
