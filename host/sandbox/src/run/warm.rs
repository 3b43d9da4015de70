//! Retains idle instances between the calls of one client, for plugins that keep state in memory or for which the operator enabled it.
//!
//! A retained instance belongs to one loaded plugin, to one client, and to one reach: exactly what the client's calls in it could access.
//! None of the three ever changes. The number of retained instances and their memory are limited, and their idle time, unless they last as
//! long as a session. To make room, the oldest instance of the client whose instances hold the most memory is dropped, so that a client with
//! many instances does not displace those of others; first one without state that the client would miss. Instances are dropped outside the
//! lock, because that takes a while.

use std::{
    any::Any,
    collections::{HashMap, VecDeque},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::{
    run::stays::{Lost, Stay},
    wasi::reach::Reach,
};
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

/// The owner of a retained instance.
pub(crate) struct Owner {
    pub(crate) key: Key,
    /// The party to which the instance's memory is counted.
    pub(crate) party: Party,
    /// The client's stay, if the client would miss what the instance has in memory.
    pub(crate) stay: Option<Arc<Stay>>,
    /// What the instance is retained for. `None`: it is dropped when it has been idle for too long.
    pub(crate) lasts: Option<Weak<dyn Any + Send + Sync>>,
}

struct Kept<T> {
    owner: Owner,
    since: Instant,
    bytes: usize,
    instance: T,
}

impl<T> Kept<T> {
    /// Whether it was idle for too long, or what it lasted for is gone.
    fn is_over(&self, idle: Duration) -> bool {
        self.owner.lasts.as_ref().map_or(self.since.elapsed() >= idle, |lasts| lasts.strong_count() == 0)
    }
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
        let found = kept.iter().rposition(|one| one.owner.key == *key).and_then(|at| kept.remove(at));
        let Key { plugin, client, reach } = key;
        let is_other = |of: &Key| of.plugin == *plugin && of.client == *client && of.reach != *reach;
        let gone = split(&mut kept, |one| is_other(&one.owner.key));
        drop(kept);
        lose(gone, Lost::Changed);
        found.map(|one| one.instance)
    }

    /// Retains an instance that holds `bytes` of memory. If there is no room for it, other instances are dropped, or this one.
    pub(crate) fn put(&self, owner: Owner, bytes: usize, instance: T) {
        let mut gone = Vec::new();
        let mut kept = self.kept.lock();
        kept.push_back(Kept { owner, since: Instant::now(), bytes, instance });
        let mut sum: usize = kept.iter().map(|one| one.bytes).sum();
        while (kept.len() > self.bounds.count || sum > self.bounds.bytes)
            && let Some(first) = first_to_go(&kept, None).and_then(|at| kept.remove(at))
        {
            sum -= first.bytes;
            gone.push(first);
        }
        drop(kept);
        lose(gone, Lost::Room);
    }

    /// Drops the instances that have been idle for too long, and those whose sessions have ended.
    pub(crate) fn retire(&self) {
        let mut kept = self.kept.lock();
        let gone = split(&mut kept, |one| one.is_over(self.bounds.idle));
        drop(kept);
        lose(gone, Lost::Idle);
    }

    /// Drops one instance, because a running call needs the memory. `party`: one of this party, because its share is used up. Returns
    /// whether there was one.
    pub(crate) fn make_room(&self, party: Option<Party>) -> bool {
        let mut kept = self.kept.lock();
        let gone = first_to_go(&kept, party).and_then(|at| kept.remove(at));
        drop(kept);
        let found = gone.is_some();
        lose(gone, Lost::Room);
        found
    }

    /// Returns the number of retained instances of a plugin.
    pub(crate) fn count(&self, plugin: u64) -> usize {
        self.kept.lock().iter().filter(|one| one.owner.key.plugin == plugin).count()
    }

    /// Drops all instances of a plugin.
    pub(crate) fn forget(&self, plugin: u64) {
        let mut kept = self.kept.lock();
        let gone = split(&mut kept, |one| one.owner.key.plugin == plugin);
        drop(kept);
        drop(gone);
    }
}

/// Drops instances, and notes why. What a session that has ended kept is not lost to anyone.
fn lose<T>(gone: impl IntoIterator<Item = Kept<T>>, why: Lost) {
    for Kept { owner, instance, .. } in gone {
        drop(instance);
        if let Some(stay) = owner.stay.filter(|_| owner.lasts.is_none_or(|lasts| lasts.strong_count() > 0)) {
            stay.lose(why);
        }
    }
}

