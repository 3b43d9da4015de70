//! Pools with a bounded number of places, which are shared fairly among parties.
//!
//! A place is a permit, like that of a semaphore, for example for a running call, a connection or a session. A party is the unit by which
//! places are counted: a client, a network address or a plugin. Without a limit per party, a pool would belong to the first party that
//! fills it. So one rule holds for all pools: a party that holds `n` places gets another one only while `n` is less than three times the
//! number of free places. A single party can hold three quarters of a pool, two greedy ones three sevenths each, and ten greedy ones
//! together leave one place in 31 free, which only parties that hold few places can get. Network switches share buffers between ports by
//! the same rule ("dynamic thresholds"). A pool of fewer than four places reserves nothing: among waiting parties, the one that holds the
//! fewest places is served first, and those that hold equally many take turns.
//!
//! A place can have an occupant that may be evicted, such as an idle session. An occupant is evicted only for a party that holds fewer
//! places than the occupant's own party, or for any party once it has been idle for long.
//!
//! This module does not know what the places are for, nor who the parties are.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A party may hold at most this many times the number of free places.
const TIMES_FREE: usize = 3;

/// The size of a pool divided by this is the number of places that are reserved for parties that hold few: an eighth. Without the reserve,
/// parties that come one after the other and take all that they can get would leave nothing.
pub(crate) const RESERVE_DIVISOR: usize = 8;
/// The size of a pool divided by this is the number of places that count as few; it is at least one place.
pub(crate) const FEW_DIVISOR: usize = 64;

/// Whether a party that holds `held` of `whole` places may take another one while `free` places are free.
pub fn may_take(held: usize, free: usize, whole: usize) -> bool {
    if held < (whole / FEW_DIVISOR).max(1) {
        return free > 0;
    }
    held < free.saturating_mul(TIMES_FREE) && free > whole / RESERVE_DIVISOR
}

/// Describes one kind of place. There is no default, so a pool cannot be created without stating all of this. The table of limits in the
/// documentation is generated from these rules.
#[derive(Debug)]
pub struct PoolRule {
    /// What takes a place, in the plural: "calls under way".
    pub of: &'static str,
    /// What sets the number of places: a key of the config, or a fixed number.
    pub number: &'static str,
    /// What counts as one party: "client", "address", "plugin".
    pub taker: &'static str,
    /// When a place is given back.
    pub until: &'static str,
    /// What happens to the place while a person is asked something.
    pub asking: &'static str,
    /// What happens to the place when its client has disconnected.
    pub gone: &'static str,
    /// Which occupants are evicted to make room, and for which parties.
    pub gives_way: &'static str,
    /// The idle time after which an evictable occupant is evicted for any party, not only for one that holds fewer places.
    pub old: Duration,
}

/// A party that takes places, identified by a number that clients can neither choose nor predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Party(u64);

impl Party {
    /// The party of a pool that has only one. It may take all places.
    pub const SOLE: Self = Self(0);

    /// Identifies a party by the hash of its name. The hash must be keyed with a secret of this process, so that nobody can choose a name
    /// that collides with that of another party.
    pub fn of(hash: u64) -> Self {
        Self(hash.max(1))
    }

    /// Returns the number that identifies the party.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The parties for which an occupant may be evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivesWay {
    /// Any party: the occupant has not shown a right to its place.
    ToAnyone {
        /// How long that has been so.
        idle: Duration,
    },
    /// Parties that hold fewer places, and any party once the occupant has been idle for long.
    ToSmaller {
        /// How long the occupant has been idle.
        idle: Duration,
    },
    /// The same as `ToSmaller`, but never the occupant's own party, which would only request a place again and evict another of its own
    /// occupants for it.
    ToOthers {
        /// How long the occupant has been idle.
        idle: Duration,
    },
}

/// A holder of a place that can be evicted.
pub trait Occupant: Send + Sync {
    /// Returns the parties for which the occupant may be evicted; `None` if it may not be. `now` is the same for all occupants that are
    /// compared. Must not use the pool, whose lock is held.
    fn gives_way(&self, now: Instant) -> Option<GivesWay>;

