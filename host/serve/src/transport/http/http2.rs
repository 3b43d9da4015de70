//! HTTP/2 over TLS, for clients that support it. One connection has many streams, each of which is a request and its response.
//!
//! What HTTP/1.1 limits for each connection is limited here for each stream: the number of streams at once, how many of them the client
//! resets (rapid reset, CVE-2023-44487), how slowly one is read, and how long a connection has no stream.

use std::{
    collections::HashMap,
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Uri, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::{body::Incoming, rt::Executor};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{connections::Peer, front::Front, headers::MAX_FIELDS, refused::Refused, sips::Sips};
use crate::client::server::Server;
use wharf_base::{
    ledger::Charge,
    refusals::{Reason, What},
};

/// The maximum number of requests of one connection at once; `subscriptions/listen` is one of them for as long as it goes on.
const MAX_STREAMS: u32 = 100;
/// The maximum size of a request's headers, as HTTP/2 counts it. In memory they may take six times as much before the
/// number of fields is checked.
const MAX_HEADER_BYTES: u32 = 16 << 10;
/// The maximum memory that a connection takes besides its requests. A client can make the library remember 107 paths, and for each the
/// library retains the 16 KiB buffer in which the path was read. The rest is for the headers of one unfinished request, and for
/// buffers to read and write.
pub const CONNECTION_BYTES: usize = 2 << 20;
/// The memory that a request takes besides its headers: its state here and in the library, and the task that answers it.
const STREAM_BYTES: usize = 12 << 10;
/// The memory that a field takes besides its name and value: its slot in a half-empty hash table, and two allocations.
const FIELD_BYTES: usize = 256;
/// The flow-control windows: how many bytes a client may send of one body, and of all together, before they are read here.
const STREAM_WINDOW_BYTES: u32 = 128 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 512 << 10;
/// How many bytes of one answer the HTTP library buffers before it takes no more. With one byte, it takes a piece only when the
/// piece before is being sent.
const MAX_SEND_BUFFER_BYTES: usize = 1;
/// The largest piece of an answer that is handed to the HTTP library at once: the frame size that every client accepts.
const MAX_PIECE_BYTES: usize = 16 << 10;
/// How often a silent client gets a ping, and how long its answer may take.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// How often the state of a connection is checked.
const TICK_INTERVAL: Duration = Duration::from_secs(1);
/// A connection without a request for this long is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a client may stay connected after GOAWAY when it has nothing under way.
const GOAWAY_GRACE: Duration = Duration::from_secs(10);
/// How many requests a client may reset (`RST_STREAM`) between two ticks. A reset costs the client next to nothing, and wharf
/// the beginning of an answer.
const MAX_RESETS_PER_TICK: usize = 256;
/// How many requests may be reset before wharf has seen them.
const MAX_UNSEEN_RESETS: usize = 20;

/// Why a connection was closed by wharf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The client does not read what it is sent.
    Unread,
    /// The client begins requests only to reset them (rapid reset).
    RapidReset,
}

impl Cut {
    pub fn what(self) -> What {
        match self {
            Self::Unread => What::new(
                "a client that does not read what it is sent: its connection was closed",
                Reason::Other("slow_reader"),
            ),
            Self::RapidReset => What::new(
                "a client that begins requests and resets them again and again: its connection was closed",
                Reason::Other("rapid_reset"),
            ),
        }
    }
}

