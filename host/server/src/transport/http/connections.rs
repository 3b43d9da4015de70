//! Counts connections, in all and from each address, and decides which one is ended when there is no room for another.
//!
//! Clients without the right to talk to the server must not keep out those who have it. So when there is no room, a connection
//! is ended on which no MCP request was ever accepted, else one whose client does not read, else one without a request under
//! way. A connection with requests under way whose client reads is never ended for a new one.

use std::{
    collections::HashMap,
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
        ledger::{Account, Holder, Ledger},
    },
    client::server::Server,
    observe::record::Transport,
};

/// A client that has not read for so long may lose its connection to a new one.
const PATIENT: Duration = Duration::from_secs(2);

/// How many requests a connection may make before one is admitted; others are refused, or ask for `/healthz`. The answer to the
/// last of them closes the connection.
const MAX_OF_STRANGERS: usize = 64;

pub struct Connections {
    most: usize,
    most_of_one: usize,
    began: Instant,
    open: Mutex<HashMap<u64, Arc<Peer>>>,
    last: AtomicU64,
}

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
    number: u64,
    remote: Remote,
    client: Holder,
    began: Instant,
    /// Whether a request of it was admitted.
    admitted: AtomicBool,
    /// How many requests were answered before one was admitted.
    strangers: AtomicUsize,
    /// How many requests are worked on, or have answers that are not read completely.
    busy: AtomicUsize,
    /// When it last stopped reading, in milliseconds since `began`, plus one. Zero while it reads.
    stalled: AtomicU64,
    /// The certificate that the client showed.
    certificate: OnceLock<Arc<Certificate>>,
    /// Cancelled when the connection must be ended to make room.
    pub end: CancellationToken,
}

impl Peer {
    fn new(number: u64, remote: Remote, began: Instant, ledger: &Arc<Ledger>) -> Self {
        Self {
            number,
            remote,
            client: ledger.client(&remote.to_string()),
            began,
            admitted: AtomicBool::new(false),
            strangers: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
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

    pub fn account(&self) -> &Account {
        &self.client.account
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

    /// Of all connections, the one with the smallest rank is ended first. None: it is not ended for a new one.
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

/// A request that is under way until this is dropped.
pub struct Busy(Arc<Peer>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The place of an open connection, which is free again when this is dropped.
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

    /// Takes a new connection in, and ends another one for it if necessary. None: there is no room.
    pub fn enter(self: &Arc<Self>, remote: Remote, ledger: &Arc<Ledger>) -> Option<Place> {
        let mut open = self.open.lock();
        let of_one = || open.values().filter(|peer| peer.remote == remote).count();
        let of_one_only = open.len() >= self.most_of_one && of_one() >= self.most_of_one;
        if of_one_only || open.len() >= self.most {
            let candidates = open.values().filter(|peer| !of_one_only || peer.remote == remote);
            let ranked = candidates.filter_map(|peer| Some((peer.rank()?, peer.number)));
            // Of several with the smallest rank, the oldest is ended.
            let (_, number) = ranked.min()?;
            // It no longer counts from now on, although it may take a moment to end.
            open.remove(&number)?.end.cancel();
        }
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let peer = Arc::new(Peer::new(number, remote, self.began, ledger));
        open.insert(number, Arc::clone(&peer));
        Some(Place { all: Arc::clone(self), peer })
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
    Arc::new(Peer::new(0, remote, Instant::now(), &server.ledger))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Remote {
        Remote::Address([127, 0, 0, last].into())
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
