//! The HTTP requests that a call makes: counted, bounded, and ended with the call. Where they may go and how they get there is
//! decided outside of this crate, by the [`Network`] of the call's scope.
//!
//! A body that a call leaves unfinished ends in an error, never like a complete one. wasmtime ends the body of a request cleanly
//! when the guest that was writing it is dropped, and a connection that is kept would then deliver half an upload as a whole one.
//! So every body asks, at its end, whether its call is still alive.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Sleep, timeout},
};
pub use wasmtime_wasi_http::{Error, WasiBody as Body};

use crate::{
    ledger::{Account, Charge},
    masked::Masked,
    scope::Denial,
    store::Traces,
};

/// What the host keeps at most for one request that is under way: what has been read but not passed on yet, what is to be written,
/// and the connection.
const REQUEST_BYTES: usize = 160 << 10;
/// How long a request waits for one of the call's other requests to end, if there are too many at once.
const TURN: Duration = Duration::from_secs(10);
/// How many requests of a call are remembered for its report.
const MAX_REMEMBERED: usize = 64;
/// How much of a text of the guest is remembered: a method, or an address.
const MAX_TEXT_BYTES: usize = 255;

/// A request that is being sent.
pub type Sending = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Unsent>> + Send>>;

/// Sends the requests of a plugin's calls, as far as the operator allows them.
pub trait Network: Send + Sync {
    /// Sends a request. Dropping the future ends the request.
    fn send(&self, request: http::Request<Body>) -> Sending;

    /// Hides in what a plugin says what only the network should know, without changing its length.
    fn hide(&self, bytes: &mut [u8]);

    /// A number that no other network has, not even one that allows the same.
    fn number(&self) -> u64;
}

/// Why there is no response.
#[derive(Debug)]
pub enum Unsent {
    /// The request is not allowed.
    Denied(HttpRefusal),
    /// It is allowed, but failed.
    Failed(Error),
}

/// A request that a guest tried and was not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpDenial {
    /// The method, of which at most 255 bytes are kept.
    pub method: String,
    /// The URL without its query, of which at most 255 bytes are kept.
    pub url: String,
    /// Why it was not allowed.
    pub why: HttpRefusal,
}

/// Why a request is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpRefusal {
    /// No rule of the operator allows it.
    NoRule,
    /// A rule allows the name, but it leads to this address, which is private or otherwise not for plugins.
    Address(String),
    /// This limit, named as in the config, is used up.
    Limit(&'static str),
    /// The request is malformed, or has something in it that could mean two things; this says what.
    Malformed(&'static str),
    /// It carries the placeholder of this secret to where the secret does not belong.
    Placeholder(String),
    /// The response could have shown a secret in a form in which it cannot be masked; this says why.
    Unreadable(&'static str),
}

impl HttpRefusal {
    /// What the guest is told.
    fn error(&self) -> Error {
        match self {
            Self::NoRule | Self::Placeholder(_) => Error::HttpRequestDenied,
            Self::Address(_) => Error::DestinationIpProhibited,
            Self::Limit(_) => Error::ConnectionLimitReached,
            Self::Malformed(_) => Error::HttpRequestUriInvalid,
            Self::Unreadable(_) => Error::HttpResponseContentCoding(None),
        }
    }
}

/// One request of a call, for the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUse {
    /// The method.
    pub method: String,
    /// The host and, if the URL names one, the port.
    pub authority: String,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// Bytes of the request's body that were sent.
    pub bytes_out: u64,
    /// Bytes of the response's body that were received.
    pub bytes_in: u64,
}

/// How much one call may do over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// How many requests it may make.
    pub requests: usize,
    /// How many of them may be under way at once. Further ones wait up to 10 s.
    pub at_once: usize,
    /// Bytes of all bodies that it may receive.
    pub in_bytes: u64,
    /// Bytes of all bodies that it may send.
    pub out_bytes: u64,
}

/// The HTTP requests of one call.
pub(crate) struct Traffic(Arc<Shared>);