    /// The class of the occupant, if there are others that can be used in its stead. No occupant is evicted for a new one of the same party
    /// and class: the party can use the one that is there.
    fn class(&self) -> Option<u64> {
        None
    }

    /// Evicts the occupant. Its place already counts as free, although the occupant may take a moment to stop.
    fn end(&self);
}

/// The error of a party that gets no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolFull {
    /// The number of places in the pool.
    pub whole: usize,
    /// The number of places that the party holds.
    pub held: usize,
    rule: &'static PoolRule,
}

impl PartialEq for PoolRule {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for PoolRule {}

impl fmt::Display for PoolFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { whole, held, rule: PoolRule { of, number, taker, .. } } = self;
        match held {
            0 => write!(f, "all {whole} places for {of} are taken ({number})"),
            _ => write!(
                f,
                "this {taker} holds {held} of the {whole} places for {of}, and the others are reserved for other {taker}s ({number})"
            ),
        }
    }
}

impl std::error::Error for PoolFull {}

/// A pool of places.
pub struct Places {
    rule: &'static PoolRule,
    /// How many there are.
    whole: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: usize,
    held: HashMap<Party, usize>,
    /// In order of arrival.
    waiting: Vec<Waiting>,
    /// The turn of the waiter that was served last.
    turn: u64,
    occupants: HashMap<u64, (Party, Arc<dyn Occupant>)>,
    last: u64,
}

struct Waiting {
    party: Party,
    /// The round in which the waiter is served: one after the turn that was served last when the waiter came or, if later, one after that
    /// of its party's previous waiter. So a party with one waiter does not queue behind all waiters of another party.
    turn: u64,
    /// The future occupant of the place, if it can be evicted.
    occupant: Option<Arc<dyn Occupant>>,
    given: oneshot::Sender<Place>,
}

impl Waiting {
    fn class(&self) -> Option<u64> {
        self.occupant.as_ref()?.class()
    }
}

/// The result of serving waiters: places that were given, and occupants that were evicted for them. Both are notified outside the lock.
#[derive(Default)]
struct Served {
    given: Vec<(oneshot::Sender<Place>, Place)>,
    ended: Vec<Arc<dyn Occupant>>,
}

impl Served {
    fn tell(self) {
        for occupant in self.ended {
            occupant.end();
        }
        for (given, place) in self.given {
            // If the waiter has just stopped waiting, the place is dropped here and goes to the next waiter.
            drop(given.send(place));
        }
    }
}

/// A place in a pool. This is an RAII guard: dropping it frees the place.
#[must_use = "the place is given back when this is dropped"]
pub struct Place {
    all: Arc<Places>,
    party: Party,
    /// The number of its occupant, if that can be evicted.
    occupant: Option<u64>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({})", self.all.rule.of)
    }
}

impl State {
    fn held(&self, party: Party) -> usize {
        self.held.get(&party).copied().unwrap_or(0)
    }

    fn fits(&self, party: Party, whole: usize) -> bool {
        let free = whole.saturating_sub(self.taken);
        may_take(self.held(party), free, whole) || (free > 0 && party == Party::SOLE)
    }

    fn count(&mut self, party: Party) {
        self.taken += 1;
        *self.held.entry(party).or_default() += 1;
    }