/// Serves a connection until it closes. `pace`: how long a piece of an answer may wait until the client reads it.
pub async fn serve<S>(server: &Arc<Server>, stream: S, peer: &Arc<Peer>, front: &Arc<Front>, pace: Duration)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (finish, streams) = (CancellationToken::new(), Arc::new(Streams::new()));
    let service = hyper::service::service_fn({
        let (server, front, peer) = (Arc::clone(server), Arc::clone(front), Arc::clone(peer));
        let (finish, streams) = (finish.clone(), Arc::clone(&streams));
        move |mut request: Request<Incoming>| {
            // The headers are charged or dropped here, before the library reads on.
            let admitted = charged(&server, &peer, request.headers());
            let (request, charge) = match admitted {
                Ok(charge) => {
                    own_uri(&mut request);
                    name_host(&mut request);
                    (Ok(request), Some(charge))
                }
                Err(refused) => (Err(refused), None),
            };
            let open = Open::new(&streams, charge);
            let (front, peer) = (Arc::clone(&front), Arc::clone(&peer));
            let (finish, draining) = (finish.clone(), server.draining.clone());
            async move {
                let mut response = match request {
                    Ok(request) => front.answer(request, &peer).await?,
                    Err(refused) => refused.into_response(),
                };
                let closes = response.headers_mut().remove(header::CONNECTION).is_some();
                if peer.has_asked_enough() || closes || draining.is_cancelled() {
                    finish.cancel();
                }
                Ok::<_, Infallible>(response.map(|body| Streamed::new(body, open)))
            }
        }
    });
    let stream = Sips::new(stream);
    let sip = stream.sip();
    // Tasks that the library spawns for the connection end with it.
    let ended = CancellationToken::new();
    let _ended = ended.clone().drop_guard();
    let connection = hyper::server::conn::http2::Builder::new(Tracked { tracker: server.tracker.clone(), ended })
        .timer(hyper_util::rt::TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(MAX_SEND_BUFFER_BYTES)
        .max_pending_accept_reset_streams(MAX_UNSEEN_RESETS)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL)
        .serve_connection(hyper_util::rt::TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let mut ticks = tokio::time::interval(TICK_INTERVAL.min(pace));
    loop {
        let leaves = tokio::select! {
            ended = sip.before(connection.as_mut()) => {
                if let Err(error) = ended {
                    tracing::debug!("connection: {error}");
                }
                return;
            }
            () = streams.reset_too_often.cancelled() => return server.refusals.say(Cut::RapidReset.what()),
            _ = ticks.tick() => match streams.look(pace, Instant::now()) {
                // Unauthenticated connections do not delay shutdown.
                _ if server.closing.is_cancelled() && !peer.is_admitted() => return,
                Look::Unread => return server.refusals.say(Cut::Unread.what()),
                Look::Stays => return,
                Look::Idle => true,
                Look::Busy => false,
            },
            () = goaway_due(&finish, server, &streams), if !streams.got_goaway() => true,
        };
        if leaves {
            if !streams.note_goaway(Instant::now()) {
                return;
            }
            connection.as_mut().graceful_shutdown();
        }
    }
}

/// Charges a request and its headers to the address, since the request is not authenticated yet.
fn charged(server: &Server, peer: &Peer, headers: &HeaderMap) -> Result<Charge, Refused> {
    if headers.len() > MAX_FIELDS {
        return Err(Refused::too_many_fields());
    }
    let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_BYTES).sum::<usize>();
    server.ledger.message(peer.of_address(), STREAM_BYTES + bytes).map_err(|full| Refused::full(&full, None))
}

/// Copies the URL of a request. The original is made of slices of the read buffer, and keeps all of that in memory.
fn own_uri(request: &mut Request<Incoming>) {
    if let Ok(own) = Uri::try_from(request.uri().to_string()) {
        *request.uri_mut() = own;
    }
}

/// Waits until the client is to get GOAWAY: because its connection is to close, because wharf is closing, or because wharf is draining and
/// will close soon. While wharf drains, a client that has made no request yet gets one answer first.
async fn goaway_due(finish: &CancellationToken, server: &Server, streams: &Streams) {
    tokio::select! {
        () = finish.cancelled() => {}
        () = server.closing.cancelled() => {}
        () = server.draining.cancelled(), if streams.has_begun() => {}
    }
}

