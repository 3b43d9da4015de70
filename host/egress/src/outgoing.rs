//! wharf's own HTTP requests: to identity providers, collectors and registries, at URLs from the operator's config. They use the proxy and
//! trust the certificate authorities of `[egress]`. Callers check which URLs they accept; redirects are returned, not followed.
//!
//! There are few of these requests, so each uses a new connection.

use std::{fmt, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use anyhow::{Context, Result, anyhow};
use bytes::{Bytes, BytesMut};
use http::{
    HeaderValue, Request, Response, Uri,
    header::{CONNECTION, HOST, PROXY_AUTHORIZATION, USER_AGENT},
};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, client::conn::http1};
use tokio::{
    net::{TcpStream, lookup_host},
    time::{Instant, timeout, timeout_at},
};

use super::{
    EgressSettings,
    address::{AddressKind, judge},
    network::MAX_HEADER_LINES,
    route::{Route, Stream, Unconnected},
    target::{Host, Target},
    tls::{Roots, Tls},
};

/// The most bytes of headers that are read, and of the body that are read ahead.
const BUFFER_BYTES: usize = 64 << 10;

/// The limits of one request.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingLimits {
    /// The time for everything: the connection, the request and the response.
    pub timeout: Duration,
    /// The most bytes of the response's body.
    pub body_bytes: usize,
}

/// Which addresses a request may be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destinations {
    /// Any, since the URL comes from the operator.
    Any,
    /// Addresses of the public internet only, since the URL comes from a server there. Behind a proxy, names are looked up by the proxy, so
    /// only addresses that are written in the URL can be judged.
    Public,
}

/// The longest time without a byte of a response's body.
const STALL: Duration = Duration::from_secs(30);

/// The error of a response that broke off. The same request may be answered the next time.
#[derive(Debug)]
pub struct BrokeOff(String);

impl fmt::Display for BrokeOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BrokeOff {}

/// Sends requests. Clones share the loaded certificates.
#[derive(Clone)]
pub struct Outgoing {
    route: Route,
}

impl Outgoing {
    pub fn new(settings: &EgressSettings) -> Self {
        let tls = Arc::new(Tls::new(&Arc::new(Roots::new(settings.trust.clone()))));
        Self { route: Route { tls, proxy: settings.proxy.clone().map(Arc::new) } }
    }

    /// Sends a request to its URL, which is absolute, and reads the response. The body is a result of its own, because the status says
    /// enough in many cases: a body that breaks off, takes too long or is too long is an error there.
    pub async fn send(&self, request: Request<Bytes>, limits: OutgoingLimits) -> Result<Response<Result<Bytes>>> {
        self.download(request, limits, Destinations::Any, &|_| {}).await
    }

    /// As `send`, to the addresses within `reach` only. `progress` is called with the number of bytes of the body that were read so far.
    pub async fn download(
        &self,
        request: Request<Bytes>,
        limits: OutgoingLimits,
        reach: Destinations,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Response<Result<Bytes>>> {
        let deadline = Deadline { at: Instant::now() + limits.timeout, timeout: limits.timeout };
        let (mut parts, body) = request.into_parts();
        let target = Target::of(&parts.uri).map_err(|problem| anyhow!(problem))?;
        let url = target.url(&parts.uri)?;
        // Boxed, as is the exchange, because the futures of everything that may send a request contain this one.
        let stream = Box::pin(deadline.limit(self.connect(&url, &target, reach))).await??;
        let headers = &mut parts.headers;
        headers.insert(HOST, target.authority().parse()?);
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("wharf/", env!("CARGO_PKG_VERSION"))));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if let Some(proxy) = self.route.proxy.as_ref().filter(|_| stream.proxied) {
            headers.extend(proxy.authorization.clone().map(|value| (PROXY_AUTHORIZATION, value)));
            parts.uri = url;
        } else {
            parts.uri = url.path_and_query().map_or("/", |path| path.as_str()).parse()?;
        }
        let request = Request::from_parts(parts, Full::from(body));
        Box::pin(exchange(stream, request, limits.body_bytes, deadline, progress)).await
    }

    async fn connect(&self, url: &Uri, target: &Target, reach: Destinations) -> Result<Stream, Unconnected> {
        // For a proxy, these names mean its own machine, and requests to this machine would leave it in plain text.
        let route =
            if target.host.is_this_machine() { &Route { proxy: None, ..self.route.clone() } } else { &self.route };
        if reach == Destinations::Public && (target.host.is_this_machine() || is_address_off_limits(&target.host)) {
            return Err(Unconnected::Connect(off_limits()));
        }
        route.open(url, target, dial(target, reach)).await
    }

    /// Which addresses may follow from a URL that the operator wrote: a server on a private network may name others there, a public one may
    /// not. Fails if the host has no address.
    pub async fn reach_from(&self, url: &Uri) -> Result<Destinations> {
        let target = Target::of(url).map_err(|problem| anyhow!(problem))?;
        if target.host.is_this_machine() || is_address_off_limits(&target.host) {
            return Ok(Destinations::Any);
        }
        if self.route.proxy.is_some() {
            return Ok(Destinations::Public);
        }
        let addresses = addresses(&target).await.with_context(|| format!("{}: no address is known", target.host))?;
        Ok(if addresses.iter().all(is_public) { Destinations::Public } else { Destinations::Any })
    }
}

