//! The usage state of one connection: whether a request uses it, and how it is closed when its place is needed by another plugin.

use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash},
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use parking_lot::Mutex;
use wharf_base::places::{GivesWay, Occupant, Place, Places, PoolRule};
use wharf_scope::network::{Body, HttpFailure};

use super::route::Stream;

/// How long a new connection may carry no request before it counts as idle. This happens when another connection became free first.
const UNUSED_GRACE: Duration = Duration::from_secs(1);

/// The most requests of one plugin at once: as many as it can have connections.
pub const MAX_REQUESTS_PER_PLUGIN: usize = 96;

/// The limit of HTTP requests of all plugins. There are as many connections, which are shared out by plugin; this limit shares them out by
/// client.
pub static ALL_REQUESTS: PoolRule = PoolRule {
    of: "HTTP requests of all plugins that are under way",
    number: "128",
    taker: "client",
    until: "the response has been read, or the call that made the request is over",
    asking: "not held: no call of a plugin runs while it waits for a person",
    gone: "given back with the call",
    gives_way: "nothing; a request waits 5 s for its turn, and the client with the fewest requests is next",
    old: Duration::MAX,
};

/// The limit of HTTP requests of one plugin.
pub static REQUESTS: PoolRule = PoolRule {
    of: "HTTP requests of one plugin that are under way",
    number: "96 for each plugin",
    taker: "client",
    until: "the response has been read, or the call that made the request is over",
    asking: "not held: no call of a plugin runs while it waits for a person",
    gone: "given back with the call",
    gives_way: "nothing; a request waits 5 s for its turn, and the client with the fewest requests is next",
    old: Duration::MAX,
};

/// The usage state of a connection. The HTTP client does not report when it begins a request, so this is inferred from the traffic: the
/// first write after a read begins the next request.
pub struct Line {
    created: Instant,
    /// The pool and the server that the connection belongs to.
    class: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of requests begun so far.
    requests: u64,
    /// Whether anything was read since the last request began.
    received_since_request: bool,
    /// When the last request finished. `None` while a request uses the connection, and before the first one.
    idle: Option<Instant>,
    /// Whether to close the connection as soon as no request uses it.
    closing: bool,
    reader: Option<Waker>,
}

impl Line {
    /// `pool` identifies the connections that are used in each other's stead: those of one HTTP client to one server.
    pub fn new(pool: impl Hash) -> Arc<Self> {
        Arc::new(Self {
            created: Instant::now(),
            class: BuildHasherDefault::<DefaultHasher>::default().hash_one(pool),
            state: Mutex::default(),
        })
    }

    fn idle(&self, state: &State, now: Instant) -> Option<Duration> {
        let unused = || {
            Some(now.saturating_duration_since(self.created)).filter(|age| state.requests == 0 && *age > UNUSED_GRACE)
        };
        state.idle.map(|at| now.saturating_duration_since(at)).or_else(unused)
    }

    /// Whether to close the connection now. If not, the reader's waker is stored and woken when it has to close.
    fn should_close(&self, cx: &Context<'_>) -> bool {
        let mut state = self.state.lock();
        if state.reader.as_ref().is_none_or(|reader| !reader.will_wake(cx.waker())) {
            state.reader = Some(cx.waker().clone());
        }
        // A request that has just begun is not cut off.
        state.closing && self.idle(&state, Instant::now()).is_some()
    }

    fn on_read(&self) {
        self.state.lock().received_since_request = true;
    }

    fn on_write(&self) {
        let mut state = self.state.lock();
        if state.received_since_request || state.requests == 0 {
            state.requests += 1;
            (state.received_since_request, state.idle) = (false, None);
        }
    }

    /// Marks a request as finished, unless a later one has begun.
    fn on_finished(&self, request: u64) {
        let mut state = self.state.lock();
        if state.requests == request {
            state.idle = Some(Instant::now());
            if let Some(reader) = state.reader.take().filter(|_| state.closing) {
                reader.wake();
            }
        }
    }
}

impl Occupant for Line {
    fn gives_way(&self, now: Instant) -> Option<GivesWay> {
        let state = self.state.lock();
        Some(GivesWay::ToSmaller { idle: self.idle(&state, now)? })
    }

    /// A request that waits for a connection gets the first of its class that becomes idle. If that one were closed to make room for
    /// another, a plugin that is at its limit would open a connection for each request.
    fn class(&self) -> Option<u64> {
        Some(self.class)
    }

    fn end(&self) {
        let mut state = self.state.lock();
        state.closing = true;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }
}

/// A response extension that identifies the connection that it came over.
#[derive(Clone)]
pub struct Used(Arc<Line>);

impl Used {
    /// Marks the connection as used by the request that was just answered, until the returned guard is dropped.
    pub fn into_guard(self, connections: &Arc<Places>) -> InUse {
        let request = self.0.state.lock().requests;
        InUse { line: self.0, request, connections: Arc::clone(connections) }
    }
}

/// RAII guard: one request uses the connection until this is dropped.
pub struct InUse {
    line: Arc<Line>,
    request: u64,
    connections: Arc<Places>,
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.line.on_finished(self.request);
        self.connections.reconsider();
    }
}

/// A response body that holds its connection and other places until it ends or is dropped.
pub struct HoldingBody<T> {
    inner: Body,
    held: Option<T>,
}

impl<T> HoldingBody<T> {
    pub fn new(inner: Body, held: T) -> Self {
        let held = (!inner.is_end_stream()).then_some(held);
        Self { inner, held }
    }
}

impl<T: Unpin> HttpBody for HoldingBody<T> {
    type Data = Bytes;
    type Error = HttpFailure;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpFailure>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(cx);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.held = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A connection, counted against the limit of connections.
pub struct Io {
    stream: Stream,
    line: Arc<Line>,
    /// The connection's place, given back when it closes.
    _place: Place,
}

impl Connection for Io {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.stream.proxied).extra(Used(Arc::clone(&self.line)))
    }
}

impl Io {
    pub fn new(stream: Stream, line: Arc<Line>, place: Place) -> Self {
        Self { stream, line, _place: place }
    }
}

impl Read for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let line = Arc::clone(&self.line);
        if line.should_close(cx) {
            // Reads as end of file, as if the server had closed it, so the connection pool drops it.
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer);
        if read.is_ready() {
            line.on_read();
        }
        read
    }
}

impl Write for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.line.on_write();
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.line.on_write();
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_idle(line: &Line) -> bool {
        line.gives_way(Instant::now()).is_some()
    }

    #[test]
    fn a_connection_is_idle_between_two_requests() {
        let line = Line::new(());
        let cx = Context::from_waker(Waker::noop());
        assert!(!is_idle(&line), "it was made for a request");
        line.on_write();
        line.on_write();
        let first = line.state.lock().requests;
        line.on_read();
        assert!(!is_idle(&line), "the response is being read");
        line.on_finished(first);
        assert!(is_idle(&line));
        line.on_write();
        assert!(!is_idle(&line));
        line.on_finished(first);
        assert!(!is_idle(&line), "this is the end of the request before");
        line.end();
        assert!(!line.should_close(&cx), "a request uses it");
        line.on_read();
        line.on_finished(first + 1);
        assert!(line.should_close(&cx));
    }
}
