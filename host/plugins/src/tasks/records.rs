//! The records of tasks in their store, and their changes.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::sync::broadcast;

use wharf_protocol::{RpcError, task::TaskStatus};

use super::store::{Record, StoreError, TaskStore};

/// The number of changes that a listener may lag behind before it misses some.
const MAX_BUFFERED_CHANGES: usize = 256;

/// How often, and in which intervals, a change is tried again.
const MAX_RETRIES: usize = 20;
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// The store of all records.
pub struct Records {
    pub store: Box<dyn TaskStore>,
    /// Broadcasts each changed task, in its state after the change.
    pub changes: broadcast::Sender<Arc<Record>>,
}

impl Records {
    pub fn new(store: Box<dyn TaskStore>) -> Self {
        Self { store, changes: broadcast::channel(MAX_BUFFERED_CHANGES).0 }
    }

    /// Changes a task that has not finished, and notifies listeners. While the store does not answer, this tries again for a while, and then
    /// logs that, so that the task itself continues. A task for whose change the store has no room is marked as failed.
    pub async fn change(&self, id: &str, change: impl Fn(&mut Record) + Send + Sync) {
        let change = |record: &mut Record| going_on(record, &change);
        let mut updated = self.store.update(id, &change).await;
        for _ in 0..MAX_RETRIES {
            updated = match updated {
                Ok(_) => break,
                Err(StoreError::NoRoom(why)) => {
                    let failed = |record: &mut Record| fail(record, &why);
                    self.store.update(id, &failed).await
                }
                Err(StoreError::Unavailable(_)) => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                    self.store.update(id, &change).await
                }
            };
        }
        match updated {
            // Sending fails only if the last listener has just gone, which is harmless.
            Ok(Some(record)) if self.changes.receiver_count() > 0 => drop(self.changes.send(Arc::new(record))),
            Ok(_) => {}
            Err(error) => tracing::error!("a change of a task cannot be stored: {error}"),
        }
    }
}

/// Changes a task, if it has not ended. Returns whether it has not.
fn going_on(record: &mut Record, change: impl FnOnce(&mut Record)) -> bool {
    let goes_on = !record.task.status.is_terminal();
    if goes_on {
        change(record);
        record.task.updated = SystemTime::now();
    }
    goes_on
}

/// Marks a task as failed, if it has not ended. Returns whether that changed it.
pub fn fail(record: &mut Record, why: &str) -> bool {
    going_on(record, |record| {
        record.task.status = TaskStatus::Failed;
        record.task.message = Some(why.to_owned());
        record.questions.clear();
        record.outcome = Some(Err(RpcError::internal(why)));
    })
}
