//! The place of an HTTP request in the pool of requests under way. While the request waits for something outside of this server, such as
//! the answer of a person, it holds a place in the pool of waiting requests instead, so that it does not keep others from being served.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use wharf_protocol::RpcError;

use wharf_base::{
    party::Party,
    places::{GivesWay, Occupant, Place, Places, PoolFull, PoolRule},
    quota::{Resting, Turn},
};

/// The number of places for waiting requests, for each place for a request under way.
const WAITING_PER_UNDER_WAY: usize = 8;
/// How long a request whose answer has arrived may take to get a place again. The requests before it take at most the
/// timeout of their plugins.
const RETURN_TIMEOUT: Duration = Duration::from_secs(120);
/// A client that has not read its stream for this long counts as gone. Clients are told to come back sooner than that.
pub const GONE_GRACE: Duration = Duration::from_secs(5);

pub static UNDER_WAY: PoolRule = PoolRule {
    of: "requests under way",
    number: "`in_flight` in [http]",
    taker: "client",
    until: "the answer is known",
    asking: "given back, and taken again when the answer is there",
    gone: "2026-07-28: given back at once; before: kept, because the client may come back for the answer, but gives way",
    gives_way: "requests of clients that have been gone for 5 seconds: for clients that hold fewer places and for their own client; after a \
                minute for any client",
    old: Duration::from_secs(60),
};

pub static WAITING: PoolRule = PoolRule {
    of: "requests that wait for an answer to a question",
    number: "8 times `in_flight` in [http]",
    taker: "client",
    until: "the answer is there, and the request has a place among those under way again",
    asking: "this is the pool of those that are asked",
    gone: "as for requests under way",
    gives_way: "as for requests under way",
    old: Duration::from_secs(60),
};

/// The places of all requests.
pub struct Seats {
    under_way: Arc<Places>,
    waiting: Arc<Places>,
}

/// A place for one request.
pub struct Taken {
    seats: Arc<Seats>,
    party: Party,
    place: Place,
}

impl Seats {
    pub fn new(in_flight: usize) -> Arc<Self> {
        let waiting = Places::new(&WAITING, in_flight.saturating_mul(WAITING_PER_UNDER_WAY));
        Arc::new(Self { under_way: Places::new(&UNDER_WAY, in_flight), waiting })
    }

    pub fn take(self: &Arc<Self>, party: Party) -> Result<Taken, PoolFull> {
        let place = self.under_way.take(party)?;
        Ok(Taken { seats: Arc::clone(self), party, place })
    }
}

/// The place that a request holds.
#[derive(Default)]
pub struct Seat {
    held: Mutex<Option<Held>>,
    ended: Notify,
    /// The call's turn while it counts as running, if the config limits how many calls may run at once.
    turn: Mutex<Option<Turn>>,
}

struct Held {
    taken: Taken,
    away: bool,
    /// The occupant under which the place gives way, once the client may be gone.
    occupant: Option<Arc<dyn Occupant>>,
}

impl Held {
    /// Replaces the place, and returns the previous one.
    fn change(&mut self, mut place: Place, away: bool) -> Place {
        if let Some(occupant) = &self.occupant {
            place.give_way(Arc::clone(occupant));
        }
        self.away = away;
        std::mem::replace(&mut self.taken.place, place)
    }
}

impl Seat {
    /// Gives the request this place.
    pub fn sit(&self, taken: Taken) {
        *self.held.lock() = Some(Held { taken, away: false, occupant: None });
    }

    /// Gives the request's place back. The request gets no other one.
    pub fn leave(&self) {
        let held = self.held.lock().take();
        drop(held);
    }

    /// Makes the place give way when this occupant does.
    pub fn give_way(&self, occupant: Arc<dyn Occupant>) {
        if let Some(held) = &mut *self.held.lock() {
            held.taken.place.give_way(Arc::clone(&occupant));
            held.occupant = Some(occupant);
        }
    }

    /// Ends the request, because another one takes its place.
    pub fn end(&self) {
        self.ended.notify_one();
    }

