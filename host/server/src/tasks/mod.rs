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
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use wharf_protocol::{RpcError, task::TaskStatus};
use wharf_sandbox::places::{Full, Place, Places, Rule};

use crate::base::{ledger::Charge, party::Party, principal::Owner};

mod kept;
mod running;
mod store;

pub use kept::KEPT;
use kept::Kept;
pub use running::Running;
pub use store::{Memory, Purpose, Reach, Record, StoreError, TaskStore};

/// How many changes a slow listener may be behind before it misses some.
const CHANGES_KEPT: usize = 256;

/// Tasks that run. All tasks together get only a part of what can run at once, so that there is room for calls that somebody waits for.
pub static RUNNING: Rule = Rule {
    of: "tasks that run",
    number: "half of `total_concurrency` in [limits]",
    taker: "client",
    until: "the plugin has answered or asked",
    asking: "given back, and taken again after the answer",
    gone: "given back: the tasks of a session end with it, all others with their time to live",
    gives_way: "nothing; a task waits for its turn within its time to live, and the client that runs the fewest tasks is next",
    old: Duration::MAX,
};

/// Why a task is not kept.
#[derive(Debug, thiserror::Error)]
pub enum Unkept {
    #[error("the task is not begun: {0}; wait until some tasks have expired")]
    Full(#[from] Full),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Unkept> for RpcError {
    fn from(unkept: Unkept) -> Self {
        Self::internal(unkept.to_string())
    }
}

/// All tasks of the process.
pub struct Tasks {
    store: Box<dyn TaskStore>,
    kept: Kept,
    under_way: Mutex<HashMap<String, Arc<Running>>>,
    /// Sends each changed task, as it is after the change.
    pub changes: broadcast::Sender<Arc<Record>>,
    running: Arc<Places>,
    last_number: AtomicU64,
}

impl Tasks {
    /// `kept`: how many are kept at once. `running`: how many may run at once.
    pub fn new(store: Box<dyn TaskStore>, kept: usize, running: usize) -> Arc<Self> {
        Arc::new(Self {
            store,
            kept: Kept::new(kept),
            under_way: Mutex::default(),
            changes: broadcast::channel(CHANGES_KEPT).0,
            running: Places::new(&RUNNING, running.max(1)),
            last_number: AtomicU64::new(0),
        })
    }

    /// The task, if it belongs to this owner.
    pub async fn get(&self, id: &str, owner: &Owner) -> Result<Option<Record>, StoreError> {
        Ok(self.store.get(id).await?.filter(|record| record.owner == *owner))
    }

    /// Keeps a new task and what runs for it, in a place of the client that begins it. `session`: cancelled when the session is over that
    /// alone may ask for the task. `record`: makes the record with the number that it is given. `charge`: held for as long as the task is
    /// kept.
    pub async fn insert(
        &self,
        running: &Arc<Running>,
        (party, session): (Party, Option<CancellationToken>),
        record: impl FnOnce(u64) -> Record,
        charge: Charge,
    ) -> Result<(), Unkept> {
        self.remove_what_is_over().await;
        let taken = self.kept.take(&running.id, party, session)?;
        // What gave way for it.
        self.remove_what_is_over().await;
        let record = record(self.last_number.fetch_add(1, Ordering::Relaxed) + 1);
        let expires = record.expires();
        self.store.insert(record).await?;
        self.kept.keep(taken, expires, charge);
        self.under_way.lock().insert(running.id.clone(), Arc::clone(running));
        Ok(())
    }

    /// Removes from the store what has no place any more.
    async fn remove_what_is_over(&self) {
        for id in self.kept.to_remove() {
            if let Err(error) = self.store.remove(&id).await {
                // The store removes it when it has expired.
                tracing::warn!("a task that is over stays in the store until it expires: {error}");
            }
            self.kept.removed(&id);
        }
    }

    /// Removes what ran for a task, when that has ended.
    pub fn forget(&self, running: &Running) {
        self.under_way.lock().remove(&running.id);
    }

    /// Waits for a place to run, for one run of one task.
    pub async fn turn(&self, party: Party) -> Place {
        self.running.wait(party).await
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
        self.change(id, |record| {
            record.task.status = status;
            record.task.message = message.map(ToOwned::to_owned);
            record.questions.clear();
            record.outcome.clone_from(&outcome);
        })
        .await;
        // Not before the record says so: what gives way is over.
        self.kept.end(id, charge);
        if let Some(running) = self.under_way(id) {
            running.changed();
        }
    }
}