/// Copies `:authority`, in which an HTTP/2 request names its host, into `Host`, where the checks of HTTP/1.1 look for it. A request with a
/// different `Host` then has two hosts, which is refused.
fn name_host(request: &mut Request<Incoming>) {
    let Some(named) = request.uri().authority().and_then(|name| HeaderValue::from_str(name.as_str()).ok()) else {
        return;
    };
    if request.headers().get(header::HOST) != Some(&named) {
        request.headers_mut().append(header::HOST, named);
    }
}

/// The executor for tasks that the library spawns: they run on the server's tracker, until the connection ends.
#[derive(Clone)]
struct Tracked {
    tracker: TaskTracker,
    ended: CancellationToken,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tracked {
    fn execute(&self, task: F) {
        let ended = self.ended.clone();
        self.tracker.spawn(async move { ended.run_until_cancelled(task).await });
    }
}

/// The streams of one connection.
struct Streams {
    state: Mutex<State>,
    /// Cancelled when the client has reset too many requests.
    reset_too_often: CancellationToken,
}

struct State {
    last: u64,
    open: usize,
    /// Since when no stream has been open.
    idle_since: Instant,
    /// The streams with a piece that the client has not read completely, and since when.
    unread: HashMap<u64, Instant>,
    resets: usize,
    /// When the client got GOAWAY.
    goaway_at: Option<Instant>,
    /// Whether the client began a request long after that.
    ignores_goaway: bool,
}

/// The state of a connection at a tick.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    Busy,
    Idle,
    Unread,
    /// The client got GOAWAY, and stays.
    Stays,
}

impl Streams {
    fn new() -> Self {
        let state = State {
            last: 0,
            open: 0,
            idle_since: Instant::now(),
            unread: HashMap::new(),
            resets: 0,
            goaway_at: None,
            ignores_goaway: false,
        };
        Self { state: Mutex::new(state), reset_too_often: CancellationToken::new() }
    }

    /// Notes that the client gets GOAWAY. Returns false if the client has never made a request, so that nothing is lost without GOAWAY.
    fn note_goaway(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        state.goaway_at.get_or_insert(now);
        state.last > 0
    }

    /// Whether the client has made a request.
    fn has_begun(&self) -> bool {
        self.state.lock().last > 0
    }

    fn got_goaway(&self) -> bool {
        self.state.lock().goaway_at.is_some()
    }

    /// Checks the state of the connection, once in each tick.
    fn look(&self, pace: Duration, now: Instant) -> Look {
        let mut state = self.state.lock();
        state.resets = 0;
        if state.unread.values().any(|since| now.duration_since(*since) > pace) {
            return Look::Unread;
        }
        match state.goaway_at {
            // When a client acknowledges GOAWAY, the library takes no more requests, and closes the connection after the last one.
            Some(goaway_at)
                if now.duration_since(goaway_at) > GOAWAY_GRACE && (state.open == 0 || state.ignores_goaway) =>
            {
                Look::Stays
            }
            None if state.open == 0 && now.duration_since(state.idle_since) > IDLE_TIMEOUT => Look::Idle,
            _ => Look::Busy,
        }
    }
}

/// A request that is not answered completely. If this is dropped before the end of the answer, the client has reset the request.
struct Open {
    streams: Arc<Streams>,
    number: u64,
    answered: bool,
    _charge: Option<Charge>,
}

impl Open {
    fn new(streams: &Arc<Streams>, charge: Option<Charge>) -> Self {
        let mut state = streams.state.lock();
        state.last += 1;
        state.open += 1;
        state.ignores_goaway |= state.goaway_at.is_some_and(|goaway_at| goaway_at.elapsed() > GOAWAY_GRACE);
        Self { streams: Arc::clone(streams), number: state.last, answered: false, _charge: charge }
    }

