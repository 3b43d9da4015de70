//! Counts connections, in all and from each address, and decides which one is closed when there is no room for another.
//!
//! Unauthenticated clients must not keep out authenticated ones, for instance with connections that send nothing (slowloris). When all
//! places are taken, wharf closes a connection on which no MCP request was ever admitted, else one whose client does not read, else one
//! without a request under way. A connection with requests under way whose client reads is never closed for a new one. If a request has
//! arrived on the connection that is chosen, the connection takes a place again.

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
use futures_util::{future::BoxFuture, poll};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::client::server::Server;
use wharf_base::{
    certificate::Certificate,
    ledger::{Accounts, Ledger},
    party::{Party, named, unauthenticated},
    places::{self, GivesWay, Occupant, Places, PoolFull, PoolRule},
    principal::Principal,
};
use wharf_plugins::observe::record::Transport;

pub static CONNECTIONS: PoolRule = PoolRule {
    of: "connections",
    number: "`connections` in [http]",
    taker: "address",
    until: "the connection ends",
    asking: "held",
    gone: "given back when the connection ends; after 40 s at the latest, if the client vanishes while it is sent something",
    gives_way: "those on which no request was accepted yet; then those whose client does not read, and idle ones",
    old: Duration::from_secs(10),
};

/// A client that has not read for this long may lose its connection to a new one.
const STALL_TOLERANCE: Duration = Duration::from_secs(2);
/// Added to the idle time of a connection whose client does not read, so that it is closed for any other client, and before
/// connections that are only idle.
const STALL_PENALTY: Duration = Duration::from_secs(24 * 60 * 60);

/// The maximum number of requests on a connection before one of them is admitted. Requests that are refused or ask for `/healthz` are not
/// admitted. The answer to the last of them closes the connection.
const MAX_REQUESTS_BEFORE_ADMISSION: usize = 64;

/// How often a chosen connection is polled before it ends. Each poll reads a part of a large request that has arrived.
const POLLS_BEFORE_END: usize = 16;

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remote {
    Address(IpAddr),
    /// A program on this machine of another user than wharf's, at a listener that serves only that one.
    OtherUser(IpAddr),
    /// A program on this machine, at a Unix socket, with the id of its user.
    Local(u32),
}

impl Remote {
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Self::Address(address) | Self::OtherUser(address) => Some(address),
            Self::Local(_) => None,
        }
    }

    /// Returns the party that takes places for connections from here, and for their requests until these are authenticated.
    fn party(self) -> Party {
        match self {
            Self::Address(address) | Self::OtherUser(address) => unauthenticated(Some(address)),
            Self::Local(user) => named(Principal::Local(user)),
        }
    }

    pub fn transport(self) -> Transport {
        match self {
            Self::Address(_) | Self::OtherUser(_) => Transport::Http,
            Self::Local(_) => Transport::Unix,
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::OtherUser(address) => write!(f, "another user at {address}"),
            Self::Local(user) => write!(f, "uid {user}"),
        }
    }
}

/// The other end of a connection.
pub struct Peer {
    remote: Remote,
    /// The accounts of the address, which are charged for the connection's memory until a request is authenticated.
    accounts: Accounts,
    /// The accounts of the client that made the last request.
    known: Mutex<Option<Accounts>>,
    began: Instant,
    /// Whether a request on this connection was admitted.
    admitted: AtomicBool,
    /// The number of requests that were answered before one was admitted.
    unadmitted: AtomicUsize,
    /// The number of requests that are worked on, or whose answers are not read completely.
    busy: AtomicUsize,
    /// When the last of these requests ended, in milliseconds since `began`.
    idle_since: AtomicU64,
    /// When the client last stopped reading, in milliseconds since `began`, plus one. Zero while it reads.
    stalled_since: AtomicU64,
    /// Whether the connection has been chosen to be closed for another one.
    chosen: AtomicBool,
    /// The certificate that the client presented.
    certificate: OnceLock<Arc<Certificate>>,
}