struct Shared {
    network: Arc<dyn Network>,
    limits: HttpLimits,
    /// Cleared when the call is over. Nothing that is still under way then counts as complete.
    alive: AtomicBool,
    made: AtomicUsize,
    turns: Arc<Semaphore>,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    memory: Account,
    traces: Traces,
}

/// What is known about one request while it is under way.
#[derive(Default)]
pub(crate) struct Exchange {
    method: String,
    authority: String,
    url: String,
    status: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

impl Exchange {
    pub(crate) fn seen(&self) -> HttpUse {
        let status = u16::try_from(self.status.load(Ordering::Relaxed)).ok().filter(|status| *status > 0);
        HttpUse {
            method: self.method.clone(),
            authority: self.authority.clone(),
            status,
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
        }
    }
}

/// The requests of a call that are remembered.
#[derive(Default)]
pub(crate) struct Exchanges(Mutex<Vec<Arc<Exchange>>>);

impl Exchanges {
    fn add(&self, exchange: &Arc<Exchange>) {
        let mut all = self.0.lock();
        if all.len() < MAX_REMEMBERED {
            all.push(Arc::clone(exchange));
        }
    }

    pub(crate) fn seen(&self) -> Vec<HttpUse> {
        self.0.lock().iter().map(|exchange| exchange.seen()).collect()
    }
}

impl Traffic {
    pub(crate) fn new(network: Arc<dyn Network>, limits: HttpLimits, memory: Account, traces: Traces) -> Self {
        let turns = Arc::new(Semaphore::new(limits.at_once.max(1)));
        let (made, bytes_in, bytes_out) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let alive = AtomicBool::new(true);
        Self(Arc::new(Shared { network, limits, alive, made, turns, bytes_in, bytes_out, memory, traces }))
    }

    /// Ends everything that is under way.
    pub(crate) fn end(&self) {
        self.0.alive.store(false, Ordering::Release);
    }

    /// Hides in what the plugin says what only the network should know.
    pub(crate) fn mask(&self, said: &mut impl Masked) {
        said.mask(&|bytes| self.0.network.hide(bytes));
    }

    /// Sends a request within the limits of the call.
    pub(crate) fn send(
        &self,
        request: http::Request<Body>,
        options: Option<wasmtime_wasi_http::RequestOptions>,
    ) -> impl Future<Output = Result<http::Response<Body>, Error>> + Send + use<> {
        let shared = Arc::clone(&self.0);
        let exchange = Arc::new(exchange(&request));
        shared.traces.exchanges().add(&exchange);
        async move {
            let sent = shared.send(&exchange, request, options.unwrap_or_default()).await;
            sent.map_err(|unsent| match unsent {
                Unsent::Denied(why) => shared.deny(&exchange, why),
                Unsent::Failed(error) => error,
            })
        }
    }
}

/// What a request is remembered by.
fn exchange<B>(request: &http::Request<B>) -> Exchange {
    let clip = |mut text: String| {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text
    };
    let uri = request.uri();
    let authority = uri.authority().map_or("", http::uri::Authority::as_str);
    // What comes before the host could be a password.
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    Exchange {
        method: clip(request.method().to_string()),
        url: clip(format!("{}://{authority}{}", uri.scheme_str().unwrap_or("https"), uri.path())),
        authority: clip(authority.to_owned()),
        ..Exchange::default()
    }
}

/// The refusal of a guest that may make no requests at all.
pub(crate) fn denied(traces: &Traces, request: &http::Request<Body>) -> Error {
    let Exchange { method, url, .. } = exchange(request);
    let why = HttpRefusal::NoRule;
    let error = why.error();
    traces.deny(Denial::Http(HttpDenial { method, url, why }));
    error
}

impl Shared {
    fn deny(&self, exchange: &Exchange, why: HttpRefusal) -> Error {
        let error = why.error();
        let (method, url) = (exchange.method.clone(), exchange.url.clone());
        self.traces.deny(Denial::Http(HttpDenial { method, url, why }));
        error
    }

