//! HTTP/2, which is spoken over TLS with clients that know it. One connection has many streams, each a request and its response.
//!
//! Whatever HTTP/1.1 bounds by the connection is bounded here by the stream: how many there are at once, how many are given up, how
//! slowly one is read, and for how long there is none.

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
use crate::{
    base::{
        ledger::Charge,
        refusals::{Reason, What},
    },
    client::server::Server,
};

/// The most requests of one connection at once; `subscriptions/listen` is one of them for as long as it goes on.
const STREAMS: u32 = 100;
/// The most bytes of the headers of a request, as HTTP/2 counts them. In memory they may take six times as much before their number is
/// looked at.
const HEADER_BYTES: u32 = 16 << 10;
/// The most memory that a connection takes besides its requests. For each of the 107 paths that a client may have the library remember,
/// the library keeps the buffer in which the path was read, which has 16 KiB. Then there are the headers of one request that do not end,
/// and what is read and written.
pub const CONNECTION_BYTES: usize = 2 << 20;
/// What a request takes besides its headers: its state here and in the library, and the task that answers it.
const STREAM_BYTES: usize = 12 << 10;
/// What a field takes besides its name and value: its place in a table that is half empty, and the two allocations.
const FIELD_BYTES: usize = 256;
/// How many bytes a client may send of one body, and of all together, before they are read here.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 512 << 10;
/// How many bytes of one answer wait in the HTTP library before it takes no more of it. With one, it takes a piece only when the one
/// before is on its way.
const SEND_BYTES: usize = 1;
/// The largest piece of an answer that is handed to the HTTP library at once: what every client takes in one frame.
const PIECE: usize = 16 << 10;
/// How often a silent client is asked whether it is there, and for how long its answer may take.
const PING: Duration = Duration::from_secs(20);
/// How often connections are looked after.
const TICK: Duration = Duration::from_secs(1);
/// A connection without a request for so long is closed.
const IDLE: Duration = Duration::from_secs(60);
/// How long a client may take to leave that was told to go and has nothing under way.
const LEAVE: Duration = Duration::from_secs(10);
/// How many requests a client may give up between two ticks. Each costs it next to nothing, and wharf the beginning of an answer.
const MAX_GIVEN_UP: usize = 256;
/// How many requests may be given up before they were looked at.
const MAX_UNSEEN: usize = 20;

/// Why a connection was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The client does not read what it is sent.
    Unread,
    /// It begins requests only to give them up.
    GivenUp,
}

impl Cut {
    pub fn what(self) -> What {
        match self {
            Self::Unread => What::new(
                "a client that does not read what it is sent: its connection was ended",
                Reason::Other("slow_reader"),
            ),
            Self::GivenUp => What::new(
                "a client that begins requests and gives them up again and again: its connection was ended",
                Reason::Other("given_up"),
            ),
        }
    }
}

/// Serves a connection to its end. `pace`: how long an answer may wait for its client.
pub async fn serve<S>(server: &Arc<Server>, stream: S, peer: &Arc<Peer>, front: &Arc<Front>, pace: Duration)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (finish, streams) = (CancellationToken::new(), Arc::new(Streams::new()));
    let service = hyper::service::service_fn({
        let (server, front, peer) = (Arc::clone(server), Arc::clone(front), Arc::clone(peer));
        let (finish, streams) = (finish.clone(), Arc::clone(&streams));
        move |mut request: Request<Incoming>| {
            // All that is read of the headers is charged or dropped here, before the library reads on.
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
    // What the library spawns for the connection ends with it.
    let ended = CancellationToken::new();
    let _ended = ended.clone().drop_guard();
    let connection = hyper::server::conn::http2::Builder::new(Tracked { tracker: server.tracker.clone(), ended })
        .timer(hyper_util::rt::TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_BYTES)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BYTES)
        .max_pending_accept_reset_streams(MAX_UNSEEN)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING)
        .serve_connection(hyper_util::rt::TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let mut ticks = tokio::time::interval(TICK.min(pace));
    loop {
        let leaves = tokio::select! {
            ended = sip.before(connection.as_mut()) => {
                if let Err(error) = ended {
                    tracing::debug!("connection: {error}");
                }
                return;
            }
            // The connection is ended to make room for another.
            () = peer.end.cancelled() => return,
            () = streams.given_up.cancelled() => return server.refusals.say(Cut::GivenUp.what()),
            _ = ticks.tick() => match streams.look(pace, Instant::now()) {
                // Strangers do not keep wharf from ending.
                _ if server.closing.is_cancelled() && !peer.is_admitted() => return,
                Look::Unread => return server.refusals.say(Cut::Unread.what()),
                Look::Stays => return,
                Look::Idle => true,
                Look::Busy => false,
            },
            () = told_to_go(&finish, server, &streams), if !streams.is_told() => true,
        };
        if leaves {
            if !streams.tell(Instant::now()) {
                return;
            }
            connection.as_mut().graceful_shutdown();
        }
    }
}

/// Charges for a request and its headers, to the address, since it is not known yet who makes it.
fn charged(server: &Server, peer: &Peer, headers: &HeaderMap) -> Result<Charge, Refused> {
    if headers.len() > MAX_FIELDS {
        return Err(Refused::too_many_fields());
    }
    let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_BYTES).sum::<usize>();
    server.ledger.message(peer.of_address(), STREAM_BYTES + bytes).map_err(|full| Refused::full(&full, None))
}

/// Copies the parts of a request's URL, which are pieces of what was read from the connection and keep all of it in memory.
fn own_uri(request: &mut Request<Incoming>) {
    if let Ok(own) = Uri::try_from(request.uri().to_string()) {
        *request.uri_mut() = own;
    }
}

