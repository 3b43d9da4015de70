//! Counts connections, in all and from each address, and decides which one is ended when there is no room for another.
//!
//! Clients without the right to talk to the server must not keep out those who have it. So when there is no room, a connection
//! is ended on which no MCP request was ever accepted, else one whose client does not read, else one without a request under
//! way. A connection with requests under way whose client reads is never ended for a new one.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::extract::ConnectInfo;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    base::{
        certificate::Certificate,
        ledger::{Accounts, Ledger},
        party::{Party, named, stranger},
        places::{self, Full, GivesWay, Occupant, Places, Rule},
        principal::Principal,
    },
    client::server::Server,
    observe::record::Transport,
};

pub static CONNECTIONS: Rule = Rule {
    of: "connections",
    number: "`connections` in [http]",
    taker: "address",
    until: "the connection ends",
    asking: "held",
    gone: "given back when the connection ends; after 40 s at the latest, if the client vanishes while it is sent something",
    gives_way: "those on which no request was accepted yet; then those whose client does not read, and idle ones",
    old: Duration::from_secs(10),
};

/// A client that has not read for so long may lose its connection to a new one.
const PATIENT: Duration = Duration::from_secs(2);
/// A client that does not read counts as idle for so much longer than it has not read, so that its connection is ended for any other,
/// and before connections that only wait.
const WORSE_THAN_IDLE: Duration = Duration::from_secs(24 * 60 * 60);

/// How many requests a connection may make before one is admitted; others are refused, or ask for `/healthz`. The answer to the
/// last of them closes the connection.
const MAX_OF_STRANGERS: usize = 64;

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remote {
    Address(IpAddr),
    /// A program of this user of the machine, by number.
    Local(u32),
}

impl Remote {
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(address),
            Self::Local(_) => None,
        }
    }

    /// The taker of places that its connections are, and that its requests are as long as nobody says who makes them.
    fn party(self) -> Party {
        match self {
            Self::Address(address) => stranger(Some(address)),
            Self::Local(user) => named(Principal::Local(user)),
        }
    }

    pub fn transport(self) -> Transport {
        match self {
            Self::Address(_) => Transport::Http,
            Self::Local(_) => Transport::Unix,
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Local(user) => write!(f, "uid {user}"),
        }
    }
}

/// The other end of a connection.
pub struct Peer {
    remote: Remote,
    /// What the connection makes wharf keep before it is known who makes a request is charged to the address.
    accounts: Accounts,
    /// The accounts of the client that made the last request.
    known: Mutex<Option<Accounts>>,
    began: Instant,
    /// Whether a request of it was admitted.
    admitted: AtomicBool,
    /// How many requests were answered before one was admitted.
    strangers: AtomicUsize,
    /// How many requests are worked on, or have answers that are not read completely.
    busy: AtomicUsize,
    /// When the last of them ended, in milliseconds since `began`.
    rests: AtomicU64,
    /// When it last stopped reading, in milliseconds since `began`, plus one. Zero while it reads.
    stalled: AtomicU64,
    /// The certificate that the client showed.
    certificate: OnceLock<Arc<Certificate>>,
    /// Cancelled when the connection must be ended to make room.
    pub end: CancellationToken,
}

impl Peer {
    fn new(remote: Remote, ledger: &Arc<Ledger>) -> Self {
        Self {
            remote,
            accounts: ledger.client(remote.party()),
            known: Mutex::default(),
            began: Instant::now(),
            admitted: AtomicBool::new(false),
            strangers: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            rests: AtomicU64::new(0),
            stalled: AtomicU64::new(0),
            certificate: OnceLock::new(),
            end: CancellationToken::new(),
        }
    }

    pub fn remote(&self) -> Remote {
        self.remote
    }

    /// Who the client is by its certificate, if it showed one.
    pub fn certificate(&self) -> Option<&Arc<Certificate>> {
        self.certificate.get()
    }

    /// Notes the certificate that the client showed when it connected.
    pub fn showed(&self, certificate: Arc<Certificate>) {
        // A connection shows one certificate, at its beginning.
        self.certificate.set(certificate).ok();
    }

    /// Whether a request of it was ever admitted.
    pub fn is_admitted(&self) -> bool {
        self.admitted.load(Ordering::Relaxed)
    }

    /// The accounts of its address.
    pub fn of_address(&self) -> &Accounts {
        &self.accounts
    }

    /// The accounts of the client that makes a request on it.
    pub fn accounts(&self, client: Party, ledger: &Arc<Ledger>) -> Accounts {
        if client == self.accounts.party() {
            return self.accounts.clone();
        }
        let mut known = self.known.lock();
        match &*known {
            Some(accounts) if accounts.party() == client => accounts.clone(),
            _ => known.insert(ledger.client(client)).clone(),
        }
    }

    /// Counts an admitted request until the returned value is dropped.
    pub fn work(self: &Arc<Self>) -> Busy {
        self.admit();
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    /// Notes that a request of it was admitted.
    pub fn admit(&self) {
        self.admitted.store(true, Ordering::Relaxed);
    }

    /// Counts an answered request. True if there were too many without one that was admitted.
    pub fn has_asked_enough(&self) -> bool {
        !self.admitted.load(Ordering::Relaxed) && self.strangers.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_OF_STRANGERS
    }

    /// Notes whether the client reads what it is sent.
    pub fn reads(&self, reads: bool) {
        let since = if reads { 0 } else { millis(self.began.elapsed()) + 1 };
        let before = self.stalled.load(Ordering::Relaxed);
        // Only the first time that it did not read is kept, until it reads again.
        if reads || before == 0 {
            self.stalled.store(since, Ordering::Relaxed);
        }
    }

    fn since(&self, millis: u64, now: Instant) -> Duration {
        now.saturating_duration_since(self.began).saturating_sub(Duration::from_millis(millis))
    }
}

impl Occupant for Peer {
    fn gives_way(&self, now: Instant) -> Option<GivesWay> {
        let stalled = match self.stalled.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => self.since(since - 1, now),
        };
        if !self.admitted.load(Ordering::Relaxed) {
            Some(GivesWay::ToAnyone { idle: now.saturating_duration_since(self.began) })
        } else if stalled > PATIENT {
            Some(GivesWay::ToSmaller { idle: WORSE_THAN_IDLE + stalled })
        } else {
            let idle = || self.since(self.rests.load(Ordering::Relaxed), now);
            (self.busy.load(Ordering::Relaxed) == 0).then(|| GivesWay::ToSmaller { idle: idle() })
        }
    }

