//! Where tasks are kept: in memory by default. It is a trait so that a store can outlive a process or be shared by several.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use wharf_protocol::{
    RpcError,
    model::Question,
    task::{Detail, Task},
};

use crate::base::principal::Owner;

/// What a task is for. By this it is judged whether its owner may still have what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purpose {
    /// The id of the plugin.
    pub plugin: String,
    /// As clients know it.
    pub tool: String,
    /// The number of the access that the plugin had when the task began.
    pub access: u64,
    pub reach: Reach,
}

/// In which folders the roots of a task may lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It has no roots.
    NoRoots,
    Everywhere,
    /// In these, each with what may be done there.
    Within(Vec<String>),
}

/// A task as it is kept.
#[derive(Debug, Clone)]
pub struct Record {
    /// Grows with each task. Lists are in this order.
    pub number: u64,
    pub task: Task,
    /// Whose task it is. Nobody else learns that it exists.
    pub owner: Owner,
    pub purpose: Purpose,
    /// The questions that the client has to answer now.
    pub questions: Vec<(String, Question)>,
    /// The JSON of the result, or the error, once the task has one.
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

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be reached, or cannot read what it has kept.
    #[error("tasks are not available now: {0}")]
    Unavailable(String),
}

impl From<StoreError> for RpcError {
    fn from(error: StoreError) -> Self {
        Self::internal(error.to_string())
    }
}

/// The future result of asking a store.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Keeps the records of tasks, which are plain data; what runs for a task is kept in [`Tasks`](super::Tasks), and so are the places of
/// tasks: a store need not count them. Every method must end before a client would give up.
pub trait TaskStore: Send + Sync {
    /// Keeps a new task. When this has returned, `get` finds it.
    fn insert(&self, record: Record) -> Stored<'_, ()>;
    /// A task that has not expired.
    fn get<'a>(&'a self, id: &'a str) -> Stored<'a, Option<Record>>;
    /// Changes a task atomically and returns it as it is then. None: there is no such task, or there was nothing to change.
    /// `change` may be called more than once, each time with the task as it is.
    fn update<'a>(&'a self, id: &'a str, change: Change<'a>) -> Stored<'a, Option<Record>>;
    /// The tasks of an owner with larger numbers than `after`, in order, at most `limit` of them.
    fn list<'a>(&'a self, owner: &'a Owner, after: u64, limit: usize) -> Stored<'a, Vec<Record>>;
    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, ()>;
}

/// Changes a record. False: there was nothing to change.
pub type Change<'a> = &'a (dyn Fn(&mut Record) -> bool + Send + Sync);

/// Keeps tasks for as long as the process lives.
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

    fn list<'a>(&'a self, owner: &'a Owner, after: u64, limit: usize) -> Stored<'a, Vec<Record>> {
        let mut kept = self.kept.lock();
        kept.remove_expired();
        let own = kept.records.values().filter(|record| record.owner == *owner && record.number > after);
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

/// A future with an outcome that is known at once.
fn done<'a, T: Send + 'a>(outcome: Result<T, StoreError>) -> Stored<'a, T> {
    Box::pin(std::future::ready(outcome))
}

#[cfg(test)]
mod tests {
    use wharf_protocol::task::TaskStatus;

    use super::*;

    fn of(owner: &str) -> Owner {
        Owner::Session(owner.into())
    }

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
        Record { number, task, owner: of(owner), purpose, questions: Vec::new(), outcome: None }
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
            let listed = store.list(&of("a"), after, limit).await.unwrap();
            assert_eq!(listed.iter().map(|record| record.number).collect::<Vec<_>>(), expected);
        }
    }
}