/// Waits until the client is to leave: for a reason of its own, because wharf takes nobody in any more, or because wharf will not soon.
/// In that last case a client that has asked for nothing yet gets one answer first.
async fn told_to_go(finish: &CancellationToken, server: &Server, streams: &Streams) {
    tokio::select! {
        () = finish.cancelled() => {}
        () = server.closing.cancelled() => {}
        () = server.draining.cancelled(), if streams.has_begun() => {}
    }
}

/// In HTTP/2 a request names its host in `:authority`. Whatever looks at it finds it in `Host`, as in HTTP/1.1. If a request has both
/// and they differ, it has two hosts then, which is refused.
fn name_host(request: &mut Request<Incoming>) {
    let Some(named) = request.uri().authority().and_then(|name| HeaderValue::from_str(name.as_str()).ok()) else {
        return;
    };
    if request.headers().get(header::HOST) != Some(&named) {
        request.headers_mut().append(header::HOST, named);
    }
}

/// Runs what the library spawns: on the server's tracker, until the connection ends.
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
    /// Cancelled when too many requests were given up.
    given_up: CancellationToken,
}

struct State {
    last: u64,
    open: usize,
    /// Since when there has been none.
    idle_since: Instant,
    /// The streams whose clients have not taken the last piece completely, and since when.
    unread: HashMap<u64, Instant>,
    given_up: usize,
    /// When the client was told to go.
    told: Option<Instant>,
    /// Whether it began a request long after that.
    defies: bool,
}

/// How a connection fares.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    Busy,
    Idle,
    Unread,
    /// The client was told to go, and does not.
    Stays,
}

impl Streams {
    fn new() -> Self {
        let state = State {
            last: 0,
            open: 0,
            idle_since: Instant::now(),
            unread: HashMap::new(),
            given_up: 0,
            told: None,
            defies: false,
        };
        Self { state: Mutex::new(state), given_up: CancellationToken::new() }
    }

    /// Notes that the client is told to go. False: it has never asked for anything, so that nothing is lost if it is not told.
    fn tell(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        state.told.get_or_insert(now);
        state.last > 0
    }

    /// Whether the client has asked for anything.
    fn has_begun(&self) -> bool {
        self.state.lock().last > 0
    }

    fn is_told(&self) -> bool {
        self.state.lock().told.is_some()
    }

    /// Looks after the connection, once in each tick.
    fn look(&self, pace: Duration, now: Instant) -> Look {
        let mut state = self.state.lock();
        state.given_up = 0;
        if state.unread.values().any(|since| now.duration_since(*since) > pace) {
            return Look::Unread;
        }
        match state.told {
            // A client that heeds it answers the library, which then takes no more requests and ends the connection with the last.
            Some(told) if now.duration_since(told) > LEAVE && (state.open == 0 || state.defies) => Look::Stays,
            None if state.open == 0 && now.duration_since(state.idle_since) > IDLE => Look::Idle,
            _ => Look::Busy,
        }
    }
}

/// A request that is not answered completely. If it is dropped before, its client gave it up.
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
        state.defies |= state.told.is_some_and(|told| told.elapsed() > LEAVE);
        Self { streams: Arc::clone(streams), number: state.last, answered: false, _charge: charge }
    }

    /// Notes whether a piece waits for the client.
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
            state.given_up += 1;
            if state.given_up > MAX_GIVEN_UP {
                self.streams.given_up.cancel();
            }
        }
    }
}

/// The body of a response. The library asks for the next piece at once, and hands it on when the client has made room for all before
/// it and for one byte of it. So the last byte of whatever there is goes as a piece of its own: what is held for the answer is held
/// until its client has taken the rest.
struct Streamed {
    body: Body,
    /// What is left of what the body gave last.
    rest: Bytes,
    open: Open,
    begun: bool,
}

impl Streamed {
    fn new(body: Body, open: Open) -> Self {
        Self { body, rest: Bytes::new(), open, begun: false }
    }
}

/// Takes the next piece off, and leaves at least the last byte, if it is not alone.
fn take(rest: &mut Bytes) -> Bytes {
    let piece = rest.split_to(rest.len().saturating_sub(1).clamp(1, PIECE).min(rest.len()));
    if rest.len() == 1 {
        // It does not keep the memory of the others in use.
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
        // It is asked for before the first piece.
        self.body.size_hint()
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        // A response without a body is never asked for a piece.
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
        let (idle, left) = (IDLE + TICK, LEAVE + TICK);
        assert_eq!(look(IDLE / 2), Look::Busy);
        assert_eq!(look(idle), Look::Idle);
        assert!(!streams.tell(began), "nobody is told who never asked for anything");
        streams.state.lock().told = None;
        let request = Open::new(&streams, None);
        assert_eq!(look(idle), Look::Busy);
        assert!(streams.tell(began));
        assert_eq!(look(idle), Look::Busy, "it is answered");
        drop(request);
        assert_eq!(look(LEAVE), Look::Busy);
        assert_eq!(look(left), Look::Stays);
        // A client that begins others meanwhile does not stay for that.
        streams.state.lock().told = began.checked_sub(left);
        let _another = Open::new(&streams, None);
        assert_eq!(look(TICK), Look::Stays);
    }

    #[test]
    fn the_last_byte_goes_alone() {
        for (length, expected) in [
            (0, &[0][..]),
            (1, &[1]),
            (2, &[1, 1]),
            (PIECE, &[PIECE - 1, 1]),
            (PIECE + 1, &[PIECE, 1]),
            (PIECE * 2 + 5, &[PIECE, PIECE, 4, 1]),
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