/// Returns the index of the instance that is dropped first: the oldest one of the client that holds the most memory, or of `party`. Those
/// without state that the client would miss come first.
fn first_to_go<T>(kept: &VecDeque<Kept<T>>, party: Option<Party>) -> Option<usize> {
    let largest = || {
        let mut sums: HashMap<Party, usize> = HashMap::new();
        for one in kept {
            *sums.entry(one.owner.party).or_default() += one.bytes;
        }
        let most = sums.values().copied().max()?;
        kept.iter().map(|one| one.owner.party).find(|party| sums.get(party) == Some(&most))
    };
    let party = party.or_else(largest)?;
    let of_party = |one: &Kept<T>| one.owner.party == party;
    let stateless = kept.iter().position(|one| of_party(one) && one.owner.stay.is_none());
    stateless.or_else(|| kept.iter().position(of_party))
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
    use crate::run::stays::{Client, Staying, Stays};

    fn key(plugin: u64, client: &str, variable: &str) -> Key {
        let environment = vec![("V".into(), variable.into())];
        Key { plugin, client: client.into(), reach: Reach { directories: Vec::new(), environment, network: None } }
    }

    fn party(client: &str) -> Party {
        Party::of(client.bytes().map(u64::from).sum())
    }

    fn owner(key: Key, client: &str) -> Owner {
        Owner { key, party: party(client), stay: None, lasts: None }
    }

    fn warm(idle: Duration) -> Warm<u32> {
        Warm::new(Bounds { count: 3, bytes: 100, idle })
    }

    #[test]
    fn an_instance_is_of_one_plugin_one_client_and_one_reach() {
        let warm = warm(Duration::MAX);
        warm.put(owner(key(1, "a", "x"), "a"), 10, 7);
        assert_eq!(warm.take(&key(2, "a", "x")), None);
        assert_eq!(warm.take(&key(1, "b", "x")), None);
        assert_eq!(warm.take(&key(1, "a", "x")), Some(7));
        assert_eq!(warm.take(&key(1, "a", "x")), None, "an instance is taken only once");
        warm.put(owner(key(1, "a", "x"), "a"), 10, 7);
        warm.put(owner(key(1, "b", "x"), "b"), 10, 8);
        assert_eq!(warm.take(&key(1, "a", "y")), None);
        assert_eq!(warm.take(&key(1, "a", "x")), None, "an instance with another reach is dropped");
        assert_eq!(warm.take(&key(1, "b", "x")), Some(8), "instances of other clients stay");
    }

    #[test]
    fn the_oldest_make_room() {
        let warm = warm(Duration::MAX);
        for instance in 0..5 {
            warm.put(owner(key(1, "a", "x"), "a"), 10, instance);
        }
        assert_eq!(warm.kept.lock().iter().map(|one| one.instance).collect::<Vec<_>>(), [2, 3, 4]);
        warm.put(owner(key(1, "a", "x"), "a"), 85, 5);
        assert_eq!(warm.kept.lock().iter().map(|one| one.instance).collect::<Vec<_>>(), [4, 5]);
        warm.put(owner(key(1, "a", "x"), "a"), 101, 6);
        assert!(warm.kept.lock().is_empty(), "an instance that exceeds the limit by itself is not retained");
    }

    #[test]
    fn a_client_with_many_instances_costs_no_other_one_its_own() {
        let warm = warm(Duration::MAX);
        warm.put(owner(key(1, "b", "x"), "b"), 10, 1);
        for instance in 2..9 {
            warm.put(owner(key(1, "a", "x"), "a"), 10, instance);
        }
        assert_eq!(warm.take(&key(1, "b", "x")), Some(1));
    }

    #[test]
    fn nothing_is_kept_for_ever() {
        let unlimited = warm(Duration::MAX);
        unlimited.put(owner(key(1, "a", "x"), "a"), 10, 1);
        unlimited.retire();
        assert_eq!(unlimited.take(&key(1, "a", "x")), Some(1));
        let hasty = warm(Duration::ZERO);
        hasty.put(owner(key(1, "a", "x"), "a"), 10, 1);
        hasty.retire();
        assert_eq!(hasty.take(&key(1, "a", "x")), None);
        unlimited.put(owner(key(1, "a", "x"), "a"), 10, 1);
        unlimited.put(owner(key(2, "a", "x"), "a"), 10, 2);
        assert_eq!((unlimited.count(1), unlimited.count(2), unlimited.count(3)), (1, 1, 0));
        unlimited.forget(1);
        assert_eq!((unlimited.take(&key(1, "a", "x")), unlimited.take(&key(2, "a", "x"))), (None, Some(2)));
        unlimited.put(owner(key(2, "a", "x"), "a"), 10, 2);
        assert!(!unlimited.make_room(Some(party("b"))) && unlimited.make_room(Some(party("a"))));
        assert_eq!(unlimited.take(&key(2, "a", "x")), None);
        assert!(!unlimited.make_room(None));
    }

    #[test]
    fn what_lasts_as_long_as_a_session_goes_with_it() {
        let (hasty, session) = (warm(Duration::ZERO), Arc::new(()));
        let lasts: Weak<dyn Any + Send + Sync> = Arc::downgrade(&(Arc::clone(&session) as Arc<dyn Any + Send + Sync>));
        for instance in [1, 2] {
            hasty.put(Owner { lasts: Some(lasts.clone()), ..owner(key(1, "a", "x"), "a") }, 10, instance);
        }
        hasty.retire();
        assert_eq!(hasty.take(&key(1, "a", "x")), Some(2));
        drop(session);
        hasty.retire();
        assert_eq!(hasty.take(&key(1, "a", "x")), None);
    }

    #[test]
    fn state_goes_last_and_its_client_is_told() {
        let warm = warm(Duration::MAX);
        let client = Client { key: "a".into(), in_one: true, lasts: None };
        let stay = Stays::default().of("notes", &client);
        let mut staying = Staying::new(&stay, false, Instant::now());
        staying.run();
        staying.end(None);
        warm.put(Owner { stay: Some(Arc::clone(&stay)), ..owner(key(1, "a", "x"), "a") }, 10, 1);
        warm.put(owner(key(2, "a", "x"), "a"), 10, 2);
        assert!(warm.make_room(None) && warm.count(1) == 1 && stay.tell().is_none());
        assert!(warm.make_room(None));
        assert!(stay.tell().unwrap().contains("no room for it in memory"));
    }
}
