//! Connections of plugins to servers. A name is resolved, every resolved address is checked, and the connection is made to one of the checked
//! addresses, without a second look-up (protection against DNS rebinding).

use std::{
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use parking_lot::RwLock;
use tokio::{net::TcpStream, runtime::Handle, time::timeout};
use tokio_util::task::AbortOnDropHandle;
use wharf_scope::network::HttpRefusal;

use super::{
    address::{AddressKind, judge},
    answers::Answers,
    line::{ALL_REQUESTS, Io, Line},
    route::{CONNECT_TIMEOUT, Route, Unconnected},
    target::{Host, Target},
};
use wharf_base::{
    party::Party,
    places::{Place, Places, PoolRule},
    refusals::Refusals,
};

/// The time limit of a DNS look-up.
const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(5);
/// The most addresses of one name that are tried.
const MAX_ADDRESSES_TRIED: usize = 4;
/// The most DNS look-ups at once. `getaddrinfo` runs on the blocking threads, which file I/O needs too, and cannot be cancelled.
const MAX_LOOK_UPS: usize = 16;
/// The most connections at once, including idle ones.
const MAX_CONNECTIONS: usize = 128;

/// The limit of DNS look-ups.
pub static LOOK_UPS: PoolRule = PoolRule {
    of: "DNS look-ups for plugins",
    number: "16",
    taker: "plugin",
    until: "the operating system has answered, however long that takes",
    asking: "not held: no call of a plugin runs while it waits for a person",
    gone: "held until the operating system has answered, since a look-up cannot be cancelled",
    gives_way: "nothing; a request waits 5 s for its turn, and the plugin with the fewest look-ups is next",
    old: Duration::MAX,
};

/// The limit of connections to servers.
pub static CONNECTIONS: PoolRule = PoolRule {
    of: "connections of plugins to servers",
    number: "128",
    taker: "plugin",
    until: "the connection is closed: after the response, or 15 s later if it can be used again",
    asking: "not held: no call of a plugin runs while it waits for a person; the connection may be idle for 15 s",
    gone: "given back, since the connection is closed with the call that uses it",
    gives_way: "idle connections, the longest idle first, to plugins with fewer connections and to the same plugin's requests to other servers",
    old: Duration::from_secs(5),
};

/// The addresses that a connection may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Allowed {
    Public,
    /// Public and private addresses.
    Private,
    /// The address that is the host of the rule, whatever its kind.
    Spelled,
}

impl Allowed {
    fn allows(self, address: IpAddr) -> bool {
        match judge(address) {
            AddressKind::Public => true,
            AddressKind::Private => self != Self::Public,
            AddressKind::Never => self == Self::Spelled,
        }
    }
}

/// Resolves names to addresses.
pub trait Resolve: Send + Sync {
    /// Resolves a name. `turn` has to be held until the look-up has finished, which may be after the future is dropped.
    fn resolve(&self, name: &str, turn: Place) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;
}

/// The resolver of the operating system.
pub struct System;

impl Resolve for System {
    fn resolve(&self, name: &str, turn: Place) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        let name = name.to_owned();
        #[expect(clippy::disallowed_methods, reason = "waited for, and counted by its turn for as long as it takes")]
        let looking = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            Ok((name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect())
        });
        Box::pin(async move { looking.await.map_err(io::Error::other)? })
    }
}

/// The state that the connections of all plugins share.
pub struct Dialer {
    pub resolver: Box<dyn Resolve>,
    look_ups: Arc<Places>,
    pub connections: Arc<Places>,
    /// The requests of all plugins, by client.
    pub requests: Arc<Places>,
    /// The addresses at which wharf itself listens.
    pub own: RwLock<Vec<SocketAddr>>,
    /// Logs what is wrong with the config, at a limited rate.
    pub refusals: Refusals,
    /// Replaces all servers in a test; no connections are made then.
    pub answers: Option<Arc<dyn Answers>>,
}

impl Dialer {
    pub fn new(resolver: Box<dyn Resolve>) -> Self {
        Self {
            resolver,
            look_ups: Places::new(&LOOK_UPS, MAX_LOOK_UPS),
            connections: Places::new(&CONNECTIONS, MAX_CONNECTIONS),
            requests: Places::new(&ALL_REQUESTS, MAX_CONNECTIONS),
            own: RwLock::default(),
            refusals: Refusals::default(),
            answers: None,
        }
    }

