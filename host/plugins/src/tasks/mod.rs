//! Tasks: their records, and the work that runs for them. How a call becomes a task is in `methods::call::background`, and how clients use
//! tasks is in `methods::tasks`.
//!
//! A task belongs to the session or principal that created it. For everybody else it does not exist.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use wharf_protocol::{RpcError, task::TaskStatus};

use wharf_base::{
    ledger::Charge,
    party::Party,
    places::{Place, Places, PoolFull, PoolRule},
    principal::Owner,
};

mod kept;
mod records;
mod running;
mod shared;
mod store;

pub use kept::KEPT;
use kept::Kept;
use records::Records;
pub use running::Running;
pub use shared::SharedStore;
pub use store::{Memory, Purpose, Reach, Record, StoreError, TaskStore};

/// The limit of running tasks. Tasks get only a share of what can run at once, so that there is room for calls whose client waits for the
/// result.
pub static RUNNING: PoolRule = PoolRule {
    of: "running tasks",
    number: "half of `total_concurrency` in [limits]",
    taker: "client",
    until: "the plugin has answered or asked",
    asking: "given back, and taken again after the answer",
    gone: "given back: the tasks of a session end with it, all others with their time to live",
    gives_way: "nothing; a task waits for its turn within its time to live, and the client that runs the fewest tasks is next",
    old: Duration::MAX,
};

/// The reason why a task was not stored.
#[derive(Debug, thiserror::Error)]
pub enum Unkept {
    #[error("the task was not started: {0}; wait until some tasks have expired")]
    PoolFull(#[from] PoolFull),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Unkept> for RpcError {
    fn from(unkept: Unkept) -> Self {
        match unkept {
            Unkept::PoolFull(_) => Self::internal(unkept.to_string()),
            Unkept::Store(error) => error.into(),
        }
    }
}

/// All tasks of the process.
pub struct Tasks {
    records: Arc<Records>,
    kept: Kept,
    under_way: Mutex<HashMap<String, Arc<Running>>>,
    running: Arc<Places>,
    last_number: AtomicU64,
}

impl Tasks {
    /// Creates the tasks. `kept` is the most tasks that are stored, `running` the most that run at once.
    pub fn new(store: Box<dyn TaskStore>, kept: usize, running: usize) -> Arc<Self> {
        Arc::new(Self {
            records: Arc::new(Records::new(store)),
            kept: Kept::new(kept),
            under_way: Mutex::default(),
            running: Places::new(&RUNNING, running.max(1)),
            last_number: AtomicU64::new(0),
        })
    }

    /// Returns a receiver of each changed task, in its state after the change.
    pub fn changes(&self) -> broadcast::Receiver<Arc<Record>> {
        self.records.changes.subscribe()
    }

    /// Creates the work for a task that is not stored yet.
    pub fn start(&self, id: String) -> Arc<Running> {
        Running::new(id, &self.records)
    }

    /// Returns the task, if it belongs to this owner.
    pub async fn get(&self, id: &str, owner: &Owner) -> Result<Option<Record>, StoreError> {
        let owner = owner.key();
        Ok(self.records.store.get(id).await?.filter(|record| record.owner == owner))
    }

    /// Stores a new task and the work that runs for it; it takes a place of the client that creates it. `session` is cancelled when the
    /// only session that may access the task ends. `record` builds the record from the task's number. `charge` is held as long as the task
    /// is stored.
    pub async fn insert(
        &self,
        running: &Arc<Running>,
        session: Option<CancellationToken>,
        record: impl FnOnce(u64) -> Record,
        charge: Charge,
    ) -> Result<(), Unkept> {
        self.remove_evicted().await;
        let record = record(self.last_number.fetch_add(1, Ordering::Relaxed) + 1);
        let taken = self.kept.take(&running.id, record.party, session)?;
        // Removes tasks that gave way to the new one.
        self.remove_evicted().await;
        let expires = record.expires();
        self.records.store.insert(record).await?;
        self.kept.keep(taken, expires, charge);
        self.under_way.lock().insert(running.id.clone(), Arc::clone(running));
        Ok(())
    }

    /// Removes tasks from the store that have lost their place.
    async fn remove_evicted(&self) {
        for id in self.kept.to_remove() {
            if let Err(error) = self.records.store.remove(&id).await {
                // The store removes the task when it expires.
                tracing::warn!("a finished task cannot be removed, and stays in the store until it expires: {error}");
            }
            self.kept.removed(&id);
        }
    }

    /// Forgets the work of a task, after it has finished.
    pub fn forget(&self, running: &Running) {
        self.under_way.lock().remove(&running.id);
    }

    /// Waits for a place for one run of a task.
    pub async fn turn(&self, party: Party) -> Place {
        self.running.wait(party).await
    }

    pub async fn list(&self, owner: &Owner, after: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.records.store.list(&owner.key(), after, limit).await
    }

    pub fn under_way(&self, id: &str) -> Option<Arc<Running>> {
        self.under_way.lock().get(id).cloned()
    }

    /// Notifies listeners of a task that another replica has changed.
    pub async fn changed_elsewhere(&self, id: &str) {
        if self.records.changes.receiver_count() > 0
            && let Ok(Some(record)) = self.records.store.get(id).await
        {
            // This fails only if the last listener has just gone.
            self.records.changes.send(Arc::new(record)).ok();
        }
    }

    /// Cancels a task for its client, and stops its work if it runs here.
    pub async fn cancel(&self, id: &str) {
        let running = self.under_way(id);
        self.end(id, TaskStatus::Cancelled, Some("cancelled by the client"), None, None).await;
        if let Some(running) = running {
            running.cancelled.cancel();
        }
    }

    /// Finishes a task. `charge` is for its outcome, and held until the task expires.
    pub async fn end(
        &self,
        id: &str,
        status: TaskStatus,
        message: Option<&str>,
        outcome: Option<Result<Arc<str>, RpcError>>,
        charge: Option<Charge>,
    ) {
        self.records
            .change(id, |record| {
                record.task.status = status;
                record.task.message = message.map(ToOwned::to_owned);
                record.questions.clear();
                record.outcome.clone_from(&outcome);
            })
            .await;
        // After the record, because only a finished task gives way.
        self.kept.end(id, charge);
        if let Some(running) = self.under_way(id) {
            running.changed();
        }
    }
}
