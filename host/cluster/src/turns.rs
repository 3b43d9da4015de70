//! Reads a stored value for one request at a time. Redis copies what it sends, so the answers to many requests for one value would take many
//! times the memory that is charged for it.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

type Turn = tokio::sync::Mutex<()>;

/// Whose turn it is, for each value that is being read.
#[derive(Default)]
pub struct Turns(Mutex<HashMap<String, Weak<Turn>>>);

impl Turns {
    /// Waits until nobody else reads this value. What this returns ends the turn when it is dropped.
    pub async fn take(&self, key: &str) -> OwnedMutexGuard<()> {
        let turn = self.of(key);
        turn.lock_owned().await
    }

    fn of(&self, key: &str) -> Arc<Turn> {
        let mut all = self.0.lock();
        if let Some(turn) = all.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        // Before the table grows, what nobody waits for goes.
        if all.len() == all.capacity() {
            all.retain(|_, turn| turn.strong_count() > 0);
        }
        let turn = Arc::default();
        all.insert(key.to_owned(), Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, task::Poll};

    use futures_util::poll;

    use super::*;

    #[tokio::test]
    async fn a_value_is_read_by_one_at_a_time() {
        let turns = Turns::default();
        let first = turns.take("a").await;
        let mut second = pin!(turns.take("a"));
        assert!(poll!(second.as_mut()).is_pending());
        turns.take("b").await;
        drop(first);
        assert!(matches!(poll!(second.as_mut()), Poll::Ready(_)));
    }

    #[tokio::test]
    async fn what_nobody_reads_is_forgotten() {
        let turns = Turns::default();
        let held = turns.take("held").await;
        for number in 0..10_000 {
            turns.take(&number.to_string()).await;
        }
        assert!(turns.0.lock().len() < 100);
        assert!(poll!(pin!(turns.take("held"))).is_pending());
        drop(held);
    }
}
