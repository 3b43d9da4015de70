//! Tests which parties get places, which wait, and which occupants are evicted for them.

use std::{
    pin::Pin,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    task::{Context, Poll, Waker},
};

use super::*;

static RULE: PoolRule = PoolRule {
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
fn takers_that_come_one_after_the_other_leave_places_for_small_ones() {
    for (whole, others) in [(8, 1), (16, 2), (64, 6), (256, 20), (1024, 80)] {
        let places = Places::new(&RULE, whole);
        let greedy: Vec<Vec<Place>> = (1..=4).map(|one| fill(&places, one)).collect();
        let got: Vec<Place> = (100..).take(others).filter_map(|one| places.take(party(one)).ok()).collect();
        let held: Vec<usize> = greedy.iter().map(Vec::len).collect();
        assert!(got.len() + 2 >= others, "{whole}: {held:?} leave {}", got.len());
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
        "this client holds 6 of the 8 places for things, and the others are reserved for other clients (`things` in [test])"
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
    assert!(got.is_some(), "this party holds nothing");
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
    // The waiter is given the place, but is never polled again.
    drop(held);
    assert_eq!(places.taken(), 1);
    drop(left);
    assert_eq!(places.taken(), 0);
}

struct Idle {
    seconds: Option<u64>,
    unused: bool,
    comes_back: bool,
    class: Option<u64>,
    ended: AtomicBool,
}

impl Occupant for Idle {
    fn gives_way(&self, _: Instant) -> Option<GivesWay> {
        let idle = Duration::from_secs(self.seconds?);
        Some(match (self.unused, self.comes_back) {
            (true, _) => GivesWay::ToAnyone { idle },
            (false, true) => GivesWay::ToOthers { idle },
            (false, false) => GivesWay::ToSmaller { idle },
        })
    }

    fn class(&self) -> Option<u64> {
        self.class
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// A place and its occupant.
type Taken = (Place, Arc<Idle>);

fn ended(taken: &Taken) -> bool {
    taken.1.ended.load(Ordering::Relaxed)
}

fn take(places: &Arc<Places>, number: u64, seconds: Option<u64>, unused: bool) -> Option<Taken> {
    let occupant = Arc::new(Idle { seconds, unused, comes_back: false, class: None, ended: AtomicBool::new(false) });
    let (place, _) = places.take_for(party(number), Arc::clone(&occupant) as Arc<dyn Occupant>).ok()?;
    Some((place, occupant))
}

#[test]
fn idle_occupants_give_way_by_share_and_by_age() {
    let places = Places::new(&RULE, 4);
    let [young, old, busy] = [Some(10), Some(20), None].map(|idle| take(&places, 1, idle, false).unwrap());
    let next = take(&places, 1, Some(5), false).unwrap();
    assert!(ended(&old) && !ended(&young), "beyond its share, a party's own oldest occupant makes room");
    let _other = take(&places, 2, Some(1), false).unwrap();
    let third = take(&places, 3, Some(1), false).unwrap();
    assert!(
        ended(&young) && !ended(&next) && !ended(&busy),
        "the longest idle occupant of the party that holds the most"
    );
    let fourth = take(&places, 4, Some(1), false).unwrap();
    assert!(ended(&next), "its party holds two, and the new one would hold one");
    assert!(
        take(&places, 5, Some(1), false).is_none(),
        "no party with an idle occupant holds more than the new one would"
    );
    drop((next, fourth));
    let _fourth = take(&places, 4, None, false).unwrap();
    drop((young, old));
    assert_eq!(places.taken(), 4, "an evicted place is not given back a second time");
    drop(third);
    let unproven = take(&places, 5, Some(0), true).unwrap();
    let aged = take(&places, 6, Some(61), false).unwrap();
    assert!(ended(&unproven), "the occupant has shown no right to its place");
    let _last = take(&places, 7, None, false).unwrap();
    assert!(ended(&aged), "the occupant has been idle for long");
}

#[test]
fn one_that_comes_back_is_never_ended_for_its_own_taker() {
    let places = Places::new(&RULE, 4);
    let mut held: Vec<_> = (0..3).map(|_| places.take(party(1)).unwrap()).collect();
    let (first, second) = held.split_at_mut(1);
    let occupant = |comes_back| {
        Arc::new(Idle { seconds: Some(1), unused: false, comes_back, class: None, ended: AtomicBool::new(false) })
    };
    let (stays, goes) = (occupant(true), occupant(false));
    first[0].give_way(Arc::clone(&stays) as Arc<dyn Occupant>);
    assert!(places.take(party(1)).is_err());
    second[0].give_way(Arc::clone(&goes) as Arc<dyn Occupant>);
    let own = places.take(party(1)).unwrap();
    assert!(
        goes.ended.load(Ordering::Relaxed) && !stays.ended.load(Ordering::Relaxed),
        "the party's own occupant that does not come back"
    );
    let _other = places.take(party(2)).unwrap();
    assert_eq!(places.taken(), 4);
    let _third = places.take(party(3)).unwrap();
    assert!(stays.ended.load(Ordering::Relaxed), "evicted for a party that holds fewer places");
    drop((held, own));
    assert_eq!(places.taken(), 2);
}

#[tokio::test]
async fn one_that_could_be_used_is_not_ended_for_another_of_its_class() {
    let places = Places::new(&RULE, 4);
    let of = |class, seconds| {
        let (unused, comes_back, ended) = (false, false, AtomicBool::new(false));
        Arc::new(Idle { seconds, unused, comes_back, class: Some(class), ended })
    };
    let take = |occupant: &Arc<Idle>| places.take_for(party(1), Arc::clone(occupant) as _);
    let first = [of(7, Some(90)), of(7, Some(90)), of(7, Some(90))];
    let held: Vec<_> = first.iter().map(|one| take(one).unwrap()).collect();
    let any_ended = || first.iter().any(|one| one.ended.load(Ordering::Relaxed));
    assert!(take(&of(7, Some(90))).is_err());
    let mut same = Box::pin(places.wait_for(party(1), of(7, Some(90)) as _));
    assert!(poll(&mut same).is_none() && !any_ended());
    let mut other = Box::pin(places.wait_for(party(1), of(8, None) as _));
    let other = poll(&mut other);
    assert!(other.is_some() && any_ended(), "one of another class gets the place, although it came later");
    assert!(poll(&mut same).is_none());
    drop(held);
    assert!(poll(&mut same).is_some());
}

#[test]
fn what_a_larger_taker_does_not_use_gives_way_although_places_are_free() {
    let places = Places::new(&RULE, 16);
    let held: Vec<_> = (0..12).map(|_| take(&places, 1, Some(1), false).unwrap()).collect();
    let other: Vec<_> = std::iter::from_fn(|| take(&places, 2, None, false)).collect();
    assert_eq!(other.len(), 7, "two at first, and then until they hold the same");
    assert_eq!(held.iter().filter(|one| ended(one)).count(), 5);
    assert_eq!(places.taken(), 14, "an eighth stays free for others");
}

#[tokio::test]
async fn who_waits_gets_the_place_of_an_occupant_that_becomes_idle() {
    struct Shared(Arc<Mutex<Option<Duration>>>, AtomicBool);
    impl Occupant for Shared {
        fn gives_way(&self, _: Instant) -> Option<GivesWay> {
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
    assert!(smaller.is_some() && own.is_some(), "one evicts another party's occupant, one its own");
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
