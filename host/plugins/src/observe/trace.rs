//! The tracing span of a run: its trace, its ids, and the HTTP requests that the plugin sent. Whether a run is traced is decided before a
//! span is created.
//!
//! If the operator has enabled it, the HTTP requests of plugins propagate the trace (W3C Trace Context). wharf then replaces the trace
//! headers that the plugin has set.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use http::{HeaderName, HeaderValue, Method, Request};
use parking_lot::Mutex;
use wharf_protocol::meta::Trace;
use wharf_scope::network::{Body, Network, Sending, Unsent};

use super::record::CallRecord;

/// The maximum number of HTTP requests of a run that get spans. Its record has the same maximum.
const MAX_TRACED_REQUESTS: usize = 128;
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Decides which runs are traced, and sends their spans.
pub trait Tracer: Send + Sync {
    /// Creates the span of a run that is about to begin, or returns `None` if the run is neither sampled nor its trace propagated. `from`:
    /// the trace context that the client has sent.
    fn begin(&self, from: Option<&Trace>) -> Option<Span>;

    /// Receives the record and span of a run that has ended. Must not block.
    fn ended(&self, record: &CallRecord, span: &Span);
}

/// The tracing span of a run.
#[derive(Debug)]
pub struct Span {
    /// The trace id.
    pub trace: [u8; 16],
    /// The span id of the client's request.
    pub id: [u8; 8],
    /// The span id of the plugin's run, whose parent is the span of the request.
    pub run: [u8; 8],
    /// The span id of the parent in the client, if it sent one.
    pub parent: Option<[u8; 8]>,
    /// The `tracestate` that the client sent, passed on unchanged.
    pub state: Option<String>,
    /// Whether the span is sent to the collector.
    pub sampled: bool,
    /// Whether the HTTP requests of the plugin propagate the trace.
    pub propagated: bool,
    sent: Mutex<Vec<Sent>>,
}

/// An HTTP request that the plugin sent.
#[derive(Debug, Clone)]
pub struct Sent {
    pub id: [u8; 8],
    pub method: Method,
    /// The scheme, host and port of the URL. `None` unless the network has allowed the request, because a plugin can put arbitrary text
    /// there.
    pub to: Option<(String, String, Option<u16>)>,
    pub began: SystemTime,
    /// The time until the response headers arrived.
    pub took: Duration,
    pub status: Option<u16>,
    /// Why there is no response.
    pub error: Option<&'static str>,
}

impl Span {
    /// Creates the span of a run that begins, in the trace `from` or, without it, in a new trace.
    pub fn new(from: Option<&Trace>, sampled: bool, propagated: bool) -> Self {
        let known = from.and_then(|trace| Some((bytes(&trace.trace_id)?, bytes(&trace.span_id)?)));
        let (trace, parent) = match known {
            Some((trace, parent)) => (trace, Some(parent)),
            None => (fastrand::u128(1..).to_be_bytes(), None),
        };
        let state = from.and_then(|trace| trace.state.clone()).filter(|_| parent.is_some());
        Self { trace, id: id(), run: id(), parent, state, sampled, propagated, sent: Mutex::default() }
    }

    /// Returns the HTTP requests that the plugin has sent.
    pub fn sent(&self) -> Vec<Sent> {
        self.sent.lock().clone()
    }

    fn add(&self, sent: Sent) {
        let mut all = self.sent.lock();
        if all.len() < MAX_TRACED_REQUESTS {
            all.push(sent);
        }
    }
}

/// Returns a random span id. It is not secret, so the generator need not be secure.
fn id() -> [u8; 8] {
    fastrand::u64(1..).to_be_bytes()
}

/// Decodes exactly `2 * N` hexadecimal digits. Returns `None` for any other text.
pub fn bytes<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if digits.len() != 2 * N || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// A network for one run that records HTTP requests in the run's span, and adds the trace headers to them.
pub struct TracedNetwork {
    inner: Arc<dyn Network>,
    span: Arc<Span>,
}

impl TracedNetwork {
    pub fn new(inner: Arc<dyn Network>, span: Arc<Span>) -> Self {
        Self { inner, span }
    }
}

impl Network for TracedNetwork {
    fn send(&self, mut request: Request<Body>) -> Sending {
        let (span, id) = (Arc::clone(&self.span), id());
        if span.propagated {
            set_trace_headers(&mut request, &span, &id);
        }
        if !span.sampled {
            return self.inner.send(request);
        }
        let (method, uri) = (request.method().clone(), request.uri());
        let port = uri.port_u16();
        let to = uri.host().map(|host| (uri.scheme_str().unwrap_or("https").to_owned(), host.to_owned(), port));
        let (began, error) = (SystemTime::now(), Some("cancelled"));
        let sent = Sent { id, method, to: None, began, took: Duration::ZERO, status: None, error };
        let mut open = Open { span, sent: Some(sent), began: Instant::now() };
        let sending = self.inner.send(request);
        Box::pin(async move {
            let answer = sending.await;
            if let Some(sent) = &mut open.sent {
                (sent.to, sent.status, sent.error) = match &answer {
                    Ok(response) => (to, Some(response.status().as_u16()), None),
                    Err(Unsent::Denied(_)) => (None, None, Some("denied")),
                    Err(Unsent::Failed(_)) => (to, None, Some("failed")),
                };
            }
            answer
        })
    }

