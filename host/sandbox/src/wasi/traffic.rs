//! The HTTP requests of a call: counted, limited, and aborted when the call ends. Which destinations are allowed is decided outside this
//! crate, by the [`Network`] of the call's scope, which also sends the requests.
//!
//! A body that a call leaves unfinished ends with an error, never like a complete one. wasmtime ends a request body cleanly when the guest
//! that was writing it is dropped; on a keep-alive connection, half an upload would then look complete. So every body checks at its end
//! whether its call is still running.

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
use wasmtime_wasi_http::{Error, WasiBody};

use crate::{
    bounds::limits::FIELD_BYTES,
    wasi::{
        masked::Masked,
        traces::{Exchange, Traces},
    },
};
use wharf_base::accounts::{Account, Charge};
use wharf_scope::{
    Denial,
    network::{Body, HttpDenial, HttpFailure, HttpLimits, HttpRefusal, Network, Unsent},
};

/// The memory that is charged for one request in flight: the buffers for reading and writing, and the connection.
const REQUEST_BYTES: usize = 160 << 10;
/// How long a request waits for one of the call's other requests to finish, if the limit of requests at once is reached.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of bytes of a method, an authority or a URL that are recorded.
const MAX_TEXT_BYTES: usize = 255;

/// The HTTP requests of one call.
#[derive(Clone)]
pub(crate) struct Traffic(Arc<Shared>);

struct Shared {
    network: Arc<dyn Network>,
    limits: HttpLimits,
    /// Cancelled when the call is over. Bodies that are still in flight then end with an error.
    over: CancellationToken,
    /// The bytes of response headers, which the guest may hold for as long as its instance lives.
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

    /// Aborts all requests in flight.
    pub(crate) fn end(&self) {
        self.0.over.cancel();
    }

    /// Whether no response is still being received.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.turns.available_permits() >= self.0.limits.at_once.max(1)
    }

    /// Returns the number of bytes of response headers that the guest may still hold.
    pub(crate) fn header_bytes(&self) -> usize {
        self.0.header_bytes.load(Ordering::Relaxed)
    }

    /// Masks the network's secrets in a value from the plugin.
    pub(crate) fn mask(&self, said: &mut impl Masked) {
        said.mask(&|bytes| self.0.network.hide(bytes));
    }

    /// Sends a request within the limits of the call.
    pub(crate) fn send(
        &self,
        request: http::Request<WasiBody>,
        options: Option<wasmtime_wasi_http::RequestOptions>,
    ) -> impl Future<Output = Result<http::Response<WasiBody>, Error>> + Send + use<> {
        let shared = Arc::clone(&self.0);
        let exchange = Arc::new(exchange(&request));
        shared.traces.exchanges().add(&exchange);
        async move {
            let sent = tokio::select! {
                biased;
                () = shared.over.cancelled() => Err(Unsent::Failed(HttpFailure::Ended)),
                sent = shared.send(&exchange, request, options.unwrap_or_default()) => sent,
            };
            sent.map_err(|unsent| match unsent {
                Unsent::Denied(why) => shared.deny(&exchange, why),
                Unsent::Failed(failure) => error_of(failure),
            })
        }
    }
}

/// Returns the record of a request.
fn exchange<B>(request: &http::Request<B>) -> Exchange {
    let clip = |mut text: String| {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text
    };
    let uri = request.uri();
    let authority = uri.authority().map_or("", http::uri::Authority::as_str);
    // The userinfo before the host may contain a password.
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    Exchange {
        method: clip(request.method().to_string()),
        url: clip(format!("{}://{authority}{}", uri.scheme_str().unwrap_or("https"), uri.path())),
        authority: clip(authority.to_owned()),
        ..Exchange::default()
    }
}

/// Records and refuses a request of a guest that may make no requests at all.
pub(crate) fn denied(traces: &Traces, request: &http::Request<WasiBody>) -> Error {
    let exchange = Arc::new(exchange(request));
    traces.exchanges().add(&exchange);
    deny(traces, &exchange, HttpRefusal::NoRule)
}

/// Records that a request was refused, and returns the error for the guest.
fn deny(traces: &Traces, exchange: &Exchange, why: HttpRefusal) -> Error {
    let error = error_of_refusal(&why);
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
        request: http::Request<WasiBody>,
        options: wasmtime_wasi_http::RequestOptions,
    ) -> Result<http::Response<WasiBody>, Unsent> {
        let limit = |name| Unsent::Denied(HttpRefusal::Limit(name));
        if self.made.fetch_add(1, Ordering::Relaxed) >= self.limits.requests {
            return Err(limit("http_requests"));
        }
        let turn = match timeout(TURN_TIMEOUT, Arc::clone(&self.turns).acquire_owned()).await {
            Ok(turn) => turn.ok(),
            Err(_) => return Err(limit("http_at_once")),
        };
        let no_room = |_| Unsent::Failed(HttpFailure::Memory);
        let charge = self.memory.charge(REQUEST_BYTES).map_err(no_room)?;
        let meter = |outgoing| Meter { shared: Arc::clone(self), exchange: Arc::clone(exchange), outgoing };
        let request = request.map(|body| Upload { inner: body, meter: meter(true) }.boxed_unsync());
        // The time until the first byte includes the time for connecting.
        let first_byte_timeout =
            options.first_byte_timeout.map(|first| first + options.connect_timeout.unwrap_or_default());
        let sending = self.network.send(request);
        let response = match first_byte_timeout {
            Some(wait) => match timeout(wait, sending).await {
                Ok(sent) => sent?,
                Err(_) => return Err(Unsent::Failed(HttpFailure::ResponseTimeout)),
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
            let frame_timeout = options.between_bytes_timeout;
            Download { inner: body, meter: meter(false), frame_timeout, waited: None, held }.boxed_unsync()
        }))
    }
}

