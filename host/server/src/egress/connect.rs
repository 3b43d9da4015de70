//! Connections to servers: names are looked up, every address is judged, and the connection is made to a judged address.

use std::{
    error::Error as StdError,
    fmt, io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_util::{client::legacy::connect::proxy::Tunnel, rt::TokioIo};
use parking_lot::RwLock;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{net::TcpStream, runtime::Handle, time::timeout};
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;
use wharf_sandbox::{
    network::HttpRefusal,
    places::{Place, Places, Rule},
};

use super::{
    address::{Reach, judge},
    answers::Answers,
    line::{ALL_REQUESTS, Io, Line, Stream},
    target::{Host, Scheme, Target},
    tls::Tls,
};
use crate::base::{party::Party, refusals::Refusals};

/// How long looking a name up may take, and connecting to one address, and the greeting of TLS.
const LOOK_UP: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(5);
const GREET: Duration = Duration::from_secs(10);
/// How many addresses of a name are tried.
const MAX_TRIED: usize = 4;
/// How many names are looked up at once. The system does it on threads that reading files needs as well, and cannot be told to stop.
const LOOKED_UP: usize = 16;
/// How many connections there are at once, idle ones among them.
const CONNECTED: usize = 128;

/// Names that are looked up.
pub static LOOK_UPS: Rule = Rule {
    of: "names that are looked up for plugins",
    number: "16",
    taker: "plugin",
    until: "the system has answered, however long that takes",
    asking: "not held: no call of a plugin is under way while a person thinks",
    gone: "held until the system has answered, since a look-up cannot be stopped",
    gives_way: "nothing; a request waits 5 s for its turn, and the plugin with the fewest look-ups is next",
    old: Duration::MAX,
};

/// Connections to servers.
pub static CONNECTIONS: Rule = Rule {
    of: "connections of plugins to servers",
    number: "128",
    taker: "plugin",
    until: "the connection is closed: after the response, or 15 s later if it can be used again",
    asking: "not held: no call of a plugin is under way while a person thinks; the connection may be idle for 15 s",
    gone: "given back, since the connection is closed with the call that uses it",
    gives_way: "connections that no request uses, the one that was idle for longest, to plugins with fewer connections and to further \
                requests of the same plugin",
    old: Duration::from_secs(5),
};

/// Which addresses a connection may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    Public,
    /// Private ones as well.
    Private,
    /// The address that the rule spells out, whatever it is.
    Spelled,
}

impl Allowed {
    fn allows(self, address: IpAddr) -> bool {
        match judge(address) {
            Reach::Public => true,
            Reach::Private => self != Self::Public,
            Reach::Never => self == Self::Spelled,
        }
    }
}

/// Finds the addresses of a name.
pub trait Resolve: Send + Sync {
    /// `turn` is given back when the look-up has ended, which may be later than the future is dropped.
    fn resolve(&self, name: &str, turn: Place) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;
}

/// Asks the system.
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

/// What all connections of all plugins share.
pub struct Dialer {
    pub resolver: Box<dyn Resolve>,
    look_ups: Arc<Places>,
    pub connections: Arc<Places>,
    /// The requests of all plugins, by client.
    pub requests: Arc<Places>,
    /// Where wharf itself listens.
    pub own: RwLock<Vec<SocketAddr>>,
    /// Tells the operator what is wrong with the config, at a limited rate.
    pub told: Refusals,
    /// Answers in place of all servers, in a test; there are no connections then.
    pub answers: Option<Arc<dyn Answers>>,
}

impl Dialer {
    pub fn new(resolver: Box<dyn Resolve>) -> Self {
        Self {
            resolver,
            look_ups: Places::new(&LOOK_UPS, LOOKED_UP),
            connections: Places::new(&CONNECTIONS, CONNECTED),
            requests: Places::new(&ALL_REQUESTS, CONNECTED),
            own: RwLock::default(),
            told: Refusals::default(),
            answers: None,
        }
    }

    /// The addresses of a host, all of them judged. `party`: the plugin for which it is looked up.
    async fn addresses(&self, target: &Target, allowed: Allowed, party: Party) -> Result<Vec<SocketAddr>, Unconnected> {
        let addresses = match &target.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                let turn = timeout(LOOK_UP, self.look_ups.wait(party)).await;
                let looked_up = self.resolver.resolve(name, turn.map_err(|_| Unconnected::LookUpTimeout)?);
                let found = timeout(LOOK_UP, looked_up).await.map_err(|_| Unconnected::LookUpTimeout)?;
                found.map_err(|error| Unconnected::LookUp(error.to_string()))?
            }
        };
        if addresses.is_empty() {
            return Err(Unconnected::LookUp("it has no address".into()));
        }
        // One address that is not allowed is enough: the next look-up could give only that one.
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
        for address in self.addresses(target, allowed, party).await?.into_iter().take(MAX_TRIED) {
            match timeout(CONNECT, TcpStream::connect(address)).await {
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

/// Why there is no connection.
#[derive(Debug)]
pub enum Unconnected {
    Refused(HttpRefusal),
    LookUp(String),
    LookUpTimeout,
    Connect(io::Error),
    Timeout,
    Tls(io::Error),
    Config(String),
}

impl fmt::Display for Unconnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(_) => f.write_str("the address is not allowed"),
            Self::LookUp(error) => write!(f, "the name cannot be looked up: {error}"),
            Self::LookUpTimeout => f.write_str("looking the name up took too long"),
            Self::Connect(error) => write!(f, "no connection: {error}"),
            Self::Timeout => f.write_str("connecting took too long"),
            Self::Tls(error) => write!(f, "no TLS: {error}"),
            Self::Config(error) => f.write_str(error),
        }
    }
}

