//! Bounded places, and how many of them one taker may hold.
//!
//! A pool without a part for each taker belongs to the first one that fills it. So one rule holds for all pools: a taker that holds
//! `n` places gets another one only while `n` is less than three times the number of free places. A single taker can hold three quarters
//! of a pool, two greedy ones three sevenths each, and ten greedy ones together leave one place in 31 free, which only takers that hold
//! few can get. Switches share their buffers between ports by the same rule ("dynamic thresholds"). A pool of fewer than four places
//! keeps nothing for others; its takers get their turns by how much they hold, and those that hold the same by turns.
//!
//! A place can have an occupant that may be ended for another taker, such as an idle session. An occupant is ended only for a taker that
//! holds fewer places than the occupant's own taker, or once it has been idle for long.
//!
//! This module does not know what the places are for, nor who the takers are.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// How many times as many places as are free one taker may hold.
const TIMES_FREE: usize = 3;

/// The part of a pool that only takers get that hold few: an eighth. Without it, takers that come one after the other, each for all that it
/// can have, would leave nothing.
pub(crate) const FOR_SMALL_TAKERS: usize = 8;
/// Which part of a pool is few: one in 64, and one place at least.
pub(crate) const FEW: usize = 64;

/// Whether a taker that holds so many places may have another one, while so many of `whole` are free.
pub fn has_part(held: usize, free: usize, whole: usize) -> bool {
    if held < (whole / FEW).max(1) {
        return free > 0;
    }
    held < free.saturating_mul(TIMES_FREE) && free > whole / FOR_SMALL_TAKERS
}

/// What one kind of place is for, and what becomes of it. There is no default, so a pool cannot be made without saying all of this.
/// The table of limits in the documentation is made from these.
#[derive(Debug)]
pub struct Rule {
    /// What takes a place, in the plural: "calls under way".
    pub of: &'static str,
    /// What decides how many places there are: a key of the config, or a fixed number.
    pub number: &'static str,
    /// Who counts as one taker: "client", "address", "plugin".
    pub taker: &'static str,
    /// When a place is given back.
    pub until: &'static str,
    /// What becomes of the place while a person is asked something.
    pub asking: &'static str,
    /// What becomes of the place when its client is gone.
    pub gone: &'static str,
    /// Which occupants are ended to make room, and for whom.
    pub gives_way: &'static str,
    /// An occupant that may be ended and has been idle for so long is ended for any taker, not only for one that holds fewer places.
    pub old: Duration,
}

/// A taker of places, by a number that nobody can choose or foresee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Party(u64);

impl Party {
    /// The only taker there can ever be, which may take all places.
    pub const SOLE: Self = Self(0);

    /// A party by the hash of its name. The hash has to be keyed with a secret of this process, so that nobody can choose a name that
    /// makes it another party.
    pub fn of(hash: u64) -> Self {
        Self(hash.max(1))
    }
}

/// For whom an occupant may be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivesWay {
    /// For any taker: it has shown no right to its place.
    ToAnyone {
        /// For how long that has been so.
        idle: Duration,
    },
    /// For takers that hold fewer places, and for any taker once it has been idle for long.
    ToSmaller {
        /// For how long it has been idle.
        idle: Duration,
    },
    /// The same, but never for its own taker, which would only ask for a place again, and end another one of its own for it.
    ToOthers {
        /// For how long it has been idle.
        idle: Duration,
    },
}

/// What holds a place and can be ended.
pub trait Occupant: Send + Sync {
    /// Whether it may be ended, and for whom. `now` is the same for all occupants that are compared. It must not use the pool.
    fn gives_way(&self, now: Instant) -> Option<GivesWay>;

    /// Ends it. Its place counts as free already, although it may take a moment to go.
    fn end(&self);
}