    /// Resolves a host and returns its addresses, all of which are allowed. `party` is the plugin that the look-up counts for.
    async fn addresses(&self, target: &Target, allowed: Allowed, party: Party) -> Result<Vec<SocketAddr>, Unconnected> {
        let addresses = match &target.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                let turn = timeout(LOOK_UP_TIMEOUT, self.look_ups.wait(party)).await;
                let looked_up = self.resolver.resolve(name, turn.map_err(|_| Unconnected::LookUpTimeout)?);
                let found = timeout(LOOK_UP_TIMEOUT, looked_up).await.map_err(|_| Unconnected::LookUpTimeout)?;
                found.map_err(|error| Unconnected::LookUp(error.to_string()))?
            }
        };
        if addresses.is_empty() {
            return Err(Unconnected::LookUp("the name has no address".into()));
        }
        // One address that is not allowed refuses all of them: the next look-up could return only that one.
        if let Some(refused) = addresses.iter().find(|address| !allowed.allows(**address)) {
            return Err(Unconnected::Refused(HttpRefusal::Address(refused.to_string())));
        }
        let addresses: Vec<SocketAddr> =
            addresses.into_iter().map(|address| SocketAddr::new(address, target.port)).collect();
        if addresses.iter().any(|address| self.is_own(address)) {
            return Err(Unconnected::Refused(HttpRefusal::Address("wharf itself".into())));
        }
        Ok(addresses)
    }

    fn is_own(&self, address: &SocketAddr) -> bool {
        self.own.read().iter().any(|own| {
            let same = own.ip() == address.ip().to_canonical() || own.ip().is_unspecified();
            own.port() == address.port()
                && (same || (own.ip().is_loopback() && address.ip().to_canonical().is_loopback()))
        })
    }

    async fn dial(&self, target: &Target, allowed: Allowed, party: Party) -> Result<TcpStream, Unconnected> {
        let mut last = Unconnected::Timeout;
        for address in self.addresses(target, allowed, party).await?.into_iter().take(MAX_ADDRESSES_TRIED) {
            match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    stream.set_nodelay(true).map_err(Unconnected::Connect)?;
                    return Ok(stream);
                }
                Ok(Err(error)) => last = Unconnected::Connect(error),
                Err(_) => last = Unconnected::Timeout,
            }
        }
        Err(last)
    }
}

/// Makes the connections of one plugin.
#[derive(Clone)]
pub struct Connector {
    pub dialer: Arc<Dialer>,
    /// The number of the plugin's network; each has its own pool of connections.
    pub network: u64,
    /// The plugin.
    pub party: Party,
    pub allowed: Allowed,
    pub route: Route,
    /// The runtime on whose threads connections run, wherever the request comes from.
    pub io: Handle,
}

