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
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    denial::{Denial, HttpDenial, HttpRefusal},
    ledger::{Account, Charge},
    masked::Masked,
    network::{Body, Error, HttpLimits, Network, Unsent},
    traces::{Exchange, Traces},
};

/// What the host keeps at most for one request that is under way: what has been read but not passed on yet, what is to be written,
/// and the connection.
const REQUEST_BYTES: usize = 160 << 10;
/// About how many bytes the host needs for a header field besides its name and value.
const FIELD_BYTES: usize = 256;
/// How long a request waits for one of the call's other requests to end, if there are too many at once.
const TURN: Duration = Duration::from_secs(10);
/// How much of a text of the guest is remembered: a method, or an address.
const MAX_TEXT_BYTES: usize = 255;

/// The HTTP requests of one call.
pub(crate) struct Traffic(Arc<Shared>);

struct Shared {
    network: Arc<dyn Network>,
    limits: HttpLimits,
    /// Cancelled when the call is over. Nothing that is still under way then counts as complete.
    over: CancellationToken,
    /// Bytes of headers of responses, which the guest may keep for as long as its instance lives.
    header_bytes: AtomicUsize,
    made: AtomicUsize,
    turns: Arc<Semaphore>,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    memory: Account,
    traces: Traces,
}

impl Traffic {
    pub(crate) fn new(network: Arc<dyn Network>, limits: HttpLimits, memory: Account, traces: Traces) -> Self {
        let turns = Arc::new(Semaphore::new(limits.at_once.max(1)));
        let (made, bytes_in, bytes_out) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let (over, header_bytes) = (CancellationToken::new(), AtomicUsize::new(0));
        Self(Arc::new(Shared { network, limits, over, header_bytes, made, turns, bytes_in, bytes_out, memory, traces }))
    }

    /// Ends everything that is under way.
    pub(crate) fn end(&self) {
        self.0.over.cancel();
    }

    /// Whether no response is still being received.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.turns.available_permits() >= self.0.limits.at_once.max(1)
    }

    /// How many bytes of headers the guest may still hold.
    pub(crate) fn header_bytes(&self) -> usize {
        self.0.header_bytes.load(Ordering::Relaxed)
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
            let sent = tokio::select! {
                biased;
                () = shared.over.cancelled() => Err(Unsent::Failed(Error::ConnectionTerminated)),
                sent = shared.send(&exchange, request, options.unwrap_or_default()) => sent,
            };
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
    let exchange = Arc::new(exchange(request));
    traces.exchanges().add(&exchange);
    deny(traces, &exchange, HttpRefusal::NoRule)
}

/// Notes that a request was refused.
fn deny(traces: &Traces, exchange: &Exchange, why: HttpRefusal) -> Error {
    let error = error_of(&why);
    exchange.denied.store(true, Ordering::Relaxed);
    let (method, url) = (exchange.method.clone(), exchange.url.clone());
    traces.deny(Denial::Http(HttpDenial { method, url, why }));
    error
}

impl Shared {
    fn deny(&self, exchange: &Exchange, why: HttpRefusal) -> Error {
        deny(&self.traces, exchange, why)
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
        let no_room = |_| Unsent::Failed(Error::InternalError(Some("the memory of all calls is used up".into())));
        let charge = self.memory.charge(REQUEST_BYTES).map_err(no_room)?;
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
        let field = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + FIELD_BYTES;
        let headers: usize = response.headers().iter().map(field).sum();
        self.header_bytes.fetch_add(headers, Ordering::Relaxed);
        if self.bytes_in.fetch_add(headers as u64, Ordering::Relaxed).saturating_add(headers as u64)
            > self.limits.in_bytes
        {
            return Err(limit("http_in_kib"));
        }
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
        !self.shared.over.is_cancelled()
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

/// What the guest is told.
fn error_of(why: &HttpRefusal) -> Error {
    match why {
        HttpRefusal::NoRule | HttpRefusal::Placeholder(_) => Error::HttpRequestDenied,
        HttpRefusal::Address(_) => Error::DestinationIpProhibited,
        HttpRefusal::Limit(_) => Error::ConnectionLimitReached,
        HttpRefusal::Malformed(_) => Error::HttpRequestUriInvalid,
        HttpRefusal::Unreadable(_) => Error::HttpResponseContentCoding(None),
    }
}