    /// Returns when the request is to end, because another one takes its place.
    pub async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Waits for something outside of this server. The request's place is given back meanwhile, if it has one.
    pub async fn away<T>(&self, waits: impl Future<Output = T>) -> Result<T, RpcError> {
        let mut waits = std::pin::pin!(waits);
        if let std::task::Poll::Ready(done) = futures_util::poll!(&mut waits) {
            return Ok(done);
        }
        let resting = self.turn.lock().take().map(Turn::rest);
        let went = self.go()?;
        let done = waits.await;
        if let Some(resting) = resting {
            self.run_again(resting).await?;
        }
        if let Some((seats, party)) = went {
            self.come_back(&seats, party).await?;
        }
        Ok(done)
    }

    /// Counts the call as running until [`Seat::stop`].
    pub fn run(&self, turn: Turn) {
        *self.turn.lock() = Some(turn);
    }

    pub fn stop(&self) {
        let turn = self.turn.lock().take();
        drop(turn);
    }

    async fn run_again(&self, resting: Resting) -> Result<(), RpcError> {
        let Ok(turn) = tokio::time::timeout(RETURN_TIMEOUT, resting.run()).await else {
            let why =
                "the answer came, but as many calls run as `limits` of a role or a plugin allow at once; try again";
            return Err(RpcError::internal(why));
        };
        self.run(turn);
        Ok(())
    }

    /// Takes a place among the waiting requests, in exchange for the one among the requests under way. None: the
    /// request holds no such place.
    fn go(&self) -> Result<Option<(Arc<Seats>, Party)>, RpcError> {
        let mut held = self.held.lock();
        let Some(there) = held.as_mut().filter(|held| !held.away) else { return Ok(None) };
        let (seats, party) = (Arc::clone(&there.taken.seats), there.taken.party);
        let waiting = seats.waiting.take(party).map_err(|full| no_place(&full))?;
        let before = there.change(waiting, true);
        drop(held);
        // Dropped outside of the lock, because that may run the next request in line.
        drop(before);
        Ok(Some((seats, party)))
    }

    async fn come_back(&self, seats: &Arc<Seats>, party: Party) -> Result<(), RpcError> {
        if self.held.lock().is_none() {
            // The request has been answered, and only its task goes on.
            return Ok(());
        }
        let Ok(place) = tokio::time::timeout(RETURN_TIMEOUT, seats.under_way.wait(party)).await else {
            let why = format!("the answer came, but {} requests are under way; try again", seats.under_way.taken());
            return Err(RpcError::internal(why));
        };
        let mut held = self.held.lock();
        let before = match held.as_mut() {
            Some(there) => there.change(place, false),
            None => place,
        };
        drop(held);
        drop(before);
        Ok(())
    }
}

/// Returns the error for a request without a place.
pub fn no_place(full: &PoolFull) -> RpcError {
    RpcError::internal(format!("{full}; try again"))
}

/// The occupant of another place that a request holds while it waits, such as a program that asks a person: it gives way when the request
/// itself does.
pub struct OfRequest<S>(pub S);

impl<S: std::ops::Deref<Target = Seat> + Send + Sync> Occupant for OfRequest<S> {
    fn gives_way(&self, now: Instant) -> Option<GivesWay> {
        let occupant = self.0.held.lock().as_ref()?.occupant.clone();
        occupant?.gives_way(now)
    }

    fn end(&self) {
        self.0.end();
    }
}

/// The occupant of the place of a request whose client may be gone.
pub struct Left<S> {
    /// The seat through which the request is ended.
    pub seat: S,
    /// Returns how long the client has been gone. None: the client is connected.
    pub gone: Box<dyn Fn(Instant) -> Option<Duration> + Send + Sync>,
}

impl<S> Left<S> {
    /// Returns the occupant for a client that left before it learned which stream to come back to.
    pub fn for_good(seat: S) -> Self {
        let since = Instant::now();
        Self { seat, gone: Box::new(move |now| Some(now.saturating_duration_since(since) + GONE_GRACE)) }
    }
}

