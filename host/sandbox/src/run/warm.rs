//! Retains idle instances between the calls of one client, for plugins for which the operator enabled it.
//!
//! A retained instance belongs to one loaded plugin, to one client, and to one reach: exactly what the client's calls in it could access.
//! None of the three ever changes. The number of retained instances, their memory and their idle time are limited. To make room, the oldest
//! instance of the client whose instances hold the most memory is dropped, so that a client with many instances does not displace those of
//! others. Instances are dropped outside the lock, because that takes a while.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::wasi::reach::Reach;
use wharf_base::places::Party;

/// The owner of an instance, and what the instance can access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// A number that no other plugin has or had.
    pub(crate) plugin: u64,
    pub(crate) client: Arc<str>,
    pub(crate) reach: Reach,
}

/// The limits on retained instances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
    pub(crate) idle: Duration,
}

struct Kept<T> {
    key: Key,
    /// The party to which the instance's memory is counted.
    party: Party,
    since: Instant,
    bytes: usize,
    instance: T,
}

/// Idle instances, beginning with the one that has been idle for the longest time.
pub(crate) struct Warm<T> {
    bounds: Bounds,
    kept: Mutex<VecDeque<Kept<T>>>,
}

impl<T> Warm<T> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { bounds, kept: Mutex::default() }
    }

    /// Takes the instance that was used last under this key. Instances of the same plugin and client with another reach are dropped, so
    /// that revoked access does not live on in them.
    pub(crate) fn take(&self, key: &Key) -> Option<T> {
        let mut kept = self.kept.lock();
        let found = kept.iter().rposition(|one| one.key == *key).and_then(|at| kept.remove(at));
        let Key { plugin, client, reach } = key;
        let gone =
            split(&mut kept, |Kept { key: of, .. }| of.plugin == *plugin && of.client == *client && of.reach != *reach);
        drop(kept);
        drop(gone);
        found.map(|one| one.instance)
    }

    /// Retains an instance that holds `bytes` of memory. If there is no room for it, the oldest instances of the client that holds the most
    /// memory are dropped.
    pub(crate) fn put(&self, (key, party): (Key, Party), bytes: usize, instance: T) {
        let mut gone = Vec::new();
        let mut kept = self.kept.lock();
        kept.push_back(Kept { key, party, since: Instant::now(), bytes, instance });
        let mut sum: usize = kept.iter().map(|one| one.bytes).sum();
        while (kept.len() > self.bounds.count || sum > self.bounds.bytes)
            && let Some(oldest) = largest(&kept).and_then(|at| kept.remove(at))
        {
            sum -= oldest.bytes;
            gone.push(oldest);
        }
        drop(kept);
        drop(gone);
    }

    /// Drops the instances that have been idle for too long.
    pub(crate) fn retire(&self) {
        let mut kept = self.kept.lock();
        let gone = split(&mut kept, |one| one.since.elapsed() >= self.bounds.idle);
        drop(kept);
        drop(gone);
    }

    /// Drops everything, because running calls need the memory.
    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut *self.kept.lock());
        drop(gone);
    }

    /// Drops the instances of this party, because its own calls need the memory.
    pub(crate) fn clear_of(&self, party: Party) {
        let mut kept = self.kept.lock();
        let gone = split(&mut kept, |one| one.party == party);
        drop(kept);
        drop(gone);
    }

    /// Returns the number of retained instances of a plugin.
    pub(crate) fn count(&self, plugin: u64) -> usize {
        self.kept.lock().iter().filter(|one| one.key.plugin == plugin).count()
    }

    /// Drops all instances of a plugin.
    pub(crate) fn forget(&self, plugin: u64) {
        let mut kept = self.kept.lock();
        let gone = split(&mut kept, |one| one.key.plugin == plugin);
        drop(kept);
        drop(gone);
    }
}

/// Returns the index of the oldest instance of the client that holds the most memory.
fn largest<T>(kept: &VecDeque<Kept<T>>) -> Option<usize> {
    let mut sums: HashMap<Party, usize> = HashMap::new();
    for one in kept {
        *sums.entry(one.party).or_default() += one.bytes;
    }
    let most = sums.values().max()?;
    kept.iter().position(|one| sums.get(&one.party) == Some(most))
}