    fn end(&self) {
        self.end.cancel();
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX - 1)
}

/// A request that is under way until this is dropped.
pub struct Busy(Arc<Peer>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.rests.store(millis(self.0.began.elapsed()), Ordering::Relaxed);
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The place of an open connection, which is free again when this is dropped.
pub struct Place {
    _place: places::Place,
    pub peer: Arc<Peer>,
}

pub struct Connections(Arc<Places>);

impl Connections {
    pub fn new(most: usize) -> Self {
        Self(Places::new(&CONNECTIONS, most))
    }

    /// Takes a new connection in, and ends another one for it if necessary.
    pub fn enter(&self, remote: Remote, ledger: &Arc<Ledger>) -> Result<Place, Full> {
        let peer = Arc::new(Peer::new(remote, ledger));
        let (place, _) = self.0.take_for(remote.party(), Arc::clone(&peer) as Arc<dyn Occupant>)?;
        Ok(Place { _place: place, peer })
    }
}

/// The other end of a request's connection. If another server than wharf's own accepted the connection, only the address is
/// known, if that.
pub fn peer<B>(request: &http::Request<B>, server: &Server) -> Arc<Peer> {
    if let Some(peer) = request.extensions().get::<Arc<Peer>>() {
        return Arc::clone(peer);
    }
    let address = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let remote = Remote::Address(address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()));
    Arc::new(Peer::new(remote, &server.ledger))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Remote {
        Remote::Address([127, 0, 0, last].into())
    }

    fn ended(place: &Place) -> bool {
        place.peer.end.is_cancelled()
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
        let second = enter(2).unwrap();
        let third = enter(3).unwrap();
        assert!(
            ended(&first) && !ended(&second),
            "of those that have never asked for anything, one of the largest holder"
        );
        let _third = third.peer.work();
        let fourth = enter(4).unwrap();
        assert!(ended(&second) && !ended(&waits), "before one that only waits");
        let _fourth = fourth.peer.work();
        let fifth = enter(5).unwrap();
        assert!(ended(&waits), "then the one that only waits, because its address holds more");
        let _fifth = fifth.peer.work();
        assert!(enter(6).is_err(), "all are being served");
        served.peer.reads(false);
        assert!(enter(6).is_err(), "a moment is nothing");
        drop(work);
        assert!(!ended(&served));
        assert!(
            enter(6).is_err(),
            "it has only just been served, and its address holds no more than the new one would"
        );
    }

    #[test]
    fn who_does_not_read_makes_room_for_anyone() {
        let (all, ledger) = (Connections::new(2), Ledger::new(1 << 20));
        let (slow, other) = (all.enter(address(1), &ledger).unwrap(), all.enter(address(2), &ledger).unwrap());
        let _works = [slow.peer.work(), other.peer.work()];
        slow.peer.reads(false);
        assert!(slow.peer.gives_way(Instant::now()).is_none(), "a moment is nothing");
        // As if it had begun before, and has not read since.
        let mut slow = slow;
        let began = Instant::now().checked_sub(Duration::from_secs(3)).unwrap();
        let peer = Arc::new(Peer { began, ..Peer::new(address(1), &ledger) });
        peer.admit();
        peer.reads(false);
        peer.stalled.store(1, Ordering::Relaxed);
        assert!(matches!(peer.gives_way(Instant::now()), Some(GivesWay::ToSmaller { idle }) if idle > CONNECTIONS.old));
        slow.peer = peer;
    }

    #[test]
    fn one_address_leaves_room_for_others() {
        let (all, ledger) = (Connections::new(8), Ledger::new(1 << 20));
        let of_one: Vec<Place> = (0..20).filter_map(|_| all.enter(address(1), &ledger).ok()).collect();
        assert_eq!(of_one.iter().filter(|place| !ended(place)).count(), 6);
        let others: Vec<Place> = (2..4).filter_map(|last| all.enter(address(last), &ledger).ok()).collect();
        assert_eq!(others.len(), 2);
        assert_eq!(of_one.iter().filter(|place| !ended(place)).count(), 6, "nobody had to go");
        drop(of_one);
        assert_eq!(all.0.taken(), 2);
    }

    #[test]
    fn what_is_charged_moves_from_the_address_to_the_client() {
        let ledger = Ledger::new(1 << 20);
        let peer = Peer::new(address(1), &ledger);
        let (ann, ben) = (named("ann"), named("ben"));
        let paid = peer.accounts(ann, &ledger).charge(100).unwrap();
        assert_eq!((peer.of_address().used(), peer.accounts(ann, &ledger).used()), (0, 100));
        assert_eq!(peer.accounts(ben, &ledger).used(), 0, "a proxy's connection serves one client after the other");
        assert_eq!(peer.accounts(ann, &ledger).used(), 100);
        assert_eq!(peer.accounts(stranger(address(1).address()), &ledger).party(), peer.of_address().party());
        drop(paid);
    }
}