fn is_public(address: &SocketAddr) -> bool {
    judge(address.ip()) == AddressKind::Public
}

fn is_address_off_limits(host: &Host) -> bool {
    matches!(host, Host::Address(address) if judge(*address) != AddressKind::Public)
}

fn off_limits() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "a public server refers to an address of this machine or of a private network, which is not followed",
    )
}

async fn addresses(target: &Target) -> io::Result<Vec<SocketAddr>> {
    match &target.host {
        Host::Name(name) => Ok(lookup_host((name.as_str(), target.port)).await?.collect()),
        Host::Address(address) => Ok(vec![SocketAddr::new(*address, target.port)]),
    }
}

/// Connects to an address of a host within `reach`.
async fn dial(target: &Target, reach: Destinations) -> Result<TcpStream, Unconnected> {
    let connect = async {
        let mut addresses = addresses(target).await?;
        addresses.retain(|address| reach == Destinations::Any || is_public(address));
        if addresses.is_empty() && reach == Destinations::Public {
            return Err(off_limits());
        }
        TcpStream::connect(addresses.as_slice()).await
    };
    connect.await.map_err(Unconnected::Connect)
}

async fn exchange(
    stream: Stream,
    request: Request<Full<Bytes>>,
    body_bytes: usize,
    deadline: Deadline,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Response<Result<Bytes>>> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(BUFFER_BYTES).max_headers(MAX_HEADER_LINES);
    let (mut sender, connection) = builder.handshake(stream).await?;
    let exchange = async {
        let (parts, body) = deadline
            .limit(sender.send_request(request))
            .await?
            .map_err(|error| BrokeOff(error.to_string()))?
            .into_parts();
        let body = deadline.limit(read(Limited::new(body, body_bytes), progress)).await.flatten();
        let body = body.with_context(|| format!("the response broke off or has more than {body_bytes} bytes"));
        Ok(Response::from_parts(parts, body))
    };
    // The connection is closed when the response has been read, or when this future is dropped.
    let (mut exchange, connection) = (pin!(exchange), pin!(connection));
    tokio::select! {
        answer = &mut exchange => answer,
        // The server closed the connection; what it sent before is still read.
        _ = connection => exchange.await,
    }
}

/// Reads a body, and tells `progress` how much of it is there.
async fn read(body: Limited<Incoming>, progress: &(dyn Fn(usize) + Sync)) -> Result<Bytes> {
    let (mut body, mut read) = (pin!(body), BytesMut::new());
    while let Some(frame) =
        timeout(STALL, body.frame()).await.map_err(|_| anyhow!("nothing of it came for {} s", STALL.as_secs()))?
    {
        if let Ok(data) = frame.map_err(unread)?.into_data() {
            read.extend_from_slice(&data);
            progress(read.len());
        }
    }
    Ok(read.freeze())
}

/// The error of a body. Only one that is too long is not worth another try.
fn unread(error: Box<dyn std::error::Error + Send + Sync>) -> anyhow::Error {
    match error.downcast::<hyper::Error>() {
        Ok(error) => BrokeOff(error.to_string()).into(),
        Err(other) => anyhow!("{other}"),
    }
}

/// The end of the time for a request.
#[derive(Clone, Copy)]
struct Deadline {
    at: Instant,
    timeout: Duration,
}