impl Peer {
    fn new(remote: Remote, ledger: &Arc<Ledger>) -> Self {
        Self {
            remote,
            accounts: ledger.client(remote.party()),
            known: Mutex::default(),
            began: Instant::now(),
            admitted: AtomicBool::new(false),
            unadmitted: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            stalled_since: AtomicU64::new(0),
            chosen: AtomicBool::new(false),
            certificate: OnceLock::new(),
        }
    }

    pub fn remote(&self) -> Remote {
        self.remote
    }

    /// Returns the certificate that the client presented, if it did (mTLS).
    pub fn certificate(&self) -> Option<&Arc<Certificate>> {
        self.certificate.get()
    }

    /// Stores the certificate that the client presented when it connected.
    pub fn showed(&self, certificate: Arc<Certificate>) {
        // A client presents one certificate, in the handshake.
        self.certificate.set(certificate).ok();
    }

    /// Whether a request on this connection was ever admitted.
    pub fn is_admitted(&self) -> bool {
        self.admitted.load(Ordering::Relaxed)
    }

    /// Whether the connection has been chosen to be closed for another one.
    pub fn is_chosen(&self) -> bool {
        self.chosen.load(Ordering::Relaxed)
    }

    /// Returns the accounts of a client that makes a request on this connection.
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

    /// Marks the connection as having an admitted request.
    pub fn admit(&self) {
        self.admitted.store(true, Ordering::Relaxed);
    }

    /// Counts an answered request. Returns true if the connection has had its maximum of requests without an admitted one.
    pub fn has_asked_enough(&self) -> bool {
        !self.admitted.load(Ordering::Relaxed)
            && self.unadmitted.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_REQUESTS_BEFORE_ADMISSION
    }

    /// Stores whether the client reads what it is sent.
    pub fn reads(&self, reads: bool) {
        let since = if reads { 0 } else { millis(self.began.elapsed()) + 1 };
        let before = self.stalled_since.load(Ordering::Relaxed);
        // The time at which the client stopped reading stays, until it reads again.
        if reads || before == 0 {
            self.stalled_since.store(since, Ordering::Relaxed);
        }
    }

    fn since(&self, millis: u64, now: Instant) -> Duration {
        now.saturating_duration_since(self.began).saturating_sub(Duration::from_millis(millis))
    }

    /// Returns the clients for which the connection may be closed; `None` if it may not be.
    fn gives_way(&self, now: Instant) -> Option<GivesWay> {
        let stalled_for = match self.stalled_since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => self.since(since - 1, now),
        };
        if !self.admitted.load(Ordering::Relaxed) {
            Some(GivesWay::ToAnyone { idle: now.saturating_duration_since(self.began) })
        } else if stalled_for > STALL_TOLERANCE {
            Some(GivesWay::ToSmaller { idle: STALL_PENALTY + stalled_for })
        } else {
            let idle = || self.since(self.idle_since.load(Ordering::Relaxed), now);
            (self.busy.load(Ordering::Relaxed) == 0).then(|| GivesWay::ToSmaller { idle: idle() })
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX - 1)
}