impl Connector {
    async fn connect(self, uri: Uri) -> Result<Io, Unconnected> {
        let target = Target::of(&uri).map_err(|problem| Unconnected::Config(problem.to_owned()))?;
        let line = Line::new((self.network, self.allowed, uri.scheme_str(), uri.authority()));
        let place =
            timeout(CONNECT_TIMEOUT, self.dialer.connections.wait_for(self.party, Arc::clone(&line) as _)).await;
        let place = place.map_err(|_| Unconnected::Refused(HttpRefusal::Limit("http_at_once")))?;
        let dial = self.dialer.dial(&target, self.allowed, self.party);
        let stream = self.route.open(&uri, &target, dial).await?;
        Ok(Io::new(stream, line, place))
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = Io;
    type Error = Unconnected;
    type Future = Pin<Box<dyn Future<Output = Result<Io, Unconnected>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unconnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let io = self.io.clone();
        let connecting = AbortOnDropHandle::new(io.spawn(self.clone().connect(uri)));
        Box::pin(async move { connecting.await.unwrap_or_else(|error| Err(Unconnected::Config(error.to_string()))) })
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use wharf_base::party::named;

    /// Returns the scripted answers one by one.
    struct Scripted(Mutex<Vec<Vec<&'static str>>>);

    impl Resolve for Scripted {
        fn resolve(&self, _: &str, _: Place) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
            let next = self.0.lock().remove(0);
            Box::pin(async move { Ok(next.iter().map(|text| text.parse().unwrap()).collect()) })
        }
    }

    fn dialer(answers: Vec<Vec<&'static str>>) -> Dialer {
        Dialer::new(Box::new(Scripted(Mutex::new(answers))))
    }

    fn target(url: &str) -> Target {
        Target::of(&url.parse().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn every_answer_of_every_look_up_is_judged() {
        let public = vec!["93.184.216.34"];
        let rebound = vec![
            public.clone(),
            vec!["127.0.0.1"],
            vec!["93.184.216.34", "10.0.0.1"],
            vec!["::ffff:10.0.0.1"],
            public,
            vec![],
        ];
        let dialer = dialer(rebound);
        let target = target("https://api.example.com/");
        for expected in [None, Some("127.0.0.1"), Some("10.0.0.1"), Some("::ffff:10.0.0.1"), None, Some("no address")] {
            match (dialer.addresses(&target, Allowed::Public, named("plugin")).await, expected) {
                (Ok(addresses), None) => assert_eq!(addresses, ["93.184.216.34:443".parse().unwrap()]),
                (Err(Unconnected::Refused(HttpRefusal::Address(address))), Some(expected)) => {
                    assert_eq!(address, expected);
                }
                (Err(Unconnected::LookUp(error)), Some(expected)) => assert!(error.contains(expected)),
                (got, expected) => panic!("{got:?} {expected:?}"),
            }
        }
    }

    /// Never answers, and keeps its turns.
    struct Stuck(Mutex<Vec<Place>>);

    impl Resolve for Stuck {
        fn resolve(&self, _: &str, turn: Place) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
            self.0.lock().push(turn);
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test]
    async fn one_plugin_does_not_take_all_look_ups() {
        let dialer = Dialer::new(Box::new(Stuck(Mutex::default())));
        let target = target("https://slow.example/");
        let look_up = |plugin: &'static str| dialer.addresses(&target, Allowed::Public, named(plugin));
        let many = futures_util::future::join_all((0..64).map(|_| look_up("greedy")));
        assert!(timeout(Duration::from_millis(1), many).await.is_err());
        assert_eq!(dialer.look_ups.taken(), MAX_LOOK_UPS / 4 * 3);
        assert!(timeout(Duration::from_millis(1), look_up("other")).await.is_err(), "it is being looked up");
        assert_eq!(dialer.look_ups.taken(), MAX_LOOK_UPS / 4 * 3 + 1);
    }

    #[tokio::test]
    async fn what_private_opens_and_what_only_an_address_does() {
        for (url, answer, allowed, expected) in [
            ("http://10.0.0.1/", vec![], Allowed::Public, false),
            ("http://10.0.0.1/", vec![], Allowed::Private, true),
            ("http://name.example/", vec!["10.0.0.1"], Allowed::Private, true),
            ("http://name.example/", vec!["169.254.169.254"], Allowed::Private, false),
            ("http://169.254.169.254/", vec![], Allowed::Private, false),
            ("http://169.254.169.254/", vec![], Allowed::Spelled, true),
        ] {
            let judged = dialer(vec![answer]).addresses(&target(url), allowed, named("plugin")).await;
            assert_eq!(judged.is_ok(), expected, "{url} {allowed:?}");
        }
    }

    #[tokio::test]
    async fn wharf_does_not_call_itself() {
        let dialer = dialer(vec![vec!["127.0.0.1"]; 2]);
        dialer.own.write().push("127.0.0.1:7300".parse().unwrap());
        for (url, expected) in [
            ("http://localhost:7300/mcp", false),
            ("http://[::1]:7300/mcp", false),
            ("http://127.0.0.2:7300/mcp", false),
            ("http://[::ffff:127.0.0.1]:7300/mcp", false),
            ("http://localhost:7301/", true),
        ] {
            assert_eq!(
                dialer.addresses(&target(url), Allowed::Private, named("plugin")).await.is_ok(),
                expected,
                "{url}"
            );
        }
    }
}