    fn give_back(&mut self, party: Party) {
        self.taken -= 1;
        if let Some(held) = self.held.get_mut(&party) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&party);
            }
        }
    }

    /// Selects the occupant to evict for a new occupant of `party`. `is_full`: no place is free. While places are free, the party gets none
    /// because of what it holds itself; then only its own occupants can be evicted, and idle ones of parties that hold more.
    fn to_evict(&self, party: Party, class: Option<u64>, is_full: bool, rule: &PoolRule) -> Option<u64> {
        let (wants, now) = (self.held(party), Instant::now());
        let candidates = self.occupants.iter().filter_map(|(number, (other, occupant))| {
            let (holds, own) = (self.held(*other), *other == party);
            if own && class.is_some() && occupant.class() == class {
                return None;
            }
            let may = |idle: Duration| holds > wants + 1 || (is_full && idle >= rule.old);
            let (rank, idle) = match occupant.gives_way(now)? {
                GivesWay::ToAnyone { idle } if own || is_full => (0, idle),
                GivesWay::ToSmaller { idle } if own || may(idle) => (1, idle),
                GivesWay::ToOthers { idle } if !own && may(idle) => (1, idle),
                GivesWay::ToAnyone { .. } | GivesWay::ToSmaller { .. } | GivesWay::ToOthers { .. } => return None,
            };
            Some(((Reverse(rank), holds, idle), *number))
        });
        candidates.max_by_key(|(order, _)| *order).map(|(_, number)| number)
    }

    /// Takes the place of an occupant away for `party`, and returns the occupant. The caller has to end it outside the lock.
    fn make_room(
        &mut self,
        party: Party,
        class: Option<u64>,
        is_full: bool,
        rule: &PoolRule,
    ) -> Option<Arc<dyn Occupant>> {
        let (other, occupant) = self.occupants.remove(&self.to_evict(party, class, is_full, rule)?)?;
        self.give_back(other);
        Some(occupant)
    }

    /// Returns the index of the next waiter to serve, and whether an occupant has to be evicted for it.
    fn next(&self, rule: &PoolRule, whole: usize) -> Option<(usize, bool)> {
        let order = |(at, waiting): &(usize, &Waiting)| (self.held(waiting.party), waiting.turn, *at);
        let fit = self.waiting.iter().enumerate().filter(|(_, waiting)| self.fits(waiting.party, whole));
        if let Some((at, _)) = fit.min_by_key(order) {
            return Some((at, false));
        }
        if self.occupants.is_empty() {
            return None;
        }
        let mut rest: Vec<(usize, &Waiting)> = self.waiting.iter().enumerate().collect();
        rest.sort_by_key(order);
        // The answer is the same for all waiters of one party and class.
        let mut asked = HashSet::new();
        rest.retain(|(_, waiting)| asked.insert((waiting.party, waiting.class())));
        let is_full = self.taken >= whole;
        let evicts = |one: &Waiting| self.to_evict(one.party, one.class(), is_full, rule).is_some();
        rest.into_iter().find(|(_, one)| evicts(one)).map(|(at, _)| (at, true))
    }
}

impl Places {
    /// Creates a pool of `whole` places.
    pub fn new(rule: &'static PoolRule, whole: usize) -> Arc<Self> {
        Arc::new(Self { rule, whole, state: Mutex::default() })
    }

    /// Returns the number of taken places.
    pub fn taken(&self) -> usize {
        self.state.lock().taken
    }

    /// Takes a place at once, and evicts an occupant for it if necessary.
    pub fn take(self: &Arc<Self>, party: Party) -> Result<Place, PoolFull> {
        self.take_or_end(party, None).map(|(place, _)| place)
    }

    fn take_or_end(self: &Arc<Self>, party: Party, class: Option<u64>) -> Result<(Place, bool), PoolFull> {
        let (place, ended) = {
            let mut state = self.state.lock();
            let ended = match state.fits(party, self.whole) {
                true => None,
                false => {
                    let is_full = state.taken >= self.whole;
                    Some(state.make_room(party, class, is_full, self.rule).ok_or_else(|| self.full(&state, party))?)
                }
            };
            (self.place(&mut state, party, None), ended)
        };
        if let Some(ended) = &ended {
            ended.end();
        }
        Ok((place, ended.is_some()))
    }

    /// Takes a place at once for an occupant that can be evicted later. Returns also whether another occupant was evicted for it.
    pub fn take_for(self: &Arc<Self>, party: Party, occupant: Arc<dyn Occupant>) -> Result<(Place, bool), PoolFull> {
        let (mut place, ended) = self.take_or_end(party, occupant.class())?;
        place.give_way(occupant);
        Ok((place, ended))
    }

    /// Waits for a place. The waiter whose party holds the fewest places is served first; parties that hold equally many take turns. The
    /// caller bounds the waiting time and the number of waiters.
    pub async fn wait(self: &Arc<Self>, party: Party) -> Place {
        self.wait_in(party, None).await
    }