/// RAII guard of a request under way: the request counts until this is dropped.
pub struct Busy(Arc<Peer>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.idle_since.store(millis(self.0.began.elapsed()), Ordering::Relaxed);
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the pool knows of a connection that has a place.
struct Open {
    peer: Arc<Peer>,
    end: CancellationToken,
}

impl Occupant for Open {
    fn gives_way(&self, now: Instant) -> Option<GivesWay> {
        self.peer.gives_way(now)
    }

    fn end(&self) {
        self.peer.chosen.store(true, Ordering::Relaxed);
        self.end.cancel();
    }
}

/// The place of an open connection, which is free again when this is dropped.
pub struct Place {
    all: Arc<Places>,
    party: Party,
    _held: places::Place,
    /// Cancelled when the place is given to another connection.
    end: CancellationToken,
    pub peer: Arc<Peer>,
}

impl Place {
    fn take(all: &Arc<Places>, party: Party, peer: Arc<Peer>) -> Result<Self, PoolFull> {
        let end = CancellationToken::new();
        let open = Open { peer: Arc::clone(&peer), end: end.clone() };
        let (place, _) = all.take_for(party, Arc::new(open))?;
        Ok(Self { all: Arc::clone(all), party, _held: place, end, peer })
    }

    /// Serves the connection until that is done, or until it is closed for another one. A request may have arrived by then, so a chosen
    /// connection is read once more. If that admits a request, the connection takes a place again, and ends only if it gets none.
    pub async fn serve(mut self, mut served: BoxFuture<'_, ()>) {
        loop {
            tokio::select! {
                biased;
                () = &mut served => return,
                () = self.end.cancelled() => {}
            }
            let mut gives_way = true;
            for _ in 0..POLLS_BEFORE_END {
                if poll!(&mut served).is_ready() {
                    return;
                }
                gives_way = self.peer.gives_way(Instant::now()).is_some();
                if !gives_way {
                    break;
                }
            }
            if gives_way {
                return;
            }
            self.peer.chosen.store(false, Ordering::Relaxed);
            match Self::take(&self.all, self.party, Arc::clone(&self.peer)) {
                Ok(again) => self = again,
                Err(_) => return,
            }
        }
    }
}

/// The places of all connections.
pub struct Connections(Arc<Places>);

impl Connections {
    pub fn new(most: usize) -> Self {
        Self(Places::new(&CONNECTIONS, most))
    }

    /// Returns the number of places that are taken.
    pub fn taken(&self) -> usize {
        self.0.taken()
    }

    /// Admits a new connection, and closes another one for it if necessary. `is_proxy`: whether it comes from a trusted proxy, which may have
    /// all connections, because its clients share them.
    pub fn enter(&self, remote: Remote, is_proxy: bool, ledger: &Arc<Ledger>) -> Result<Place, PoolFull> {
        let party = if is_proxy { Party::SOLE } else { remote.party() };
        Place::take(&self.0, party, Arc::new(Peer::new(remote, ledger)))
    }
}

/// Returns the other end of a request's connection. If another server than wharf's own accepted the connection, at
/// most the address is known.
pub fn peer<B>(request: &http::Request<B>, server: &Server) -> Arc<Peer> {
    if let Some(peer) = request.extensions().get::<Arc<Peer>>() {
        return Arc::clone(peer);
    }
    let given = request.extensions();
    let address = given.get::<SocketAddr>().or_else(|| given.get::<ConnectInfo<SocketAddr>>().map(|info| &info.0));
    let address = address.map(SocketAddr::ip);
    let remote = Remote::Address(address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()));
    Arc::new(Peer::new(remote, &server.ledger))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::transport::http::paced::Paced;

    fn address(last: u8) -> Remote {
        Remote::Address([127, 0, 0, last].into())
    }

    fn ended(place: &Place) -> bool {
        place.end.is_cancelled()
    }

    #[test]
    fn who_shows_no_right_makes_room_and_who_is_served_never_does() {
        let (all, ledger) = (Connections::new(4), Ledger::new(1 << 20));
        let enter = |last| all.enter(address(last), false, &ledger);
        let first = enter(1).unwrap();
        let served = enter(1).unwrap();
        let work = served.peer.work();
        let waits = enter(1).unwrap();
        drop(waits.peer.work());
        let second = enter(2).unwrap();
        let third = enter(3).unwrap();
        assert!(
            ended(&first) && !ended(&second),
            "of the connections without a request, one of the address with the most"
        );
        let _third = third.peer.work();
        let fourth = enter(4).unwrap();
        assert!(ended(&second) && !ended(&waits), "before one that is only idle");
        let _fourth = fourth.peer.work();
        let fifth = enter(5).unwrap();
        assert!(ended(&waits), "then the idle one, because its address holds more");
        let _fifth = fifth.peer.work();
        assert!(enter(6).is_err(), "all are being served");
        served.peer.reads(false);
        assert!(enter(6).is_err(), "a short stall is tolerated");
        drop(work);
        assert!(!ended(&served));
        assert!(
            enter(6).is_err(),
            "it has only just been served, and its address holds no more than the new one would"
        );
    }

    #[tokio::test]
    async fn who_does_not_read_makes_room_for_anyone() {
        let (all, ledger) = (Connections::new(2), Ledger::new(1 << 20));
        let enter = |last| all.enter(address(last), false, &ledger);
        let (slow, other) = (enter(1).unwrap(), enter(2).unwrap());
        let _works = [slow.peer.work(), other.peer.work()];
        slow.peer.reads(false);
        assert!(slow.peer.gives_way(Instant::now()).is_none(), "a short stall is tolerated");
        // A connection that began earlier, and whose client has not read since.
        let began = Instant::now().checked_sub(Duration::from_secs(3)).unwrap();
        let peer = Arc::new(Peer { began, ..Peer::new(address(1), &ledger) });
        peer.admit();
        peer.reads(false);
        peer.stalled_since.store(1, Ordering::Relaxed);
        assert!(matches!(peer.gives_way(Instant::now()), Some(GivesWay::ToSmaller { idle }) if idle > CONNECTIONS.old));
        drop(slow);
        // It takes no place again, although it has a request under way.
        let work = peer.work();
        let slow = Place::take(&all.0, address(1).party(), peer).unwrap();
        let served = slow.serve(Box::pin(std::future::pending()));
        let third = async { enter(3).unwrap() };
        let ((), third) = tokio::join!(served, third);
        assert!(!ended(&third) && !ended(&other));
        drop(work);
    }

    #[tokio::test]
    async fn a_request_that_arrives_while_its_connection_is_chosen_is_answered() {
        let (all, ledger) = (Connections::new(2), Ledger::new(1 << 20));
        let enter = |last| all.enter(address(last), false, &ledger);
        // The first connection reads its request only when the runtime has asked for what has arrived.
        let (late, silent) = (enter(1).unwrap(), enter(1).unwrap());
        let (peer, end) = (Arc::clone(&late.peer), late.end.clone());
        let (asked, answer) = (CancellationToken::new(), CancellationToken::new());
        let (arrives, answers) = (end.clone(), answer.clone());
        let seen = asked.clone();
        let served = late.serve(Box::pin(async move {
            arrives.cancelled().await;
            let _work = peer.work();
            seen.cancel();
            answers.cancelled().await;
        }));
        let silent_end = silent.end.clone();
        let silent = silent.serve(Box::pin(std::future::pending()));
        let third = async {
            tokio::task::yield_now().await;
            let third = enter(2).unwrap();
            assert!(end.is_cancelled() && !silent_end.is_cancelled(), "the one that began first");
            asked.cancelled().await;
            let _work = third.peer.work();
            silent_end.cancelled().await;
            assert_eq!(all.0.taken(), 2, "the first has the place of the second");
            answer.cancel();
            third
        };
        let ((), (), third) = tokio::join!(served, silent, third);
        assert_eq!(all.0.taken(), 1);
        drop(third);
        // If nothing else can be closed, it ends although it is being served.
        let (late, busy) = (enter(1).unwrap(), enter(1).unwrap());
        let _works = busy.peer.work();
        let (peer, end) = (Arc::clone(&late.peer), late.end.clone());
        let served = late.serve(Box::pin(async move {
            end.cancelled().await;
            let _work = peer.work();
            std::future::pending().await
        }));
        let third = async {
            let third = enter(2).unwrap();
            let work = third.peer.work();
            (third, work)
        };
        let ((), _third) = tokio::join!(served, third);
        assert_eq!(all.0.taken(), 2);
    }

    #[tokio::test]
    async fn a_request_that_has_arrived_is_answered_even_if_the_runtime_does_not_know_of_it() {
        let (all, ledger) = (Connections::new(1), Ledger::new(1 << 20));
        let enter = || all.enter(address(1), false, &ledger);
        let (mut far, near) = std::os::unix::net::UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let place = enter().unwrap();
        let (peer, admitted) = (Arc::clone(&place.peer), CancellationToken::new());
        // As in `Endpoint`, a request is admitted when its body is there.
        let service = hyper::service::service_fn(async |request: http::Request<hyper::body::Incoming>| {
            let body = axum::body::to_bytes(axum::body::Body::new(request.into_body()), 100_000).await.unwrap();
            assert_eq!(body.len(), 100_000);
            let _work = peer.work();
            admitted.cancel();
            std::future::pending::<Result<http::Response<axum::body::Body>, hyper::Error>>().await
        });
        let stream = tokio::net::UnixStream::from_std(near).unwrap();
        let stream = hyper_util::rt::TokioIo::new(Paced::new(stream, Arc::clone(&peer), Duration::from_secs(1)));
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(stream, service);
        let mut served = Box::pin(place.serve(Box::pin(async { connection.await.unwrap() })));
        assert!(poll!(&mut served).is_pending(), "nothing has arrived");
        let request = format!("POST / HTTP/1.1\r\ncontent-length: 100000\r\n\r\n{}", "x".repeat(100_000));
        far.write_all(request.as_bytes()).unwrap();
        let second = enter().unwrap();
        assert!(peer.is_chosen());
        // Nothing has been awaited since, so the runtime has not asked the system.
        assert!(poll!(&mut served).is_pending());
        assert!(admitted.is_cancelled() && !peer.is_chosen());
        assert!(ended(&second), "the first connection has its place");
        drop((served, second));
        let idle = enter().unwrap();
        let served = idle.serve(Box::pin(std::future::pending()));
        let ((), third) = tokio::join!(served, async { enter().unwrap() });
        assert!(!ended(&third));
    }

    #[test]
    fn one_address_leaves_room_for_others() {
        let (all, ledger) = (Connections::new(8), Ledger::new(1 << 20));
        let of_one: Vec<Place> = (0..20).filter_map(|_| all.enter(address(1), false, &ledger).ok()).collect();
        assert_eq!(of_one.iter().filter(|place| !ended(place)).count(), 6);
        let others: Vec<Place> = (2..4).filter_map(|last| all.enter(address(last), false, &ledger).ok()).collect();
        assert_eq!(others.len(), 2);
        assert_eq!(of_one.iter().filter(|place| !ended(place)).count(), 6, "no connection was closed");
        drop(of_one);
        assert_eq!(all.0.taken(), 2);
    }

    #[test]
    fn an_address_has_its_share_and_a_proxy_has_all() {
        let (all, ledger) = (Connections::new(8), Ledger::new(1 << 20));
        let served = |last, is_proxy| {
            let place = all.enter(address(last), is_proxy, &ledger).ok()?;
            let work = place.peer.work();
            Some((place, work))
        };
        let of_one: Vec<_> = (0..20).map_while(|_| served(1, false)).collect();
        assert_eq!(of_one.len(), 6);
        let of_proxy: Vec<_> = (0..20).map_while(|_| served(2, true)).collect();
        assert_eq!(of_proxy.len(), 2, "all that are left");
        drop(of_one);
        assert!(served(1, false).is_some());
    }

    #[test]
    fn what_is_charged_moves_from_the_address_to_the_client() {
        let ledger = Ledger::new(1 << 20);
        let peer = Peer::new(address(1), &ledger);
        let (ann, ben) = (named("ann"), named("ben"));
        let paid = peer.accounts(ann, &ledger).charge(100).unwrap();
        assert_eq!((peer.accounts.used(), peer.accounts(ann, &ledger).used()), (0, 100));
        assert_eq!(peer.accounts(ben, &ledger).used(), 0, "a proxy's connection serves one client after the other");
        assert_eq!(peer.accounts(ann, &ledger).used(), 100);
        assert_eq!(peer.accounts(unauthenticated(address(1).address()), &ledger).party(), peer.accounts.party());
        drop(paid);
    }
}