    fn hides(&self) -> bool {
        self.inner.hides()
    }

    fn hide(&self, bytes: &mut [u8]) {
        self.inner.hide(bytes);
    }

    fn number(&self) -> u64 {
        self.inner.number()
    }
}

/// An RAII guard for an HTTP request that is being sent. When it is dropped, the request has ended or was cancelled, and is added to the
/// span.
struct Open {
    span: Arc<Span>,
    sent: Option<Sent>,
    began: Instant,
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(mut sent) = self.sent.take() {
            sent.took = self.began.elapsed();
            self.span.add(sent);
        }
    }
}

/// Replaces the trace headers of a request.
fn set_trace_headers(request: &mut Request<Body>, span: &Span, id: &[u8; 8]) {
    let headers = request.headers_mut();
    headers.remove(TRACEPARENT);
    headers.remove(TRACESTATE);
    let hex = wharf_base::text::hex;
    let text = format!("00-{}-{}-{:02x}", hex(&span.trace), hex(id), u8::from(span.sampled));
    if let Ok(value) = HeaderValue::from_str(&text) {
        headers.insert(TRACEPARENT, value);
    }
    if let Some(state) = span.state.as_deref().and_then(|state| HeaderValue::from_str(state).ok()) {
        headers.insert(TRACESTATE, state);
    }
}

#[cfg(test)]
mod tests {
    use http::Response;
    use http_body_util::{BodyExt, Empty};
    use wharf_scope::network::{HttpFailure, HttpRefusal};

    use super::*;

    #[test]
    fn a_span_belongs_to_the_trace_of_its_client_or_begins_one() {
        let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let trace = Trace::parse(traceparent, Some("vendor=1")).unwrap();
        let span = Span::new(Some(&trace), true, true);
        assert_eq!(wharf_base::text::hex(&span.trace), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(span.parent.map(|parent| wharf_base::text::hex(&parent)).unwrap(), "b7ad6b7169203331");
        assert_eq!(span.state.as_deref(), Some("vendor=1"));
        let (one, other) = (Span::new(None, true, false), Span::new(None, true, false));
        assert_eq!((one.parent, one.state.as_deref()), (None, None));
        assert!(one.trace != other.trace && one.id != other.id && one.id != one.run);
    }

    /// A network whose answer depends on the host of the request.
    struct Answers;

    impl Network for Answers {
        fn send(&self, request: Request<Body>) -> Sending {
            let host = request.uri().host().unwrap().to_owned();
            Box::pin(async move {
                match host.as_str() {
                    "good.example" => Ok(Response::new(body())),
                    "broken.example" => Err(Unsent::Failed(HttpFailure::Ended)),
                    "denied.example" => Err(Unsent::Denied(HttpRefusal::NoRule)),
                    _ => std::future::pending().await,
                }
            })
        }

        fn hides(&self) -> bool {
            false
        }

        fn hide(&self, _: &mut [u8]) {}

        fn number(&self) -> u64 {
            0
        }
    }

    fn body() -> Body {
        Empty::new().map_err(|never| match never {}).boxed_unsync()
    }

    #[tokio::test]
    async fn only_hosts_to_which_requests_were_let_out_are_shown() {
        let span = Arc::new(Span::new(None, true, false));
        let network = TracedNetwork::new(Arc::new(Answers), Arc::clone(&span));
        for (host, shown, error) in [
            ("good.example", true, None),
            ("broken.example", true, Some("failed")),
            ("denied.example", false, Some("denied")),
            ("slow.example", false, Some("cancelled")),
        ] {
            let mut sending = network.send(Request::get(format!("https://{host}/")).body(body()).unwrap());
            let polled = futures_util::poll!(&mut sending);
            assert_eq!(polled.is_pending(), error == Some("cancelled"));
            drop((sending, polled));
            let sent = span.sent().pop().unwrap();
            assert_eq!(
                (sent.to.map(|(_, host, _)| host), sent.error),
                (shown.then(|| host.to_owned()), error),
                "{host}"
            );
        }
    }

    #[test]
    fn digits_have_to_be_as_many_as_they_should() {
        assert_eq!(bytes::<2>("0aff"), Some([10, 255]));
        for wrong in ["0af", "0afff", "0ag0", "", "+a+b", "é9"] {
            assert_eq!(bytes::<2>(wrong), None, "{wrong}");
        }
    }
}