impl StdError for Unconnected {}

/// Connects for one plugin.
#[derive(Clone)]
pub struct Connector {
    pub dialer: Arc<Dialer>,
    /// The plugin.
    pub party: Party,
    pub allowed: Allowed,
    pub tls: Arc<Tls>,
    /// The proxy, if all connections go through one. It looks names up itself, so no address is judged here.
    pub proxy: Option<Arc<Proxy>>,
    /// Connections belong to the threads that do I/O, wherever the request comes from.
    pub io: Handle,
}

/// A proxy that the operator names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    pub uri: Uri,
    pub authorization: Option<http::HeaderValue>,
}

impl Connector {
    async fn connect(self, uri: Uri) -> Result<Io, Unconnected> {
        let target = Target::of(&uri).map_err(|problem| Unconnected::Config(problem.to_owned()))?;
        let line = Line::new();
        let place = timeout(CONNECT, self.dialer.connections.wait_for(self.party, Arc::clone(&line) as _)).await;
        let place = place.map_err(|_| Unconnected::Refused(HttpRefusal::Limit("http_at_once")))?;
        let (stream, proxied) = self.stream(uri, &target).await?;
        Ok(Io::new(stream, proxied, line, place))
    }

    /// A stream to the server, and whether a proxy is at its other end.
    async fn stream(&self, uri: Uri, target: &Target) -> Result<(Stream, bool), Unconnected> {
        let Some(proxy) = &self.proxy else {
            let stream = self.dialer.dial(target, self.allowed, self.party).await?;
            return match target.scheme {
                Scheme::Http => Ok((Stream::Plain(TokioIo::new(stream)), false)),
                Scheme::Https => Ok((self.greet(TokioIo::new(stream), target).await?, false)),
            };
        };
        match target.scheme {
            Scheme::Http => {
                let stream = ToProxy { uri: proxy.uri.clone() }.dial().await?;
                Ok((Stream::Plain(stream), true))
            }
            Scheme::Https => {
                let tunnel = Tunnel::new(proxy.uri.clone(), ToProxy { uri: proxy.uri.clone() });
                let mut tunnel = match &proxy.authorization {
                    Some(value) => tunnel.with_auth(value.clone()),
                    None => tunnel,
                };
                let failed = |error: String| Unconnected::Connect(io::Error::other(format!("the proxy: {error}")));
                let through = tower_service::Service::call(&mut tunnel, uri);
                let stream = timeout(GREET, through).await.map_err(|_| Unconnected::Timeout)?;
                Ok((self.greet(stream.map_err(|error| failed(error.to_string()))?, target).await?, false))
            }
        }
    }

    /// Greets the server by TLS, which has to show a certificate for the host.
    async fn greet(&self, stream: TokioIo<TcpStream>, target: &Target) -> Result<Stream, Unconnected> {
        let config: Arc<ClientConfig> =
            self.tls.config().await.map_err(|error| Unconnected::Config(format!("{error:#}")))?;
        let name = match &target.host {
            Host::Name(name) => {
                ServerName::try_from(name.clone()).map_err(|error| Unconnected::Config(error.to_string()))?
            }
            Host::Address(address) => ServerName::from(*address),
        };
        let greeted = TlsConnector::from(config).connect(name, stream.into_inner());
        let stream = timeout(GREET, greeted).await.map_err(|_| Unconnected::Timeout)?.map_err(Unconnected::Tls)?;
        Ok(Stream::Tls(Box::new(TokioIo::new(stream))))
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

/// Connects to the proxy. Where it is was decided by the operator.
#[derive(Clone)]
struct ToProxy {
    uri: Uri,
}

impl ToProxy {
    async fn dial(self) -> Result<TokioIo<TcpStream>, Unconnected> {
        let authority = self.uri.authority().map_or("", http::uri::Authority::as_str).to_owned();
        let address = if self.uri.port().is_some() { authority } else { format!("{authority}:80") };
        let stream = timeout(CONNECT, TcpStream::connect(address)).await.map_err(|_| Unconnected::Timeout)?;
        let stream = stream.map_err(|error| Unconnected::Connect(io::Error::other(format!("the proxy: {error}"))))?;
        stream.set_nodelay(true).map_err(Unconnected::Connect)?;
        Ok(TokioIo::new(stream))
    }
}

impl tower_service::Service<Uri> for ToProxy {
    type Response = TokioIo<TcpStream>;
    type Error = Unconnected;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Unconnected>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unconnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().dial())
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::base::party::named;

    /// Gives one answer after the other.
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

    /// Never answers, and holds its turns.
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
        assert_eq!(dialer.look_ups.taken(), LOOKED_UP / 4 * 3);
        assert!(timeout(Duration::from_millis(1), look_up("other")).await.is_err(), "it is being looked up");
        assert_eq!(dialer.look_ups.taken(), LOOKED_UP / 4 * 3 + 1);
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
