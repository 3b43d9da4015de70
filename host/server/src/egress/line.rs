//! One connection to a server, as far as it takes a place: whether a request uses it, and how it is ended for another plugin's.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use wharf_sandbox::{
    network::{Body, Error},
    places::{GivesWay, Occupant, Place, Places, Rule},
};

/// After how long a connection that was made counts as idle if no request was sent over it: another connection came free meanwhile.
const UNUSED: Duration = Duration::from_secs(1);

/// How many requests of one plugin are under way at once: as many as it can have connections.
pub const REQUESTED: usize = 96;

/// HTTP requests of all plugins. There are as many connections, which plugins share by plugin; this is each client's part of them.
pub static ALL_REQUESTS: Rule = Rule {
    of: "HTTP requests of all plugins that are under way",
    number: "128",
    taker: "client",
    until: "the response has been read, or the call that made the request is over",
    asking: "not held: no call of a plugin is under way while a person thinks",
    gone: "given back with the call",
    gives_way: "nothing; a request waits 5 s for its turn, and the client with the fewest requests is next",
    old: Duration::MAX,
};

/// Requests of one plugin.
pub static REQUESTS: Rule = Rule {
    of: "HTTP requests of one plugin that are under way",
    number: "96 for each plugin",
    taker: "client",
    until: "the response has been read, or the call that made the request is over",
    asking: "not held: no call of a plugin is under way while a person thinks",
    gone: "given back with the call",
    gives_way: "nothing; a request waits 5 s for its turn, and the client with the fewest requests is next",
    old: Duration::MAX,
};

/// How a connection stands. What sends requests does not tell, so this is seen from what goes over it: the first bytes that are written
/// after some were read are those of another request.
pub struct Line {
    made: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How many requests were begun.
    requests: u64,
    /// Whether something was read since the last request was begun.
    has_read: bool,
    /// Since when no request uses it. None: one does, or it has just been made.
    idle: Option<Instant>,
    /// Whether it has to end as soon as no request uses it.
    ends: bool,
    reader: Option<Waker>,
}

impl Line {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { made: Instant::now(), state: Mutex::default() })
    }

    fn idle(&self, state: &State, now: Instant) -> Option<Duration> {
        let unused =
            || Some(now.saturating_duration_since(self.made)).filter(|age| state.requests == 0 && *age > UNUSED);
        state.idle.map(|at| now.saturating_duration_since(at)).or_else(unused)
    }

    /// Whether it has to end now. Otherwise the reader is woken when it has to.
    fn is_to_end(&self, cx: &Context<'_>) -> bool {
        let mut state = self.state.lock();
        if state.reader.as_ref().is_none_or(|reader| !reader.will_wake(cx.waker())) {
            state.reader = Some(cx.waker().clone());
        }
        // A request that was begun in this moment is not cut off.
        state.ends && self.idle(&state, Instant::now()).is_some()
    }

    fn has_read(&self) {
        self.state.lock().has_read = true;
    }

    fn writes(&self) {
        let mut state = self.state.lock();
        if state.has_read || state.requests == 0 {
            state.requests += 1;
            (state.has_read, state.idle) = (false, None);
        }
    }

    /// Notes that a request is done, unless another one has been begun since.
    fn is_done(&self, request: u64) {
        let mut state = self.state.lock();
        if state.requests == request {
            state.idle = Some(Instant::now());
            if let Some(reader) = state.reader.take().filter(|_| state.ends) {
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

    fn end(&self) {
        let mut state = self.state.lock();
        state.ends = true;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }
}

/// Tells in a response which connection it came over.
#[derive(Clone)]
pub struct Used(Arc<Line>);

impl Used {
    /// The use of the connection by the request that was just answered, until this is dropped.
    pub fn by_this(self, connections: &Arc<Places>) -> InUse {
        let request = self.0.state.lock().requests;
        InUse { line: self.0, request, connections: Arc::clone(connections) }
    }
}

/// The use of a connection by one request.
pub struct InUse {
    line: Arc<Line>,
    request: u64,
    connections: Arc<Places>,
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.line.is_done(self.request);
        self.connections.reconsider();
    }
}

/// The body of a response, which holds its connection and other places until it has ended or is dropped.
pub struct Holding<T> {
    inner: Body,
    held: Option<T>,
}

impl<T> Holding<T> {
    pub fn new(inner: Body, held: T) -> Self {
        let held = (!inner.is_end_stream()).then_some(held);
        Self { inner, held }
    }
}

impl<T: Unpin> HttpBody for Holding<T> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
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

/// A connection.
pub struct Io {
    stream: Stream,
    /// A proxy is at the other end, and wants whole URLs.
    proxied: bool,
    line: Arc<Line>,
    /// Given back when the connection is closed.
    _place: Place,
}

/// What a connection goes over.
pub enum Stream {
    Plain(TokioIo<TcpStream>),
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Connection for Io {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.proxied).extra(Used(Arc::clone(&self.line)))
    }
}

impl Io {
    pub fn new(stream: Stream, proxied: bool, line: Arc<Line>, place: Place) -> Self {
        Self { stream, proxied, line, _place: place }
    }
}

/// Passes a call on to the stream.
macro_rules! pass {
    ($self:ident, $method:ident $(, $argument:ident)*) => {
        match &mut $self.get_mut().stream {
            Stream::Plain(stream) => Pin::new(stream).$method($($argument),*),
            Stream::Tls(stream) => Pin::new(&mut **stream).$method($($argument),*),
        }
    };
}

impl Read for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let line = Arc::clone(&self.line);
        if line.is_to_end(cx) {
            // As if the server had closed it: whoever keeps it for further requests lets it go.
            return Poll::Ready(Ok(()));
        }
        let read: Poll<io::Result<()>> = pass!(self, poll_read, cx, buffer);
        if read.is_ready() {
            line.has_read();
        }
        read
    }
}

impl Write for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.line.writes();
        pass!(self, poll_write, cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        pass!(self, poll_flush, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        pass!(self, poll_shutdown, cx)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.line.writes();
        pass!(self, poll_write_vectored, cx, slices)
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
        let line = Line::new();
        let cx = Context::from_waker(Waker::noop());
        assert!(!is_idle(&line), "it is made for a request");
        line.writes();
        line.writes();
        let first = line.state.lock().requests;
        line.has_read();
        assert!(!is_idle(&line), "the response is being read");
        line.is_done(first);
        assert!(is_idle(&line));
        line.writes();
        assert!(!is_idle(&line));
        line.is_done(first);
        assert!(!is_idle(&line), "this is the end of the request before");
        line.end();
        assert!(!line.is_to_end(&cx), "a request uses it");
        line.has_read();
        line.is_done(first + 1);
        assert!(line.is_to_end(&cx));
    }
}