/// Why a taker gets no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full {
    /// How many places there are in all.
    pub whole: usize,
    /// How many the taker holds.
    pub held: usize,
    rule: &'static Rule,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Rule {}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { whole, held, rule: Rule { of, number, taker, .. } } = self;
        match held {
            0 => write!(f, "all {whole} places for {of} are taken ({number})"),
            _ => write!(
                f,
                "this {taker} holds {held} of the {whole} places for {of}, and the others are kept for other {taker}s ({number})"
            ),
        }
    }
}

impl std::error::Error for Full {}

/// A pool of places.
pub struct Places {
    rule: &'static Rule,
    whole: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: usize,
    held: HashMap<Party, usize>,
    /// In the order in which they came.
    waiting: Vec<Waiting>,
    /// The turn of the one that waited and was served last.
    turn: u64,
    occupants: HashMap<u64, (Party, Arc<dyn Occupant>)>,
    last: u64,
}

struct Waiting {
    party: Party,
    /// One after the turn that was served last when it came, or after that of the one of its party before it. So a party that waits
    /// once does not wait behind all of a party that waits often.
    turn: u64,
    /// What will hold the place, if it can be ended.
    occupant: Option<Arc<dyn Occupant>>,
    given: oneshot::Sender<Place>,
}

/// What became of those that waited: places that were given, and occupants whose places they are. Both are told outside of the lock.
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
            // If the taker has stopped waiting in this moment, the place is dropped here and goes to the next.
            drop(given.send(place));
        }
    }
}

/// A place, which is free again when this is dropped.
#[must_use = "the place is given back when this is dropped"]
pub struct Place {
    all: Arc<Places>,
    party: Party,
    /// The number of its occupant, if that can be ended.
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
        has_part(self.held(party), free, whole) || (free > 0 && party == Party::SOLE)
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

