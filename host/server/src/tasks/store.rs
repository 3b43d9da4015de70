//! Where tasks are kept. A trait, so that they can outlive a process or be shared by several; in memory by default.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use wharf_protocol::{
    RpcError,
    model::Question,
    task::{Detail, Task},
};

use crate::base::{ledger::Charge, principal::Owner};

/// A task as it is kept.
#[derive(Debug, Clone)]
pub struct Record {
    /// Grows with each task; the order of lists.
    pub number: u64,
    pub task: Task,
    /// Whose it is: nobody else learns that it exists.
    pub owner: Owner,
    /// What the client is to answer now.
    pub questions: Vec<(String, Question)>,
    /// The JSON of the result, once there is one.
    pub outcome: Option<Result<Arc<str>, RpcError>>,
    /// What is paid for the record, and then for its outcome.
    pub charges: Vec<Arc<Charge>>,
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

/// There is no room.
#[derive(Debug)]
pub struct Full;

/// Every call is short; none waits for another process longer than a client would.
pub trait TaskStore: Send + Sync {
    /// Keeps a new task. Once this returns, `get` finds it.
    fn insert(&self, record: Record) -> Result<(), Full>;
    /// A task that has not expired.
    fn get(&self, id: &str) -> Option<Record>;
    /// Changes a task, all or nothing; false if there is none.
    fn update(&self, id: &str, change: &mut dyn FnMut(&mut Record)) -> bool;
    /// The tasks of an owner whose number is larger, in order, at most `limit`.
    fn list(&self, owner: &Owner, after: u64, limit: usize) -> Vec<Record>;
    fn remove(&self, id: &str);
}

/// Keeps tasks for as long as the process lives.
pub struct Memory {
    most: usize,
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

impl Memory {
    /// `most`: how many tasks there may be.
    pub fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }
}

impl TaskStore for Memory {
    fn insert(&self, record: Record) -> Result<(), Full> {
        let mut kept = self.kept.lock();
        if kept.records.len() >= self.most {
            kept.remove_expired();
        }
        if kept.records.len() >= self.most {
            return Err(Full);
        }
        kept.records.insert(record.task.id.clone(), record);
        Ok(())
    }

    fn get(&self, id: &str) -> Option<Record> {
        self.kept.lock().records.get(id).filter(|record| record.expires() > SystemTime::now()).cloned()
    }

    fn update(&self, id: &str, change: &mut dyn FnMut(&mut Record)) -> bool {
        let mut kept = self.kept.lock();
        let Some(record) = kept.records.get_mut(id) else { return false };
        change(record);
        true
    }

    fn list(&self, owner: &Owner, after: u64, limit: usize) -> Vec<Record> {
        let mut kept = self.kept.lock();
        kept.remove_expired();
        let own = kept.records.values().filter(|record| record.owner == *owner && record.number > after);
        let mut own: Vec<Record> = own.cloned().collect();
        own.sort_by_key(|record| record.number);
        own.truncate(limit);
        own
    }

    fn remove(&self, id: &str) {
        self.kept.lock().remove(id);
    }
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
        Record { number, task, owner: of(owner), questions: Vec::new(), outcome: None, charges: Vec::new() }
    }

    #[test]
    fn full_until_something_expires() {
        let store = Memory::new(2);
        store.insert(record(1, "a", 60_000)).unwrap();
        store.insert(record(2, "a", 0)).unwrap();
        assert!(store.get("t1").is_some());
        assert!(store.get("t2").is_none(), "it has expired");
        store.insert(record(3, "a", 60_000)).unwrap();
        assert!(store.insert(record(4, "a", 60_000)).is_err());
        store.remove("t1");
        store.insert(record(4, "a", 60_000)).unwrap();
    }

    #[test]
    fn lists_are_of_one_owner_and_in_order() {
        let store = Memory::new(10);
        for (number, owner) in [(3, "a"), (1, "a"), (2, "b"), (10, "a")] {
            store.insert(record(number, owner, 60_000)).unwrap();
        }
        let numbers = |after, limit| -> Vec<u64> {
            store.list(&of("a"), after, limit).iter().map(|record| record.number).collect()
        };
        assert_eq!(numbers(0, 10), [1, 3, 10]);
        assert_eq!(numbers(1, 1), [3]);
        assert_eq!(numbers(10, 10), [0; 0]);
    }
}
