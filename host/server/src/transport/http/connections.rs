//! The connections there are: how many in all and from one address, and which has to go where there is no room for another.
//!
//! What is refused before it has shown a right to be here must not keep out who has one: where it is full, the connection goes
//! that has never made a request of MCP, else one that does not read, else one that only waits. What is being worked for,
//! and reads, is never ended for a newcomer.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::extract::ConnectInfo;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    base::ledger::{Account, Holder, Ledger},
    client::server::Server,
};

/// Who does not read for so long may have to go.
const PATIENT: Duration = Duration::from_secs(2);

/// Requests on one connection while none of them was admitted: of the server's health, or refused. The last is answered,
/// and says that the connection ends with it.
const MAX_OF_STRANGERS: usize = 64;

pub struct Connections {
    most: usize,
    most_of_one: usize,
    began: Instant,
    open: Mutex<HashMap<u64, Arc<Peer>>>,
    last: AtomicU64,
}

/// The other end of a connection.
pub struct Peer {
    number: u64,
    address: IpAddr,
    client: Holder,
    began: Instant,
    /// It has sent a message that was taken.
    admitted: AtomicBool,
    /// Requests before that.
    strangers: AtomicUsize,
    /// Requests that are worked for, or whose answers are being read.
    busy: AtomicUsize,
    /// Milliseconds since the start when it last stopped reading, plus one; zero while it reads.
    stalled: AtomicU64,
    /// Cancelled where it has to go.
    pub end: CancellationToken,
}

impl Peer {
    fn new(number: u64, address: IpAddr, began: Instant, ledger: &Arc<Ledger>) -> Self {
        Self {
            number,
            address,
            client: ledger.client(&address.to_string()),
            began,
            admitted: AtomicBool::new(false),
            strangers: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            stalled: AtomicU64::new(0),
            end: CancellationToken::new(),
        }
    }

    pub fn address(&self) -> IpAddr {
        self.address
    }

    pub fn account(&self) -> &Account {
        &self.client.account
    }

    /// Counts a request that is admitted, until it is over.
    pub fn work(self: &Arc<Self>) -> Busy {
        self.admit();
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    /// It has shown that it may be here.
    pub fn admit(&self) {
        self.admitted.store(true, Ordering::Relaxed);
    }

    /// Counts a request that was answered; true if that is enough for somebody of whom nothing was ever taken.
    pub fn has_asked_enough(&self) -> bool {
        !self.admitted.load(Ordering::Relaxed) && self.strangers.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_OF_STRANGERS
    }

    /// Says whether it reads what it is sent.
    pub fn reads(&self, reads: bool) {
        let since = if reads { 0 } else { millis(self.began.elapsed()) + 1 };
        let before = self.stalled.load(Ordering::Relaxed);
        // Since when counts, not how often it was tried.
        if reads || before == 0 {
            self.stalled.store(since, Ordering::Relaxed);
        }
    }

    /// How willingly it is ended: the smaller, the sooner. None: not for anybody.
    fn rank(&self) -> Option<u8> {
        let stalled = match self.stalled.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => self.began.elapsed().saturating_sub(Duration::from_millis(since - 1)),
        };
        if !self.admitted.load(Ordering::Relaxed) {
            Some(0)
        } else if stalled > PATIENT {
            Some(1)
        } else {
            (self.busy.load(Ordering::Relaxed) == 0).then_some(2)
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX - 1)
}

/// A request under way.
pub struct Busy(Arc<Peer>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A place among the connections, for as long as one is open.
pub struct Place {
    all: Arc<Connections>,
    pub peer: Arc<Peer>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.open.lock().remove(&self.peer.number);
    }
}

impl Connections {
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            most_of_one: (most / 4 * 3).max(1),
            began: Instant::now(),
            open: Mutex::default(),
            last: AtomicU64::new(0),
        })
    }

    /// Takes a connection in, if need be in the place of another. None: there is no room.
    pub fn enter(self: &Arc<Self>, address: IpAddr, ledger: &Arc<Ledger>) -> Option<Place> {
        let mut open = self.open.lock();
        let of_one = || open.values().filter(|peer| peer.address == address).count();
        let of_one_only = open.len() >= self.most_of_one && of_one() >= self.most_of_one;
        if of_one_only || open.len() >= self.most {
            let candidates = open.values().filter(|peer| !of_one_only || peer.address == address);
            let ranked = candidates.filter_map(|peer| Some((peer.rank()?, peer.number)));
            // Of those alike, the oldest.
            let (_, number) = ranked.min()?;
            // Its own place is given up when it is gone; it no longer counts.
            open.remove(&number)?.end.cancel();
        }
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let peer = Arc::new(Peer::new(number, address, self.began, ledger));
        open.insert(number, Arc::clone(&peer));
        Some(Place { all: Arc::clone(self), peer })
    }
}

/// The other end of the connection that a request came on. Where it is not this server's own connection, it is known by its
/// address, if at all.
pub fn peer<B>(request: &http::Request<B>, server: &Server) -> Arc<Peer> {
    if let Some(peer) = request.extensions().get::<Arc<Peer>>() {
        return Arc::clone(peer);
    }
    let address = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    Arc::new(Peer::new(0, address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), Instant::now(), &server.ledger))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [127, 0, 0, last].into()
    }

    #[test]
    fn who_shows_no_right_makes_room_and_who_is_served_never_does() {
        let (all, ledger) = (Connections::new(4), Ledger::new(1 << 20));
        let enter = |last| all.enter(address(last), &ledger);
        let first = enter(1).unwrap();
        let served = enter(1).unwrap();
        let work = served.peer.work();
        let waits = enter(1).unwrap();
        drop(waits.peer.work());
        let other = enter(2).unwrap();
        let _other = other.peer.work();
        let second = enter(2).unwrap();
        assert!(first.peer.end.is_cancelled(), "the one that has never asked for anything");
        let third = enter(2).unwrap();
        assert!(second.peer.end.is_cancelled() && !waits.peer.end.is_cancelled());
        let _third = third.peer.work();
        let fourth = enter(3).unwrap();
        assert!(waits.peer.end.is_cancelled(), "then the one that only waits");
        let _fourth = fourth.peer.work();
        assert!(enter(3).is_none(), "all are being served");
        served.peer.reads(false);
        std::thread::scope(|_| assert!(enter(3).is_none(), "a moment is nothing"));
        drop(work);
        assert!(enter(3).is_some());
        assert!(served.peer.end.is_cancelled());
    }

    #[test]
    fn one_address_leaves_room_for_others() {
        let (all, ledger) = (Connections::new(8), Ledger::new(1 << 20));
        let of_one: Vec<Place> = (0..20).filter_map(|_| all.enter(address(1), &ledger)).collect();
        assert_eq!(of_one.iter().filter(|place| !place.peer.end.is_cancelled()).count(), 6);
        let others: Vec<Place> = (2..4).filter_map(|last| all.enter(address(last), &ledger)).collect();
        assert_eq!(others.len(), 2);
        assert_eq!(of_one.iter().filter(|place| !place.peer.end.is_cancelled()).count(), 6, "nobody had to go");
        drop(of_one);
        assert_eq!(all.open.lock().len(), 2);
    }
}