/// Removes the instances for which `fits` is true, and leaves the rest in order. Usually no instance fits, and then nothing is moved.
fn split<T>(kept: &mut VecDeque<Kept<T>>, fits: impl Fn(&Kept<T>) -> bool) -> Vec<Kept<T>> {
    if !kept.iter().any(&fits) {
        return Vec::new();
    }
    let (gone, stays): (Vec<_>, Vec<_>) = std::mem::take(kept).into_iter().partition(fits);
    *kept = stays.into();
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(plugin: u64, client: &str, variable: &str) -> Key {
        let environment = vec![("V".into(), variable.into())];
        Key { plugin, client: client.into(), reach: Reach { directories: Vec::new(), environment, network: None } }
    }

    fn party(client: &str) -> Party {
        Party::of(client.bytes().map(u64::from).sum())
    }

    fn warm(idle: Duration) -> Warm<u32> {
        Warm::new(Bounds { count: 3, bytes: 100, idle })
    }

    #[test]
    fn an_instance_is_of_one_plugin_one_client_and_one_reach() {
        let warm = warm(Duration::MAX);
        warm.put((key(1, "a", "x"), party("a")), 10, 7);
        assert_eq!(warm.take(&key(2, "a", "x")), None);
        assert_eq!(warm.take(&key(1, "b", "x")), None);
        assert_eq!(warm.take(&key(1, "a", "x")), Some(7));
        assert_eq!(warm.take(&key(1, "a", "x")), None, "an instance is taken only once");
        warm.put((key(1, "a", "x"), party("a")), 10, 7);
        warm.put((key(1, "b", "x"), party("b")), 10, 8);
        assert_eq!(warm.take(&key(1, "a", "y")), None);
        assert_eq!(warm.take(&key(1, "a", "x")), None, "an instance with another reach is dropped");
        assert_eq!(warm.take(&key(1, "b", "x")), Some(8), "instances of other clients stay");
    }

    #[test]
    fn the_oldest_make_room() {
        let warm = warm(Duration::MAX);
        for instance in 0..5 {
            warm.put((key(1, "a", "x"), party("a")), 10, instance);
        }
        assert_eq!(warm.kept.lock().iter().map(|one| one.instance).collect::<Vec<_>>(), [2, 3, 4]);
        warm.put((key(1, "a", "x"), party("a")), 85, 5);
        assert_eq!(warm.kept.lock().iter().map(|one| one.instance).collect::<Vec<_>>(), [4, 5]);
        warm.put((key(1, "a", "x"), party("a")), 101, 6);
        assert!(warm.kept.lock().is_empty(), "an instance that exceeds the limit by itself is not retained");
    }

    #[test]
    fn a_client_with_many_instances_costs_no_other_one_its_own() {
        let warm = warm(Duration::MAX);
        warm.put((key(1, "b", "x"), party("b")), 10, 1);
        for instance in 2..9 {
            warm.put((key(1, "a", "x"), party("a")), 10, instance);
        }
        assert_eq!(warm.take(&key(1, "b", "x")), Some(1));
    }

    #[test]
    fn nothing_is_kept_for_ever() {
        let unlimited = warm(Duration::MAX);
        unlimited.put((key(1, "a", "x"), party("a")), 10, 1);
        unlimited.retire();
        assert_eq!(unlimited.take(&key(1, "a", "x")), Some(1));
        let hasty = warm(Duration::ZERO);
        hasty.put((key(1, "a", "x"), party("a")), 10, 1);
        hasty.retire();
        assert_eq!(hasty.take(&key(1, "a", "x")), None);
        unlimited.put((key(1, "a", "x"), party("a")), 10, 1);
        unlimited.put((key(2, "a", "x"), party("a")), 10, 2);
        assert_eq!((unlimited.count(1), unlimited.count(2), unlimited.count(3)), (1, 1, 0));
        unlimited.forget(1);
        assert_eq!((unlimited.take(&key(1, "a", "x")), unlimited.take(&key(2, "a", "x"))), (None, Some(2)));
        unlimited.put((key(2, "a", "x"), party("a")), 10, 2);
        unlimited.clear();
        assert_eq!(unlimited.take(&key(2, "a", "x")), None);
    }
}
