//! Instances that are kept between the calls of one client, for plugins whose operator chose so.
//!
//! A kept instance belongs to one loaded plugin, to one client, and to exactly what the client's calls in it could reach; none
//! of the three ever changes. The number of kept instances, their memory and their idle time are limited. To make room, the oldest
//! instance of the client that keeps the most memory is dropped, so that a client with many instances costs no other one its own. They
//! are dropped outside the lock, because dropping an instance takes a while.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::{places::Party, scope::Reach};

/// To whom an instance belongs, and what it can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// A number that no other plugin has or had.
    pub(crate) plugin: u64,
    pub(crate) client: Arc<str>,
    pub(crate) reach: Reach,
}

/// How much is kept, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
    pub(crate) idle: Duration,
}

struct Kept<T> {
    key: Key,
    /// Whose part of the memory it takes.
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

    /// Takes the instance that was used last under this key. Instances of the same plugin and client that can reach something else
    /// are dropped, so that access that was taken away is not kept for later.
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

    /// Keeps an instance that holds `bytes` of memory. If there is no room for it, the oldest ones are dropped of the client that keeps
    /// the most.
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

    /// Drops what calls of this party have left, because its own calls need the memory.
    pub(crate) fn clear_of(&self, party: Party) {
        let mut kept = self.kept.lock();
        let gone = split(&mut kept, |one| one.party == party);
        drop(kept);
        drop(gone);
    }

    /// How many instances of a plugin are kept.
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

/// Where the oldest instance is of the client that keeps the most memory.
fn largest<T>(kept: &VecDeque<Kept<T>>) -> Option<usize> {
    let mut sums: HashMap<Party, usize> = HashMap::new();
    for one in kept {
        *sums.entry(one.party).or_default() += one.bytes;
    }
    let most = sums.values().max()?;
    kept.iter().position(|one| sums.get(&one.party) == Some(most))
}

/// Takes out the instances that fit and leaves the rest in order. Mostly none fits, and then nothing is moved.
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
        assert_eq!(warm.take(&key(1, "a", "x")), None, "taken is taken");
        warm.put((key(1, "a", "x"), party("a")), 10, 7);
        warm.put((key(1, "b", "x"), party("b")), 10, 8);
        assert_eq!(warm.take(&key(1, "a", "y")), None);
        assert_eq!(warm.take(&key(1, "a", "x")), None, "access that has changed is not kept for later");
        assert_eq!(warm.take(&key(1, "b", "x")), Some(8), "others keep theirs");
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
        assert!(warm.kept.lock().is_empty(), "what is too large by itself is not kept");
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
        let patient = warm(Duration::MAX);
        patient.put((key(1, "a", "x"), party("a")), 10, 1);
        patient.retire();
        assert_eq!(patient.take(&key(1, "a", "x")), Some(1));
        let hasty = warm(Duration::ZERO);
        hasty.put((key(1, "a", "x"), party("a")), 10, 1);
        hasty.retire();
        assert_eq!(hasty.take(&key(1, "a", "x")), None);
        patient.put((key(1, "a", "x"), party("a")), 10, 1);
        patient.put((key(2, "a", "x"), party("a")), 10, 2);
        assert_eq!((patient.count(1), patient.count(2), patient.count(3)), (1, 1, 0));
        patient.forget(1);
        assert_eq!((patient.take(&key(1, "a", "x")), patient.take(&key(2, "a", "x"))), (None, Some(2)));
        patient.put((key(2, "a", "x"), party("a")), 10, 2);
        patient.clear();
        assert_eq!(patient.take(&key(2, "a", "x")), None);
    }
}