    async fn send(
        self: &Arc<Self>,
        exchange: &Arc<Exchange>,
        request: http::Request<Body>,
        options: wasmtime_wasi_http::RequestOptions,
    ) -> Result<http::Response<Body>, Unsent> {
        let limit = |name| Unsent::Denied(HttpRefusal::Limit(name));
        if self.made.fetch_add(1, Ordering::Relaxed) >= self.limits.requests {
            return Err(limit("http_requests"));
        }
        let turn = match timeout(TURN, Arc::clone(&self.turns).acquire_owned()).await {
            Ok(turn) => turn.ok(),
            Err(_) => return Err(limit("http_at_once")),
        };
        let charge = self.memory.charge(REQUEST_BYTES).map_err(|_| limit("total_memory_mib"))?;
        let part = |outgoing| Part { shared: Arc::clone(self), exchange: Arc::clone(exchange), outgoing };
        let request = request.map(|body| Upload { inner: body, part: part(true) }.boxed_unsync());
        // The time that the guest allows for connecting is part of the time until the first byte.
        let patience = options.first_byte_timeout.map(|first| first + options.connect_timeout.unwrap_or_default());
        let sending = self.network.send(request);
        let response = match patience {
            Some(patience) => match timeout(patience, sending).await {
                Ok(sent) => sent?,
                Err(_) => return Err(Unsent::Failed(Error::HttpResponseTimeout)),
            },
            None => sending.await?,
        };
        exchange.status.store(response.status().as_u16().into(), Ordering::Relaxed);
        Ok(response.map(|body| {
            let held = Some((turn, charge));
            let patience = options.between_bytes_timeout;
            Download { inner: body, part: part(false), patience, waited: None, held }.boxed_unsync()
        }))
    }
}

/// A body, seen as a part of its call.
struct Part {
    shared: Arc<Shared>,
    exchange: Arc<Exchange>,
    /// The guest sends it.
    outgoing: bool,
}

impl Part {
    fn is_alive(&self) -> bool {
        self.shared.alive.load(Ordering::Acquire)
    }

    /// Judges what a body gives next.
    fn take(&self, frame: Option<Result<Frame<Bytes>, Error>>) -> Option<Result<Frame<Bytes>, Error>> {
        let Shared { bytes_in, bytes_out, limits, .. } = &*self.shared;
        if !self.is_alive() {
            return Some(Err(Error::ConnectionTerminated));
        }
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len) as u64,
            _ => return frame,
        };
        let (sum, own, most, name) = if self.outgoing {
            (bytes_out, &self.exchange.bytes_out, limits.out_bytes, "http_out_kib")
        } else {
            (bytes_in, &self.exchange.bytes_in, limits.in_bytes, "http_in_kib")
        };
        own.fetch_add(bytes, Ordering::Relaxed);
        if sum.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > most {
            self.shared.deny(&self.exchange, HttpRefusal::Limit(name));
            return Some(Err(match self.outgoing {
                true => Error::HttpRequestBodySize(Some(most)),
                false => Error::HttpResponseBodySize(Some(most)),
            }));
        }
        frame
    }
}

/// The body of a request. It is complete only if the guest finished it while its call was alive.
struct Upload {
    inner: Body,
    part: Part,
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        Poll::Ready(self.part.take(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream() && self.part.is_alive()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a response.
struct Download {
    inner: Body,
    part: Part,
    /// How long the guest waits between two pieces.
    patience: Option<Duration>,
    waited: Option<Pin<Box<Sleep>>>,
    /// The turn and the memory of the request, given back when the body has ended.
    held: Option<(Option<OwnedSemaphorePermit>, Charge)>,
}

impl http_body::Body for Download {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) else {
            let Some(patience) = self.patience else { return Poll::Pending };
            let waited = self.waited.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
            return waited.as_mut().poll(cx).map(|()| Some(Err(Error::ConnectionReadTimeout)));
        };
        self.waited = None;
        let frame = self.part.take(frame);
        if !matches!(frame, Some(Ok(_))) {
            self.held = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