    /// Waits for a place for an occupant that can be evicted later.
    pub async fn wait_for(self: &Arc<Self>, party: Party, occupant: Arc<dyn Occupant>) -> Place {
        self.wait_in(party, Some(occupant)).await
    }

    async fn wait_in(self: &Arc<Self>, party: Party, occupant: Option<Arc<dyn Occupant>>) -> Place {
        let (given, served) = {
            let mut state = self.state.lock();
            // Waiters that have gone are removed, so that they do not accumulate while no place becomes free.
            state.waiting.retain(|waiting| !waiting.given.is_closed());
            if state.waiting.is_empty() && state.fits(party, self.whole) {
                return self.place(&mut state, party, occupant);
            }
            let (give, given) = oneshot::channel();
            let own = state.waiting.iter().filter(|waiting| waiting.party == party).map(|waiting| waiting.turn).max();
            let turn = own.unwrap_or(0).max(state.turn) + 1;
            state.waiting.push(Waiting { party, turn, occupant, given: give });
            // The new waiter may get a place at once: a free one, or that of an occupant that is evicted.
            (given, self.serve(&mut state))
        };
        served.tell();
        match given.await {
            Ok(place) => place,
            // Not reached: the pool lives as long as this future, and drops the sender only after it has sent.
            Err(_) => std::future::pending().await,
        }
    }

    /// Serves waiters again. Must be called when an occupant becomes evictable, so that a waiter gets its place.
    pub fn reconsider(self: &Arc<Self>) {
        let served = self.serve(&mut self.state.lock());
        served.tell();
    }

    /// Counts a place as taken.
    fn place(self: &Arc<Self>, state: &mut State, party: Party, occupant: Option<Arc<dyn Occupant>>) -> Place {
        state.count(party);
        let occupant = occupant.map(|occupant| {
            state.last += 1;
            state.occupants.insert(state.last, (party, occupant));
            state.last
        });
        Place { all: Arc::clone(self), party, occupant }
    }

    /// Gives waiters the free places, and the places of occupants that can be evicted.
    fn serve(self: &Arc<Self>, state: &mut State) -> Served {
        let mut served = Served::default();
        if state.waiting.is_empty() {
            return served;
        }
        state.waiting.retain(|waiting| !waiting.given.is_closed());
        while let Some((at, ends)) = state.next(self.rule, self.whole) {
            let waiting = state.waiting.remove(at);
            let class = waiting.class();
            let Waiting { party, turn, occupant, given } = waiting;
            state.turn = state.turn.max(turn);
            if ends {
                let is_full = state.taken >= self.whole;
                served.ended.extend(state.make_room(party, class, is_full, self.rule));
            }
            served.given.push((given, self.place(state, party, occupant)));
        }
        served
    }

    fn full(&self, state: &State, party: Party) -> PoolFull {
        PoolFull { whole: self.whole, held: state.held(party), rule: self.rule }
    }
}

impl Place {
    /// Sets the occupant of the place. It can be evicted for another party from now on.
    pub fn give_way(&mut self, occupant: Arc<dyn Occupant>) {
        let mut state = self.all.state.lock();
        let number = match self.occupant {
            // An occupant that was evicted has no place any more.
            Some(number) if !state.occupants.contains_key(&number) => return,
            Some(number) => number,
            None => {
                state.last += 1;
                state.last
            }
        };
        self.occupant = Some(number);
        let before = state.occupants.insert(number, (self.party, occupant));
        drop(state);
        drop(before);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let all = Arc::clone(&self.all);
        let (served, occupant) = {
            let mut state = all.state.lock();
            let occupant = self.occupant.map(|number| state.occupants.remove(&number));
            // The place of an evicted occupant has been given back already.
            if occupant.as_ref().is_none_or(Option::is_some) {
                state.give_back(self.party);
            }
            (all.serve(&mut state), occupant)
        };
        // Dropped outside the lock, because the occupant's destructor may use the pool.
        drop(occupant);
        served.tell();
    }
}

#[cfg(test)]
mod tests;