    /// Stores whether a piece waits until the client reads it.
    fn waits(&self, waits: bool) {
        let mut state = self.streams.state.lock();
        if waits {
            state.unread.insert(self.number, Instant::now());
        } else {
            state.unread.remove(&self.number);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.streams.state.lock();
        state.unread.remove(&self.number);
        state.open -= 1;
        if state.open == 0 {
            state.idle_since = Instant::now();
        }
        if !self.answered {
            state.resets += 1;
            if state.resets > MAX_RESETS_PER_TICK {
                self.streams.reset_too_often.cancel();
            }
        }
    }
}

/// The body of a response. The library asks for the next piece at once, and sends it when the client's window has room for everything
/// before it and for one byte of it. So the last byte of each chunk becomes a piece of its own: what is held for the answer is held until
/// the client has taken all but that byte.
struct Streamed {
    body: Body,
    /// The rest of the chunk that the inner body gave last.
    rest: Bytes,
    open: Open,
    begun: bool,
}

impl Streamed {
    fn new(body: Body, open: Open) -> Self {
        Self { body, rest: Bytes::new(), open, begun: false }
    }
}

/// Splits off the next piece, and leaves at least the last byte, unless it is the only one.
fn take(rest: &mut Bytes) -> Bytes {
    let piece = rest.split_to(rest.len().saturating_sub(1).clamp(1, MAX_PIECE_BYTES).min(rest.len()));
    if rest.len() == 1 {
        // Copied, so that the last byte does not keep the memory of the others in use.
        *rest = Bytes::copy_from_slice(rest);
    }
    piece
}

impl HttpBody for Streamed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = &mut *self;
        this.open.waits(false);
        this.begun = true;
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                ended => {
                    this.open.answered = true;
                    return Poll::Ready(ended);
                }
            }
        }
        this.open.waits(true);
        Poll::Ready(Some(Ok(Frame::data(take(&mut this.rest)))))
    }

    fn is_end_stream(&self) -> bool {
        !self.begun && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // The library asks for it before the first piece.
        self.body.size_hint()
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        // The library does not ask a response without a body for a piece.
        self.open.answered |= !self.begun && self.body.is_end_stream();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_told_to_go_goes() {
        let (streams, began) = (Arc::new(Streams::new()), Instant::now());
        let look = |after: Duration| streams.look(Duration::from_secs(20), began + after);
        let (idle, left) = (IDLE_TIMEOUT + TICK_INTERVAL, GOAWAY_GRACE + TICK_INTERVAL);
        assert_eq!(look(IDLE_TIMEOUT / 2), Look::Busy);
        assert_eq!(look(idle), Look::Idle);
        assert!(!streams.note_goaway(began), "a client without a request gets no GOAWAY");
        streams.state.lock().goaway_at = None;
        let request = Open::new(&streams, None);
        assert_eq!(look(idle), Look::Busy);
        assert!(streams.note_goaway(began));
        assert_eq!(look(idle), Look::Busy, "the request is being answered");
        drop(request);
        assert_eq!(look(GOAWAY_GRACE), Look::Busy);
        assert_eq!(look(left), Look::Stays);
        // Further requests do not let a client stay.
        streams.state.lock().goaway_at = began.checked_sub(left);
        let _another = Open::new(&streams, None);
        assert_eq!(look(TICK_INTERVAL), Look::Stays);
    }

    #[test]
    fn the_last_byte_goes_alone() {
        for (length, expected) in [
            (0, &[0][..]),
            (1, &[1]),
            (2, &[1, 1]),
            (MAX_PIECE_BYTES, &[MAX_PIECE_BYTES - 1, 1]),
            (MAX_PIECE_BYTES + 1, &[MAX_PIECE_BYTES, 1]),
            (MAX_PIECE_BYTES * 2 + 5, &[MAX_PIECE_BYTES, MAX_PIECE_BYTES, 4, 1]),
        ] {
            let whole: Vec<u8> = (0..=250).cycle().take(length).collect();
            let mut rest = Bytes::from(whole.clone());
            let mut pieces = vec![take(&mut rest)];
            while !rest.is_empty() {
                pieces.push(take(&mut rest));
            }
            assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), expected, "{length}");
            assert_eq!(pieces.concat(), whole);
        }
    }
}