/// Counts the bytes of a body towards the limits of its call.
struct Meter {
    shared: Arc<Shared>,
    exchange: Arc<Exchange>,
    /// Whether the guest sends the body.
    outgoing: bool,
}

impl Meter {
    fn is_alive(&self) -> bool {
        !self.shared.over.is_cancelled()
    }

    /// Counts the next frame of a body. Returns a failure in its place if the call is over or a limit is exceeded.
    fn take(&self, frame: Option<Result<Frame<Bytes>, HttpFailure>>) -> Option<Result<Frame<Bytes>, HttpFailure>> {
        let Shared { bytes_in, bytes_out, limits, .. } = &*self.shared;
        if !self.is_alive() {
            return Some(Err(HttpFailure::Ended));
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
                true => HttpFailure::RequestSize(Some(most)),
                false => HttpFailure::ResponseSize(most),
            }));
        }
        frame
    }
}

/// The body of a request. It is complete only if the guest finished it while its call was running.
struct Upload {
    inner: WasiBody,
    meter: Meter,
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = HttpFailure;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpFailure>>> {
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        let failure = |error| match error {
            Error::HttpRequestBodySize(size) => HttpFailure::RequestSize(size),
            _ => HttpFailure::Ended,
        };
        Poll::Ready(self.meter.take(frame.map(|frame| frame.map_err(failure))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream() && self.meter.is_alive()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a response.
struct Download {
    inner: Body,
    meter: Meter,
    /// How long the guest waits between two frames.
    frame_timeout: Option<Duration>,
    waited: Option<Pin<Box<Sleep>>>,
    /// The turn and the memory of the request, released when the body has ended.
    held: Option<(Option<OwnedSemaphorePermit>, Charge)>,
}

impl http_body::Body for Download {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) else {
            let Some(limit) = self.frame_timeout else { return Poll::Pending };
            let waited = self.waited.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
            return waited.as_mut().poll(cx).map(|()| Some(Err(Error::ConnectionReadTimeout)));
        };
        self.waited = None;
        let frame = self.meter.take(frame);
        if !matches!(frame, Some(Ok(_))) {
            self.held = None;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(error_of)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Returns the error that the guest gets for a failure.
fn error_of(failure: HttpFailure) -> Error {
    match failure {
        HttpFailure::Config => Error::ConfigurationError,
        HttpFailure::Url => Error::HttpRequestUriInvalid,
        HttpFailure::Lookup(problem) => Error::DnsError { rcode: Some(problem), info_code: None },
        HttpFailure::LookupTimeout => Error::DnsTimeout,
        HttpFailure::ConnectTimeout => Error::ConnectionTimeout,
        HttpFailure::Refused => Error::ConnectionRefused,
        HttpFailure::Certificate => Error::TlsCertificateError,
        HttpFailure::Tls => Error::TlsProtocolError,
        HttpFailure::Ended => Error::ConnectionTerminated,
        HttpFailure::Protocol => Error::HttpProtocolError,
        HttpFailure::Incomplete => Error::HttpResponseIncomplete,
        HttpFailure::ResponseHeaders => Error::HttpResponseHeaderSectionSize(None),
        HttpFailure::ResponseTimeout => Error::HttpResponseTimeout,
        HttpFailure::RequestSize(size) => Error::HttpRequestBodySize(size),
        HttpFailure::ResponseSize(size) => Error::HttpResponseBodySize(Some(size)),
        HttpFailure::Denied => Error::HttpRequestDenied,
        HttpFailure::Memory => Error::InternalError(Some(failure.to_string())),
    }
}

/// Returns the error that the guest gets for a refusal.
fn error_of_refusal(why: &HttpRefusal) -> Error {
    match why {
        HttpRefusal::NoRule | HttpRefusal::Placeholder(_) => Error::HttpRequestDenied,
        HttpRefusal::Address(_) => Error::DestinationIpProhibited,
        HttpRefusal::Limit(_) => Error::ConnectionLimitReached,
        HttpRefusal::Malformed(_) => Error::HttpRequestUriInvalid,
        HttpRefusal::Unreadable(_) => Error::HttpResponseContentCoding(None),
    }
}