    /// The occupant that is ended for a new one of `party`. `is_full`: no place is free. While places are free, the party lacks one because
    /// of what it holds itself: then only its own occupants are ended, and those of takers that hold more and do not use what they hold.
    fn to_end(&self, party: Party, is_full: bool, rule: &Rule) -> Option<u64> {
        let (wants, now) = (self.held(party), Instant::now());
        let candidates = self.occupants.iter().filter_map(|(number, (other, occupant))| {
            let (holds, own) = (self.held(*other), *other == party);
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

    /// Takes the place of an occupant away for a new one of `party`. The occupant has to be ended outside of the lock.
    fn make_room(&mut self, party: Party, is_full: bool, rule: &Rule) -> Option<Arc<dyn Occupant>> {
        let (other, occupant) = self.occupants.remove(&self.to_end(party, is_full, rule)?)?;
        self.give_back(other);
        Some(occupant)
    }

    /// Which of those that wait is next, and whether an occupant has to be ended for it.
    fn next(&self, rule: &Rule, whole: usize) -> Option<(usize, bool)> {
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
        // The answer is the same for all that wait for one taker.
        let mut asked = HashSet::new();
        rest.retain(|(_, waiting)| asked.insert(waiting.party));
        let is_full = self.taken >= whole;
        rest.into_iter().find(|(_, one)| self.to_end(one.party, is_full, rule).is_some()).map(|(at, _)| (at, true))
    }
}

impl Places {
    /// A pool of `whole` places.
    pub fn new(rule: &'static Rule, whole: usize) -> Arc<Self> {
        Arc::new(Self { rule, whole, state: Mutex::default() })
    }

    /// How many places are taken.
    pub fn taken(&self) -> usize {
        self.state.lock().taken
    }

    /// Takes a place at once, and ends an occupant for it if necessary.
    pub fn take(self: &Arc<Self>, party: Party) -> Result<Place, Full> {
        self.take_or_end(party).map(|(place, _)| place)
    }

    fn take_or_end(self: &Arc<Self>, party: Party) -> Result<(Place, bool), Full> {
        let (place, ended) = {
            let mut state = self.state.lock();
            let ended = match state.fits(party, self.whole) {
                true => None,
                false => {
                    let is_full = state.taken >= self.whole;
                    Some(state.make_room(party, is_full, self.rule).ok_or_else(|| self.full(&state, party))?)
                }
            };
            (self.place(&mut state, party, None), ended)
        };
        if let Some(ended) = &ended {
            ended.end();
        }
        Ok((place, ended.is_some()))
    }

    /// Takes a place at once for something that can be ended later, and ends another occupant for it if necessary. True: one was ended.
    pub fn take_for(self: &Arc<Self>, party: Party, occupant: Arc<dyn Occupant>) -> Result<(Place, bool), Full> {
        let (mut place, ended) = self.take_or_end(party)?;
        place.give_way(occupant);
        Ok((place, ended))
    }

    /// Waits for a place. Of those that wait, the one whose party holds the fewest places is next; of several parties, each has its turn.
    /// The caller bounds how long it waits, and how many wait.
    pub async fn wait(self: &Arc<Self>, party: Party) -> Place {
        self.wait_in(party, None).await
    }

    /// The same for something that can be ended later.
    pub async fn wait_for(self: &Arc<Self>, party: Party, occupant: Arc<dyn Occupant>) -> Place {
        self.wait_in(party, Some(occupant)).await
    }

    async fn wait_in(self: &Arc<Self>, party: Party, occupant: Option<Arc<dyn Occupant>>) -> Place {
        let (given, served) = {
            let mut state = self.state.lock();
            // Those that have stopped waiting take no room here, however long no place comes free.
            state.waiting.retain(|waiting| !waiting.given.is_closed());
            if state.waiting.is_empty() && state.fits(party, self.whole) {
                return self.place(&mut state, party, occupant);
            }
            let (give, given) = oneshot::channel();
            let own = state.waiting.iter().filter(|waiting| waiting.party == party).map(|waiting| waiting.turn).max();
            let turn = own.unwrap_or(0).max(state.turn) + 1;
            state.waiting.push(Waiting { party, turn, occupant, given: give });
            // It may be the next that gets one, or one that is made free.
            (given, self.serve(&mut state))
        };
        served.tell();
        match given.await {
            Ok(place) => place,
            // The sender is in the pool, which lives as long as this future, and it is dropped only after it has sent.
            Err(_) => std::future::pending().await,
        }
    }

    /// Has to be called when an occupant may be ended from now on, so that those that wait get its place.
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

    /// Finds out which of those that wait get the free places, and those that can be made free.
    fn serve(self: &Arc<Self>, state: &mut State) -> Served {
        let mut served = Served::default();
        if state.waiting.is_empty() {
            return served;
        }
        state.waiting.retain(|waiting| !waiting.given.is_closed());
        while let Some((at, ends)) = state.next(self.rule, self.whole) {
            let Waiting { party, turn, occupant, given } = state.waiting.remove(at);
            state.turn = state.turn.max(turn);
            if ends {
                let is_full = state.taken >= self.whole;
                served.ended.extend(state.make_room(party, is_full, self.rule));
            }
            served.given.push((given, self.place(state, party, occupant)));
        }
        served
    }

    fn full(&self, state: &State, party: Party) -> Full {
        Full { whole: self.whole, held: state.held(party), rule: self.rule }
    }
}

impl Place {
    /// From now on the place has an occupant that can be ended for another taker.
    pub fn give_way(&mut self, occupant: Arc<dyn Occupant>) {
        let mut state = self.all.state.lock();
        let number = match self.occupant {
            // One that was ended has no place any more.
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
            // An occupant that was ended has given its place back already.
            if occupant.as_ref().is_none_or(Option::is_some) {
                state.give_back(self.party);
            }
            (all.serve(&mut state), occupant)
        };
        // Outside of the lock, since it may hold the last of something that uses the pool.
        drop(occupant);
        served.tell();
    }
}

#[cfg(test)]
mod tests;
