//! The storage of tasks, in memory by default. It is a trait so that a store can outlive a process or be shared by several.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use wharf_base::party::Party;
use wharf_protocol::{
    RpcError,
    model::Question,
    task::{Detail, Task},
};

/// What a task was created for. It decides whether the owner may still access the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purpose {
    /// The id of the plugin.
    pub plugin: String,
    /// The tool's name as clients know it.
    pub tool: String,
    /// The number that identified the plugin's access when the task began.
    pub access: u64,
    pub reach: Reach,
}

/// The folders in which the roots of a task may lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// The task has no roots.
    NoRoots,
    Everywhere,
    /// These folders, each with its access.
    Within(Vec<String>),
}

/// A task as it is stored.
#[derive(Debug, Clone)]
pub struct Record {
    /// Increases with each task. Lists are in this order.
    pub number: u64,
    pub task: Task,
    /// The [key](wharf_base::principal::Owner::key) of the task's owner. Nobody else learns that it exists.
    pub owner: Arc<str>,
    /// The client that began the task, which is charged for it and for the news of it.
    pub party: Party,
    /// The address of the replica that runs the task, if there are several.
    pub replica: Option<Arc<str>>,
    pub purpose: Purpose,
    /// The questions that the client has to answer now.
    pub questions: Vec<(String, Question)>,
    /// The JSON of the result, or the error, once the task has finished.
    pub outcome: Option<Result<Arc<str>, RpcError>>,
}

impl Record {
    pub fn detail(&self) -> Detail<'_> {
        match &self.outcome {
            Some(Ok(result)) => Detail::Result(result),
            Some(Err(error)) => Detail::Error(error),
            None if self.questions.is_empty() => Detail::None,
            None => Detail::Questions(&self.questions),
        }
    }

    pub fn expires(&self) -> SystemTime {
        self.task.created + Duration::from_millis(self.task.ttl_ms)
    }
}

/// The reason why an operation of a store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be reached, or cannot read its data.
    #[error("tasks are not available now: {0}")]
    Unavailable(String),
    /// The client may not store as much.
    #[error("the task cannot be stored: {0}")]
    NoRoom(String),
}

impl From<StoreError> for RpcError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::unavailable(error.to_string()),
            // Trying again soon would not help.
            StoreError::NoRoom(_) => Self::internal(error.to_string()),
        }
    }
}

/// The future of a store operation.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Stores the records of tasks, which are plain data. The running work of tasks and their limits are managed by [`Tasks`](super::Tasks), so
/// a store need not count tasks. Every method must finish before a client would time out.
pub trait TaskStore: Send + Sync {
    /// Stores a new task. When this has returned, `get` finds it.
    fn insert(&self, record: Record) -> Stored<'_, ()>;
    /// Returns a task that has not expired.
    fn get<'a>(&'a self, id: &'a str) -> Stored<'a, Option<Record>>;
    /// Changes a task atomically and returns its new state, or `None` if there is no such task or nothing was changed. `change` may be
    /// called more than once, each time with the current state.
    fn update<'a>(&'a self, id: &'a str, change: Change<'a>) -> Stored<'a, Option<Record>>;
    /// Returns the tasks of an owner with larger numbers than `after`, in order, at most `limit` of them.
    fn list<'a>(&'a self, owner: &'a str, after: u64, limit: usize) -> Stored<'a, Vec<Record>>;
    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, ()>;
}

/// Changes a record. Returns whether anything was changed.
pub type Change<'a> = &'a (dyn Fn(&mut Record) -> bool + Send + Sync);

/// Stores tasks in memory, for as long as the process lives.
#[derive(Default)]
pub struct Memory {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    records: BTreeMap<String, Record>,
}

impl Kept {
    fn remove(&mut self, id: &str) {
        self.records.remove(id);
    }

    fn remove_expired(&mut self) {
        let now = SystemTime::now();
        let expired: Vec<String> =
            self.records.values().filter(|record| record.expires() <= now).map(|one| one.task.id.clone()).collect();
        for id in expired {
            self.remove(&id);
        }
    }
}

impl TaskStore for Memory {
    fn insert(&self, record: Record) -> Stored<'_, ()> {
        self.kept.lock().records.insert(record.task.id.clone(), record);
        done(Ok(()))
    }

    fn get<'a>(&'a self, id: &'a str) -> Stored<'a, Option<Record>> {
        done(Ok(self.kept.lock().records.get(id).filter(|record| record.expires() > SystemTime::now()).cloned()))
    }

    fn update<'a>(&'a self, id: &'a str, change: Change<'a>) -> Stored<'a, Option<Record>> {
        let mut kept = self.kept.lock();
        done(Ok(kept.records.get_mut(id).and_then(|record| change(record).then(|| record.clone()))))
    }

    fn list<'a>(&'a self, owner: &'a str, after: u64, limit: usize) -> Stored<'a, Vec<Record>> {
        let mut kept = self.kept.lock();
        kept.remove_expired();
        let own = kept.records.values().filter(|record| *record.owner == *owner && record.number > after);
        let mut own: Vec<Record> = own.cloned().collect();
        own.sort_by_key(|record| record.number);
        own.truncate(limit);
        done(Ok(own))
    }

    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, ()> {
        self.kept.lock().remove(id);
        done(Ok(()))
    }
}

/// Returns a future that is ready at once.
fn done<'a, T: Send + 'a>(outcome: Result<T, StoreError>) -> Stored<'a, T> {
    Box::pin(std::future::ready(outcome))
}

#[cfg(test)]
mod tests {
    use wharf_protocol::task::TaskStatus;

    use super::*;

    fn record(number: u64, owner: &str, ttl_ms: u64) -> Record {
        let now = SystemTime::now();
        let task = Task {
            id: format!("t{number}"),
            status: TaskStatus::Working,
            message: None,
            created: now,
            updated: now,
            ttl_ms,
            poll_ms: 1000,
        };
        let purpose = Purpose { plugin: "p".into(), tool: "t".into(), access: 0, reach: Reach::NoRoots };
        let (owner, party, questions) = (owner.into(), Party::of(1), Vec::new());
        Record { number, task, owner, party, replica: None, purpose, questions, outcome: None }
    }

    #[tokio::test]
    async fn what_has_expired_is_not_there() {
        let store = Memory::default();
        store.insert(record(1, "a", 60_000)).await.unwrap();
        store.insert(record(2, "a", 0)).await.unwrap();
        assert!(store.get("t1").await.unwrap().is_some());
        assert!(store.get("t2").await.unwrap().is_none(), "it has expired");
        store.remove("t1").await.unwrap();
        assert!(store.get("t1").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn lists_are_of_one_owner_and_in_order() {
        let store = Memory::default();
        for (number, owner) in [(3, "a"), (1, "a"), (2, "b"), (10, "a")] {
            store.insert(record(number, owner, 60_000)).await.unwrap();
        }
        for (after, limit, expected) in [(0, 10, &[1, 3, 10][..]), (1, 1, &[3]), (10, 10, &[])] {
            let listed = store.list("a", after, limit).await.unwrap();
            assert_eq!(listed.iter().map(|record| record.number).collect::<Vec<_>>(), expected);
        }
    }
}