impl Deadline {
    async fn limit<T>(self, work: impl Future<Output = T>) -> Result<T> {
        let seconds = self.timeout.as_secs_f64();
        timeout_at(self.at, work).await.ok().with_context(|| format!("there is no response within {seconds} s"))
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;
    use crate::route::Proxy;

    const LIMITS: OutgoingLimits = OutgoingLimits { timeout: Duration::from_secs(10), body_bytes: 100 };

    /// Answers one request with `answer`, and returns the request.
    async fn serve(listener: &TcpListener, answer: &str) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = Vec::new();
        // The requests to tunnel have no body.
        while !bytes.ends_with(b"hello") && !(bytes.starts_with(b"CONNECT") && bytes.ends_with(b"\r\n\r\n")) {
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(bytes).unwrap().to_ascii_lowercase()
    }

    async fn listen() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// Returns a client with a proxy at this address.
    fn through(proxy: SocketAddr) -> Outgoing {
        let uri = format!("http://{proxy}/").parse().unwrap();
        let proxy = Some(Proxy { uri, authorization: Some(HeaderValue::from_static("Basic cHJveHk=")) });
        Outgoing::new(&EgressSettings { proxy, ..EgressSettings::default() })
    }

    fn request(url: &str) -> Request<Bytes> {
        Request::post(url).header("authorization", "Bearer own").body(Bytes::from_static(b"hello")).unwrap()
    }

    #[tokio::test]
    async fn requests_go_through_the_proxy_unless_they_stay_on_this_machine() {
        let ((proxy, at), (server, direct)) = (listen().await, listen().await);
        let outgoing = through(at);
        let answer = "HTTP/1.1 201 Created\r\nx-a: b\r\nContent-Length: 2\r\n\r\nok";

        let (answered, sent) = tokio::join!(
            outgoing.send(request("http://Collector.example:4318/v1/traces?x=1"), LIMITS),
            serve(&proxy, answer)
        );
        let answered = answered.unwrap();
        assert_eq!((answered.status(), &answered.headers()["x-a"]), (StatusCode::CREATED, &"b".parse().unwrap()));
        assert_eq!(answered.into_body().unwrap(), "ok");
        assert!(sent.starts_with("post http://collector.example:4318/v1/traces?x=1 http/1.1\r\n"), "{sent}");
        assert!(sent.contains("proxy-authorization: basic") && sent.contains("authorization: bearer own"), "{sent}");

        let refused = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
        let (answered, sent) =
            tokio::join!(outgoing.send(request("https://id.example/keys"), LIMITS), serve(&proxy, refused));
        let error = format!("{:#}", answered.unwrap_err());
        assert!(error.contains("the proxy"), "{error}");
        assert!(sent.starts_with("connect id.example:443 http/1.1\r\n"), "{sent}");
        assert!(!sent.contains("bearer own") && sent.contains("proxy-authorization: basic"), "{sent}");

        for host in ["127.0.0.1", "localhost"] {
            let url = format!("http://{host}:{}/", direct.port());
            let (answered, sent) = tokio::join!(outgoing.send(request(&url), LIMITS), serve(&server, answer));
            assert_eq!(answered.unwrap().status(), StatusCode::CREATED);
            assert!(sent.starts_with("post / http/1.1\r\n"), "{sent}");
            assert!(sent.contains(&format!("host: {host}:{}\r\n", direct.port())), "{sent}");
            assert!(!sent.contains("proxy-authorization"), "{sent}");
        }
    }

    #[tokio::test]
    async fn a_public_server_leads_to_no_private_one() {
        let (server, at) = listen().await;
        let outgoing = Outgoing::new(&EgressSettings::default());
        for host in [at.to_string(), format!("localhost:{}", at.port()), format!("[::ffff:127.0.0.1]:{}", at.port())] {
            let request = Request::get(format!("http://{host}/")).body(Bytes::new()).unwrap();
            let error = outgoing.download(request, LIMITS, Destinations::Public, &|_| {}).await.unwrap_err();
            assert!(format!("{error:#}").contains("a public server refers to"), "{host}: {error:#}");
        }
        let through = through(at);
        let request = Request::get("http://169.254.169.254/").body(Bytes::new()).unwrap();
        assert!(through.download(request, LIMITS, Destinations::Public, &|_| {}).await.is_err());
        for (url, reach) in [
            ("https://10.0.0.1/", Destinations::Any),
            ("http://127.0.0.1/", Destinations::Any),
            ("https://1.1.1.1/", Destinations::Public),
        ] {
            assert_eq!(outgoing.reach_from(&url.parse().unwrap()).await.unwrap(), reach, "{url}");
        }
        assert_eq!(
            through.reach_from(&"https://registry.example/".parse().unwrap()).await.unwrap(),
            Destinations::Public
        );
        drop(server);
    }

    #[test]
    fn this_machine_has_several_names() {
        for (host, local) in [
            ("localhost", true),
            ("LOCALHOST.", true),
            ("127.1.2.3", true),
            ("[::1]", true),
            ("[::ffff:127.0.0.1]", true),
            ("localhost.example", false),
            ("10.0.0.1", false),
            ("0.0.0.0", false),
        ] {
            assert_eq!(crate::target::host(host).unwrap().is_this_machine(), local, "{host}");
        }
    }

    #[tokio::test]
    async fn what_is_too_long_too_slow_or_malformed_is_an_error() {
        let (server, at) = listen().await;
        let outgoing = Outgoing::new(&EgressSettings::default());
        let url = format!("http://{at}/");
        let long = format!("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 101\r\n\r\n{}", "x".repeat(101));
        for (answer, status) in [
            (long.as_str(), Some(500)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", Some(200)),
            ("HTTP/1.1 200 OK\r\nContent-", None),
            ("", None),
        ] {
            let (answered, _) = tokio::join!(outgoing.send(request(&url), LIMITS), serve(&server, answer));
            assert_eq!(answered.as_ref().ok().map(|answered| answered.status().as_u16()), status, "{answer}");
            assert!(answered.is_err() || answered.unwrap().into_body().is_err(), "{answer}");
        }
        let soon = OutgoingLimits { timeout: Duration::from_millis(20), ..LIMITS };
        let error = outgoing.send(request(&url), soon).await.unwrap_err().to_string();
        assert_eq!(error, "there is no response within 0.02 s");
        for malformed in ["/keys", "ftp://a.example/", "http://ann:secret@a.example/", "http://127.1/"] {
            let error = outgoing.send(request(malformed), LIMITS).await.unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