impl<S: std::ops::Deref<Target = Seat> + Send + Sync> Occupant for Left<S> {
    fn gives_way(&self, now: Instant) -> Option<GivesWay> {
        (self.gone)(now).filter(|gone| *gone >= GONE_GRACE).map(|idle| GivesWay::ToSmaller { idle })
    }

    fn end(&self) {
        self.seat.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn seats() -> (Arc<Seats>, Party, Party) {
        (Seats::new(4), Party::of(1), Party::of(2))
    }

    fn taken(seats: &Seats) -> (usize, usize) {
        (seats.under_way.taken(), seats.waiting.taken())
    }

    #[tokio::test]
    async fn who_waits_for_an_answer_holds_no_place() {
        let (seats, ann, ben) = seats();
        let seat = Seat::default();
        seat.sit(seats.take(ann).unwrap());
        assert_eq!(
            seat.away(std::future::ready(7)).now_or_never(),
            Some(Ok(7)),
            "a future that is ready does not wait"
        );
        let (answer, answered) = tokio::sync::oneshot::channel();
        let mut waits = Box::pin(seat.away(answered));
        assert!(waits.as_mut().now_or_never().is_none());
        assert_eq!(taken(&seats), (0, 1));
        let others: Vec<_> = std::iter::from_fn(|| seats.take(ben).ok()).collect();
        let last = seats.take(ann).unwrap();
        answer.send(5).unwrap();
        assert!(waits.as_mut().now_or_never().is_none(), "all places are taken");
        drop(others);
        assert_eq!(waits.await.unwrap(), Ok(5));
        assert_eq!(taken(&seats), (2, 0));
        drop(last);
        seat.leave();
        assert_eq!(taken(&seats), (0, 0));
    }

    #[tokio::test]
    async fn what_goes_on_as_a_task_gets_no_place_again() {
        let (seats, ann, _) = seats();
        let seat = Seat::default();
        seat.sit(seats.take(ann).unwrap());
        let (answer, answered) = tokio::sync::oneshot::channel();
        let mut waits = Box::pin(seat.away(answered));
        assert!(waits.as_mut().now_or_never().is_none());
        seat.leave();
        assert_eq!(taken(&seats), (0, 0));
        answer.send(()).unwrap();
        waits.await.unwrap().unwrap();
        assert_eq!(taken(&seats), (0, 0));
    }

    #[tokio::test]
    async fn questions_have_a_bound_and_a_part_for_each() {
        let (seats, ann, ben) = seats();
        let asks = |party| {
            let seat = Arc::new(Seat::default());
            seat.sit(seats.take(party).unwrap());
            let waiting = Arc::clone(&seat);
            let mut waits = Box::pin(async move { waiting.away(std::future::pending::<()>()).await });
            let refused = waits.as_mut().now_or_never();
            (seat, waits, refused)
        };
        let mut open = Vec::new();
        let refused = loop {
            let (seat, waits, refused) = asks(ann);
            match refused {
                None => open.push((seat, waits)),
                Some(refused) => break refused.unwrap_err().message,
            }
        };
        assert!(refused.starts_with("this client holds 24 of the 32 places"), "{refused}");
        assert!(asks(ben).2.is_none());
    }

    #[tokio::test]
    async fn a_request_whose_client_is_gone_gives_way() {
        let (seats, ann, ben) = seats();
        let held: Vec<_> = (0..3).map(|_| Arc::new(Seat::default())).collect();
        held.iter().for_each(|seat| seat.sit(seats.take(ann).unwrap()));
        let there = Left { seat: Arc::clone(&held[0]), gone: Box::new(|_| Some(GONE_GRACE / 2)) };
        held[0].give_way(Arc::new(there));
        assert!(seats.take(ann).is_err(), "it may come back");
        held[1].give_way(Arc::new(Left::for_good(Arc::clone(&held[1]))));
        let _others = [seats.take(ben).unwrap(), seats.take(ben).unwrap()];
        held[1].ended().now_or_never().expect("the request gave way");
        assert!(held[0].ended().now_or_never().is_none());
        held[1].leave();
        assert_eq!(taken(&seats).0, 4);
    }
}
