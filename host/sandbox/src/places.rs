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
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// How many times as many places as are free one taker may hold.
const TIMES_FREE: usize = 3;

/// Whether a taker that holds so many places may have another one, while so many are free.
pub fn has_part(held: usize, free: usize) -> bool {
    held < free.saturating_mul(TIMES_FREE)
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
    /// Whether it may be ended now, and for whom. It must not use the pool.
    fn gives_way(&self) -> Option<GivesWay>;

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
        has_part(self.held(party), free) || (free > 0 && party == Party::SOLE)
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
        let wants = self.held(party);
        let candidates = self.occupants.iter().filter_map(|(number, (other, occupant))| {
            let (holds, own) = (self.held(*other), *other == party);
            let may = |idle: Duration| holds > wants + 1 || (is_full && idle >= rule.old);
            let (rank, idle) = match occupant.gives_way()? {
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

    /// How many places there are.
    pub fn whole(&self) -> usize {
        self.whole
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

    /// Ends an occupant as if there were no place for one of `party`, because there is something else that occupants have and there is not
    /// enough of. False: none may be ended for it.
    pub fn end_one_for(&self, party: Party) -> bool {
        let ended = self.state.lock().make_room(party, true, self.rule);
        ended.inspect(|occupant| occupant.end()).is_some()
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
            let (give, given) = oneshot::channel();
            let own = state.waiting.iter().filter(|waiting| waiting.party == party).map(|waiting| waiting.turn).max();
            let turn = own.unwrap_or(0).max(state.turn) + 1;
            state.waiting.push(Waiting { party, turn, occupant, given: give });
            // It gets a place at once if there is one.
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
mod tests {
    use std::{
        pin::Pin,
        sync::atomic::{AtomicBool, AtomicUsize, Ordering},
        task::{Context, Poll, Waker},
    };

    use super::*;

    static RULE: Rule = Rule {
        of: "things",
        number: "`things` in [test]",
        taker: "client",
        until: "it is dropped",
        asking: "not held",
        gone: "not held",
        gives_way: "occupants that say so",
        old: Duration::from_secs(60),
    };

    fn party(number: u64) -> Party {
        Party::of(number)
    }

    fn fill(places: &Arc<Places>, number: u64) -> Vec<Place> {
        std::iter::from_fn(|| places.take(party(number)).ok()).collect()
    }

    fn poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        match Pin::new(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[test]
    fn greedy_takers_leave_room_for_those_that_hold_little() {
        for whole in [4, 8, 16, 64, 256, 1024] {
            for greedy in 1..=10 {
                let places = Places::new(&RULE, whole);
                let mut held: Vec<Place> = Vec::new();
                loop {
                    let more: Vec<Place> = (1..=greedy).filter_map(|one| places.take(party(one)).ok()).collect();
                    if more.is_empty() {
                        break;
                    }
                    held.extend(more);
                }
                let spare = whole / (1 + TIMES_FREE * usize::try_from(greedy).unwrap());
                let others: Vec<Place> = (100..).take(spare).filter_map(|one| places.take(party(one)).ok()).collect();
                assert_eq!(others.len(), spare, "{whole} places, {greedy} greedy");
            }
        }
    }

    #[test]
    fn one_alone_gets_three_quarters_and_the_only_taker_everything() {
        for (whole, most) in [(1, 1), (2, 2), (3, 3), (4, 3), (8, 6), (16, 12), (256, 192)] {
            let places = Places::new(&RULE, whole);
            let held = fill(&places, 1);
            assert_eq!(held.len(), most, "of {whole}");
            drop(held);
            assert_eq!(places.taken(), 0);
            let all: Vec<Place> = std::iter::from_fn(|| places.take(Party::SOLE).ok()).collect();
            assert_eq!(all.len(), whole);
        }
        let places = Places::new(&RULE, 8);
        let _held = fill(&places, 1);
        assert_eq!(
            places.take(party(1)).unwrap_err().to_string(),
            "this client holds 6 of the 8 places for things, and the others are kept for other clients (`things` in [test])"
        );
    }

    #[tokio::test]
    async fn the_taker_that_holds_least_is_next() {
        let places = Places::new(&RULE, 4);
        let mut held = fill(&places, 1);
        let _other = places.take(party(2)).unwrap();
        let [mut one, mut two, mut three] = [1, 2, 3].map(|number| Box::pin(places.wait(party(number))));
        assert!(poll(&mut one).is_none() && poll(&mut two).is_none() && poll(&mut three).is_none());
        held.pop();
        assert!(poll(&mut one).is_none() && poll(&mut two).is_none());
        let got = poll(&mut three);
        assert!(got.is_some(), "it holds nothing");
        drop((two, got));
        assert!(poll(&mut one).is_some(), "nobody else waits");
    }

    #[tokio::test]
    async fn those_that_hold_the_same_have_turns() {
        let places = Places::new(&RULE, 1);
        let held = places.take(party(9)).unwrap();
        let mut greedy: Vec<_> = (0..3).map(|_| Box::pin(places.wait(party(1)))).collect();
        assert!(greedy.iter_mut().all(|wait| poll(wait).is_none()));
        let mut modest = Box::pin(places.wait(party(2)));
        assert!(poll(&mut modest).is_none());
        drop(held);
        let first = poll(&mut greedy[0]).expect("it came first");
        assert!(poll(&mut modest).is_none());
        drop(first);
        assert!(poll(&mut greedy[1]).is_none(), "its party has had its turn");
        drop(poll(&mut modest).expect("the other party's turn"));
        drop(poll(&mut greedy[1]).expect("nobody else waits"));
        assert!(poll(&mut greedy[2]).is_some());
    }

    #[test]
    fn a_taker_that_stops_waiting_loses_no_place() {
        let places = Places::new(&RULE, 1);
        let held = places.take(party(1)).unwrap();
        let mut left = Box::pin(places.wait(party(2)));
        assert!(poll(&mut left).is_none());
        // It is given the place, and never looks.
        drop(held);
        assert_eq!(places.taken(), 1);
        drop(left);
        assert_eq!(places.taken(), 0);
    }

    struct Idle {
        seconds: Option<u64>,
        unused: bool,
        comes_back: bool,
        ended: AtomicBool,
    }

    impl Occupant for Idle {
        fn gives_way(&self) -> Option<GivesWay> {
            let idle = Duration::from_secs(self.seconds?);
            Some(match (self.unused, self.comes_back) {
                (true, _) => GivesWay::ToAnyone { idle },
                (false, true) => GivesWay::ToOthers { idle },
                (false, false) => GivesWay::ToSmaller { idle },
            })
        }

        fn end(&self) {
            self.ended.store(true, Ordering::Relaxed);
        }
    }

    /// What a taker got, and whether it was ended.
    type Taken = (Place, Arc<Idle>);

    fn ended(taken: &Taken) -> bool {
        taken.1.ended.load(Ordering::Relaxed)
    }

    fn take(places: &Arc<Places>, number: u64, seconds: Option<u64>, unused: bool) -> Option<Taken> {
        let occupant = Arc::new(Idle { seconds, unused, comes_back: false, ended: AtomicBool::new(false) });
        let (place, _) = places.take_for(party(number), Arc::clone(&occupant) as Arc<dyn Occupant>).ok()?;
        Some((place, occupant))
    }

    #[test]
    fn idle_occupants_give_way_by_share_and_by_age() {
        let places = Places::new(&RULE, 4);
        let [young, old, busy] = [Some(10), Some(20), None].map(|idle| take(&places, 1, idle, false).unwrap());
        let next = take(&places, 1, Some(5), false).unwrap();
        assert!(ended(&old) && !ended(&young), "beyond its part, a taker's own oldest makes room");
        let _other = take(&places, 2, Some(1), false).unwrap();
        let third = take(&places, 3, Some(1), false).unwrap();
        assert!(ended(&young) && !ended(&next) && !ended(&busy), "of the one who holds most, the longest idle");
        let fourth = take(&places, 4, Some(1), false).unwrap();
        assert!(ended(&next), "it holds two, and the new taker would hold one");
        assert!(
            take(&places, 5, Some(1), false).is_none(),
            "nobody whose occupant is idle holds more than the new taker would"
        );
        drop((next, fourth));
        assert!(!places.end_one_for(party(5)), "nor for want of something else");
        let _fourth = take(&places, 4, None, false).unwrap();
        drop((young, old));
        assert_eq!(places.taken(), 4, "what was ended gives nothing back a second time");
        drop(third);
        let stranger = take(&places, 5, Some(0), true).unwrap();
        let aged = take(&places, 6, Some(61), false).unwrap();
        assert!(ended(&stranger), "it has shown no right to its place");
        let _last = take(&places, 7, None, false).unwrap();
        assert!(ended(&aged), "it is old");
    }

    #[test]
    fn one_that_comes_back_is_never_ended_for_its_own_taker() {
        let places = Places::new(&RULE, 4);
        let mut held: Vec<_> = (0..3).map(|_| places.take(party(1)).unwrap()).collect();
        let (first, second) = held.split_at_mut(1);
        let occupant =
            |comes_back| Arc::new(Idle { seconds: Some(1), unused: false, comes_back, ended: AtomicBool::new(false) });
        let (stays, goes) = (occupant(true), occupant(false));
        first[0].give_way(Arc::clone(&stays) as Arc<dyn Occupant>);
        assert!(places.take(party(1)).is_err());
        second[0].give_way(Arc::clone(&goes) as Arc<dyn Occupant>);
        let own = places.take(party(1)).unwrap();
        assert!(goes.ended.load(Ordering::Relaxed) && !stays.ended.load(Ordering::Relaxed), "an occupant of its own");
        let _other = places.take(party(2)).unwrap();
        assert_eq!(places.taken(), 4);
        let _third = places.take(party(3)).unwrap();
        assert!(stays.ended.load(Ordering::Relaxed), "for one that holds fewer");
        drop((held, own));
        assert_eq!(places.taken(), 2);
    }

    #[test]
    fn what_a_larger_taker_does_not_use_gives_way_although_places_are_free() {
        let places = Places::new(&RULE, 16);
        let held: Vec<_> = (0..12).map(|_| take(&places, 1, Some(1), false).unwrap()).collect();
        let other: Vec<_> = std::iter::from_fn(|| take(&places, 2, None, false)).collect();
        assert_eq!(other.len(), 7, "three at first, and then until they hold the same but for one");
        assert_eq!(held.iter().filter(|one| ended(one)).count(), 4);
        assert!(places.taken() < 16, "there is still one for a third");
    }

    #[tokio::test]
    async fn who_waits_gets_the_place_of_an_occupant_that_becomes_idle() {
        struct Shared(Arc<Mutex<Option<Duration>>>, AtomicBool);
        impl Occupant for Shared {
            fn gives_way(&self) -> Option<GivesWay> {
                Some(GivesWay::ToSmaller { idle: (*self.0.lock())? })
            }

            fn end(&self) {
                self.1.store(true, Ordering::Relaxed);
            }
        }
        let places = Places::new(&RULE, 4);
        let idle = Arc::new(Mutex::new(None));
        let new = || Arc::new(Shared(Arc::clone(&idle), AtomicBool::new(false)));
        let take = |one: &Arc<Shared>| places.take_for(party(1), Arc::clone(one) as _).unwrap().0;
        let all: Vec<_> = (0..3).map(|_| new()).map(|one| (take(&one), one)).collect();
        let _other = places.take(party(2)).unwrap();
        let mut own = Box::pin(places.wait_for(party(1), new() as _));
        let mut smaller = Box::pin(places.wait_for(party(3), new() as _));
        assert!(poll(&mut own).is_none() && poll(&mut smaller).is_none());
        *idle.lock() = Some(Duration::ZERO);
        places.reconsider();
        let (smaller, own) = (poll(&mut smaller), poll(&mut own));
        assert!(smaller.is_some() && own.is_some(), "one of another taker, and one of its own");
        assert_eq!(all.iter().filter(|(_, one)| one.1.load(Ordering::Relaxed)).count(), 2);
        assert_eq!(places.taken(), 4);
        drop(all);
        assert_eq!(places.taken(), 3);
    }

    #[test]
    fn those_that_stop_waiting_take_no_room() {
        let places = Places::new(&RULE, 1);
        let _held = places.take(party(1)).unwrap();
        for _ in 0..100 {
            let mut left = Box::pin(places.wait(party(2)));
            assert!(poll(&mut left).is_none());
        }
        assert!(places.state.lock().waiting.len() <= 1);
    }

    #[test]
    fn many_threads_never_hold_more_than_there_is() {
        let places = Places::new(&RULE, 16);
        let most = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 1..5 {
                let (places, most) = (&places, &most);
                scope.spawn(move || {
                    for round in 0..5000 {
                        let held: Vec<_> = (0..round % 9).filter_map(|_| places.take(party(thread)).ok()).collect();
                        most.fetch_max(places.taken(), Ordering::Relaxed);
                        drop(held);
                    }
                });
            }
        });
        assert!(most.load(Ordering::Relaxed) <= 16);
        assert_eq!(places.taken(), 0);
    }
}
