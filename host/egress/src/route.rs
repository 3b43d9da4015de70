//! The route to a server, directly or through the proxy of `[egress]`, and TLS over it. Plugins and wharf's own requests use it; which
//! addresses a direct connection may reach is decided by its user, which makes that connection.

use std::{
    error::Error as StdError,
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{client::legacy::connect::proxy::Tunnel, rt::TokioIo};
use rustls::pki_types::ServerName;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};
use wharf_scope::network::HttpRefusal;

use super::{
    target::{Host, Scheme, Target},
    tls::Tls,
};

/// The time limits of connecting to one address, and of a handshake with a proxy or by TLS.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A proxy from the config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    pub uri: Uri,
    pub authorization: Option<HeaderValue>,
}

/// The route of connections: their proxy, and the certificates that they trust.
#[derive(Clone)]
pub struct Route {
    pub tls: Arc<Tls>,
    /// The proxy, if connections go through one. The proxy resolves names, so wharf checks no addresses then.
    pub proxy: Option<Arc<Proxy>>,
}

impl Route {
    /// Opens a stream to the server. `dial` makes a direct connection, and is not used if there is a proxy.
    pub async fn open(
        &self,
        uri: &Uri,
        target: &Target,
        dial: impl Future<Output = Result<TcpStream, Unconnected>>,
    ) -> Result<Stream, Unconnected> {
        let Some(proxy) = &self.proxy else {
            let stream = TokioIo::new(dial.await?);
            return match target.scheme {
                Scheme::Http => Ok(Stream { transport: Transport::Plain(stream), proxied: false }),
                Scheme::Https => self.tls_handshake(stream, target).await,
            };
        };
        match target.scheme {
            Scheme::Http => {
                let stream = ProxyConnector { uri: proxy.uri.clone() }.dial().await?;
                Ok(Stream { transport: Transport::Plain(stream), proxied: true })
            }
            Scheme::Https => {
                let tunnel = Tunnel::new(proxy.uri.clone(), ProxyConnector { uri: proxy.uri.clone() });
                let mut tunnel = match &proxy.authorization {
                    Some(value) => tunnel.with_auth(value.clone()),
                    None => tunnel,
                };
                let failed = |error: String| Unconnected::Connect(io::Error::other(format!("the proxy: {error}")));
                let through = tower_service::Service::call(&mut tunnel, uri.clone());
                let stream = timeout(HANDSHAKE_TIMEOUT, through).await.map_err(|_| Unconnected::Timeout)?;
                self.tls_handshake(stream.map_err(|error| failed(error.to_string()))?, target).await
            }
        }
    }

    /// Performs the TLS handshake; the server's certificate has to be valid for the host.
    async fn tls_handshake(&self, stream: TokioIo<TcpStream>, target: &Target) -> Result<Stream, Unconnected> {
        let config = self.tls.config().await.map_err(|error| Unconnected::Config(format!("{error:#}")))?;
        let name = match &target.host {
            Host::Name(name) => {
                ServerName::try_from(name.clone()).map_err(|error| Unconnected::Config(error.to_string()))?
            }
            Host::Address(address) => ServerName::from(*address),
        };
        let handshake = TlsConnector::from(config).connect(name, stream.into_inner());
        let stream =
            timeout(HANDSHAKE_TIMEOUT, handshake).await.map_err(|_| Unconnected::Timeout)?.map_err(Unconnected::Tls)?;
        Ok(Stream { transport: Transport::Tls(Box::new(TokioIo::new(stream))), proxied: false })
    }
}

/// Connects to the proxy. Its address comes from the config, so it is not checked.
#[derive(Clone)]
struct ProxyConnector {
    uri: Uri,
}

impl ProxyConnector {
    async fn dial(self) -> Result<TokioIo<TcpStream>, Unconnected> {
        let authority = self.uri.authority().map_or("", http::uri::Authority::as_str).to_owned();
        let address = if self.uri.port().is_some() { authority } else { format!("{authority}:80") };
        let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await.map_err(|_| Unconnected::Timeout)?;
        let stream = stream.map_err(|error| Unconnected::Connect(io::Error::other(format!("the proxy: {error}"))))?;
        stream.set_nodelay(true).map_err(Unconnected::Connect)?;
        Ok(TokioIo::new(stream))
    }
}

impl tower_service::Service<Uri> for ProxyConnector {
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

impl Unconnected {
    /// Whether the server answered the TLS handshake with something that is not TLS.
    pub fn speaks_no_tls(&self) -> bool {
        let Self::Tls(error) = self else { return false };
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        matches!(inner, Some(rustls::Error::InvalidMessage(_)))
    }
}

impl fmt::Display for Unconnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(_) => f.write_str("the address is not allowed"),
            Self::LookUp(error) => write!(f, "the name cannot be looked up: {error}"),
            Self::LookUpTimeout => f.write_str("looking the name up took too long"),
            Self::Connect(error) => write!(f, "the connection failed: {error}"),
            Self::Timeout => f.write_str("connecting took too long"),
            Self::Tls(error) => write!(f, "the TLS handshake failed: {error}"),
            Self::Config(error) => f.write_str(error),
        }
    }
}

impl StdError for Unconnected {}

/// A stream to a server.
pub struct Stream {
    transport: Transport,
    /// Whether the other end is a proxy, which needs absolute URLs.
    pub proxied: bool,
}

enum Transport {
    Plain(TokioIo<TcpStream>),
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

/// Forwards a call to the transport.
macro_rules! pass {
    ($self:ident, $method:ident $(, $argument:ident)*) => {
        match &mut $self.get_mut().transport {
            Transport::Plain(stream) => Pin::new(stream).$method($($argument),*),
            Transport::Tls(stream) => Pin::new(&mut **stream).$method($($argument),*),
        }
    };
}

impl Read for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        pass!(self, poll_read, cx, buffer)
    }
}

impl Write for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        pass!(self, poll_write, cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        pass!(self, poll_flush, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        pass!(self, poll_shutdown, cx)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            Transport::Plain(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        pass!(self, poll_write_vectored, cx, slices)
    }
}
