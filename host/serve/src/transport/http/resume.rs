//! Event streams (Server-Sent Events) of legacy sessions, which clients may leave and resume later.
//!
//! The messages on a stream are stored for a while as numbered events, so that a client that was cut off, or told to come back later, can
//! ask for what followed the last event that it has seen. A stream goes on even without a reader. What is stored is bounded: unread old
//! events make room for new ones, and streams of the client with the most bytes make room for others.
//!
//! The numbers of streams begin at random in each process, so that an event of before a restart is not taken for one of another stream. Each
//! event's id says what its stream is for, so that a client whose stream is not stored any more still gets a clear answer: the stream for
//! changes begins again, and a request is answered with an error.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use axum::body::Body;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures_util::stream;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, Interval, interval_at},
};
use tokio_util::sync::CancellationToken;
use wharf_protocol::{Feature, Id, Revision};

use super::{
    body::Hold,
    connections::Busy,
    reply::{KEEP_ALIVE_INTERVAL, Running},
    sse::{self, Event, EventId},
};
use crate::client::{news::ShortId, session::Session};
use wharf_base::{
    ledger::{Account, Charge},
    party::Party,
    places::PoolRule,
    random_id,
};

/// The maximum number of bytes that one stream stores; a single larger event is stored alone.
const MAX_STREAM_BYTES: usize = 256 * 1024;
/// The maximum number of bytes that all finished streams store together, what one takes besides its events, and how long it is stored.
const MAX_FINISHED_BYTES: usize = 32 << 20;
const STREAM_BYTES: usize = 1 << 10;
const FINISHED_RETENTION: Duration = Duration::from_secs(300);
/// How long clients are told to wait before they come back.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The same when wharf stops. The official TypeScript client gives up its stream for changes after two attempts, and a restart takes a moment.
const RESTART_INTERVAL: Duration = Duration::from_secs(3);

/// The longest JSON of a request's id that is part of event ids, in bytes.
const MAX_REQUEST_ID_BYTES: usize = ShortId::MAX_BYTES;

/// The streams of all sessions.
pub struct Streams {
    table: Mutex<Table>,
    /// What event ids end with, to say which replica stores the stream: a dot and its address, or nothing if there are no others.
    suffix: String,
}

/// What a stream is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// Changes, and other messages that belong to no request.
    Changes,
    /// The answer to this request.
    Answer(Id),
    /// The answers to a batch.
    Batch,
    /// The answer is known to be lost, and the client was told so.
    Told,
}

impl Purpose {
    /// Returns the text for event ids.
    fn kind(&self) -> String {
        match self {
            Self::Changes => "c".into(),
            Self::Answer(id) => {
                let json = id.to_string();
                if json.len() > MAX_REQUEST_ID_BYTES {
                    return Self::Batch.kind();
                }
                format!("a{}", URL_SAFE_NO_PAD.encode(json))
            }
            Self::Batch => "b".into(),
            Self::Told => "t".into(),
        }
    }

    fn parse(kind: &str) -> Option<Self> {
        match (kind.get(..1)?, kind.get(1..)?) {
            ("c", "") => Some(Self::Changes),
            ("b", "") => Some(Self::Batch),
            ("t", "") => Some(Self::Told),
            ("a", id) if id.len() <= 2 * MAX_REQUEST_ID_BYTES => {
                let json = String::from_utf8(URL_SAFE_NO_PAD.decode(id).ok()?).ok()?;
                Id::from_raw(&json).map(Self::Answer)
            }
            _ => None,
        }
    }
}

/// What follows the event that a client names.
pub enum Follows {
    /// The stream, and the number of the next event.
    Stream(Arc<EventLog>, u64),
    /// The stream is not stored here, or not any more. None: it is not known what it was for. With the address of another replica that may
    /// store it.
    Nothing(Option<Purpose>, Option<String>),
}

struct Table {
    /// When streams that ended too long ago were last looked for.
    looked: Instant,
    by_number: BTreeMap<u64, Arc<EventLog>>,
    last_number: u64,
    /// The streams of each client that have ended.
    finished: HashMap<Party, Finished>,
    finished_bytes: usize,
}

/// The streams of one client that have ended, the oldest first: their numbers and sizes, and when they ended.
#[derive(Default)]
struct Finished {
    streams: VecDeque<(u64, usize, Instant)>,
    bytes: usize,
}

pub static KEPT_STREAMS: PoolRule = PoolRule {
    of: "bytes of event streams that have ended",
    number: "32 MiB",
    taker: "client",
    until: "5 minutes after the end of the stream",
    asking: "not held: the stream has ended",
    gone: "held, since they are kept for clients that come back",
    gives_way: "the oldest stream of the client with the most bytes, whichever client needs the room",
    old: Duration::ZERO,
};

impl Table {
    /// Adds a stream that has ended. While such streams have too many bytes, the oldest of the client with the most bytes is dropped.
    fn add(&mut self, party: Party, stream: (u64, usize, Instant)) {
        let own = self.finished.entry(party).or_default();
        own.streams.push_back(stream);
        own.bytes += stream.1;
        self.finished_bytes += stream.1;
        while self.finished_bytes > MAX_FINISHED_BYTES {
            let Some(most) = self.finished.iter().max_by_key(|(_, own)| own.bytes).map(|(party, _)| *party) else {
                return;
            };
            self.drop_oldest(most);
        }
    }

    fn drop_oldest(&mut self, party: Party) {
        let Some(own) = self.finished.get_mut(&party) else { return };
        if let Some((number, bytes, _)) = own.streams.pop_front() {
            own.bytes -= bytes;
            self.finished_bytes -= bytes;
            self.by_number.remove(&number);
        }
        if own.streams.is_empty() {
            self.finished.remove(&party);
        }
    }

    /// Drops the streams that ended too long ago. Searches for them from time to time only.
    fn forget_old(&mut self) {
        if self.looked.elapsed() < FINISHED_RETENTION / 10 {
            return;
        }
        self.looked = Instant::now();
        let is_old = |own: &Finished| own.streams.front().is_some_and(|(_, _, at)| at.elapsed() >= FINISHED_RETENTION);
        while let Some(party) = self.finished.iter().find(|(_, own)| is_old(own)).map(|(party, _)| *party) {
            self.drop_oldest(party);
        }
    }
}

impl Streams {
    /// `address`: that of this process, if there are other replicas.
    pub fn new(address: Option<&str>) -> Self {
        let (by_number, finished, finished_bytes) = Default::default();
        // Far from the end of the numbers, so that they do not run out.
        let last_number = random_id::number();
        let table = Table { looked: Instant::now(), by_number, last_number, finished, finished_bytes };
        Self { table: Mutex::new(table), suffix: address.map(|address| format!(".{address}")).unwrap_or_default() }
    }

    /// Opens a new stream of a session.
    pub fn open(&self, session: &Session, party: Party, purpose: &Purpose) -> Arc<EventLog> {
        let mut kept = self.table.lock();
        kept.forget_old();
        kept.last_number += 1;
        let log = Arc::new(EventLog {
            number: kept.last_number,
            kind: format!("{}{}", purpose.kind(), self.suffix).into(),
            party,
            session: Arc::clone(&session.id),
            account: session.account.clone(),
            revision: session.revision,
            state: Mutex::new(State::new()),
            changes: watch::channel(0).0,
        });
        kept.by_number.insert(log.number, Arc::clone(&log));
        log
    }

    /// Finds what follows the named event. A stream of another session is the same as none.
    pub fn find(&self, session: &Session, last_event_id: &str) -> Follows {
        if !session.revision.has(Feature::EventIds) {
            return Follows::Nothing(None, None);
        }
        self.find_of(&session.id, last_event_id)
    }

    /// Finds what follows the named event of a session that may be in the memory of another replica.
    pub fn find_of(&self, session: &str, last_event_id: &str) -> Follows {
        let mut parts = last_event_id.splitn(3, '-');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (Some(stream), Some(event)) = (number(), number()) else { return Follows::Nothing(None, None) };
        let kind = parts.next().unwrap_or_default();
        let (kind, replica) = kind.split_once('.').map_or((kind, None), |(kind, replica)| (kind, Some(replica)));
        let Some(purpose) = Purpose::parse(kind) else { return Follows::Nothing(None, None) };
        if let Some(replica) = replica
            && self.suffix.strip_prefix('.') != Some(replica)
        {
            return Follows::Nothing(Some(purpose), Some(replica.to_owned()));
        }
        let log = self.table.lock().by_number.get(&stream).filter(|log| *log.session == *session).cloned();
        let next = event.saturating_add(1);
        let is_stored = |log: &Arc<EventLog>| {
            let state = log.state.lock();
            next >= state.first && next <= state.next
        };
        match log.filter(is_stored) {
            Some(log) => Follows::Stream(log, next),
            None => Follows::Nothing(Some(purpose), None),
        }
    }

    /// Marks a stream as ended. Its events are stored for a while.
    fn finish(&self, log: &EventLog) {
        let bytes = {
            let mut state = log.state.lock();
            state.ended = true;
            state.bytes
        };
        log.changed();
        self.table.lock().add(log.party, (log.number, bytes + STREAM_BYTES, Instant::now()));
    }

    /// Puts the messages of a request, and finally its answer, on a stream.
    pub async fn fill(&self, log: Arc<EventLog>, mut running: Running, first: Option<String>) {
        if let Some(first) = first {
            log.append_message(first).await;
        }
        let answer = loop {
            if let Some(answer) = running.ended.take() {
                break answer;
            }
            tokio::select! {
                biased;
                Some(message) = running.messages.recv() => log.append_message(message.text).await,
                answer = &mut running.work => break answer,
            }
        };
        while let Some(message) = running.messages.try_recv() {
            log.append_message(message.text).await;
        }
        if let Some(reply) = answer {
            let Hold { charge, busy, .. } = reply.hold;
            log.append(reply.text.into_string(), charge).await;
            let mut state = log.state.lock();
            state.busy = busy.filter(|_| state.attached);
        }
        self.finish(&log);
    }
}

/// The event that answers a request whose stream is lost. The client need not come back after it.
pub fn lost(text: &str) -> Bytes {
    let kind = Purpose::Told.kind();
    let id = Some(EventId { stream: 0, number: 0, kind: &kind });
    Event { id, name: Some("message"), data: Some(text), retry: None }.bytes()
}

/// The events of one stream.
pub struct EventLog {
    number: u64,
    /// What the stream is for, as event ids say it.
    kind: Box<str>,
    party: Party,
    session: Arc<str>,
    /// The account that is charged for the stored events.
    account: Account,
    revision: Revision,
    state: Mutex<State>,
    /// Counts changes, for tasks that wait for one.
    changes: watch::Sender<u64>,
}

struct State {
    /// Each event with what is charged for it.
    events: VecDeque<(Arc<str>, Option<Charge>)>,
    /// The number of the first event that is stored, of the next to come, and of the next to be read. Event 0 is the one
    /// that only opens the stream.
    first: u64,
    next: u64,
    read: u64,
    bytes: usize,
    ended: bool,
    /// Whether the reader learns, at the end of the stream, when to come back.
    dismissed: bool,
    /// Counts readers. Only the latest one may read.
    reader: u64,
    attached: bool,
    /// When the last reader left.
    left: Instant,
    /// Held while the answer is not read completely.
    busy: Option<Busy>,
}

impl State {
    fn new() -> Self {
        let (events, left) = (VecDeque::new(), Instant::now());
        let (bytes, reader, ended, dismissed, attached) = (0, 0, false, false, false);
        Self { events, first: 1, next: 1, read: 1, bytes, ended, dismissed, reader, attached, left, busy: None }
    }

    fn drop_first(&mut self) {
        if let Some((event, _)) = self.events.pop_front() {
            self.bytes -= event.len();
            self.first += 1;
        }
    }
}

impl EventLog {
    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Adds a message from before the answer. If there is no memory for it, it is dropped.
    async fn append_message(&self, text: String) {
        if let Ok(charge) = self.account.charge(text.len()) {
            self.append(text, Some(charge)).await;
        }
    }

    /// Adds an event. If the stream is full, events that were read make room. If they are not enough, this waits for the
    /// reader, or drops unread events if there is no reader.
    async fn append(&self, text: String, charge: Option<Charge>) {
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            {
                let mut state = self.state.lock();
                while state.bytes + text.len() > MAX_STREAM_BYTES
                    && !state.events.is_empty()
                    && (state.first < state.read || !state.attached)
                {
                    state.drop_first();
                }
                if state.events.is_empty() || state.bytes + text.len() <= MAX_STREAM_BYTES {
                    state.bytes += text.len();
                    state.events.push_back((text.into(), charge));
                    state.next += 1;
                    break;
                }
            }
            // This log holds the sender, so this never fails.
            if changes.changed().await.is_err() {
                return;
            }
        }
        self.changed();
    }

    /// Makes the stream, when it has ended, tell its reader when to come back: to another server, or to the next one here.
    pub fn dismiss(&self) {
        self.state.lock().dismissed = true;
    }

    /// Returns how long there has been no reader. None: there is one.
    pub fn unread_for(&self, now: std::time::Instant) -> Option<Duration> {
        let state = self.state.lock();
        (!state.attached).then(|| now.saturating_duration_since(state.left.into_std()))
    }

    /// Returns when there has been no reader for this long.
    pub async fn abandoned(&self, patience: Duration) {
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            let patience = if self.state.lock().attached { Duration::MAX } else { patience };
            if tokio::time::timeout(patience, changes.changed()).await.is_err() {
                return;
            }
        }
    }

    /// Returns the body of a response with all events from number `from` on. It replaces any earlier reader. `poll_after`: after how long
    /// the client is to leave and come back. `hold`: held while this reader exists.
    pub fn read(self: Arc<Self>, from: u64, poll_after: Option<Duration>, hold: Hold) -> Body {
        let reader = {
            let mut state = self.state.lock();
            state.reader += 1;
            state.attached = true;
            state.read = from;
            state.reader
        };
        self.changed();
        let primed = !self.revision.has(Feature::PrimedStreams);
        let reader = Reader {
            changes: self.changes.subscribe(),
            keep_alive: interval_at(Instant::now() + KEEP_ALIVE_INTERVAL, KEEP_ALIVE_INTERVAL),
            leave_at: poll_after.filter(|_| !primed).map(|after| Instant::now() + after),
            over: hold.listen.as_ref().map(|listen| listen.over.clone()),
            attached: Attached { log: self, reader, _hold: hold },
            next: from,
            primed,
            dismissed: false,
        };
        Body::from_stream(stream::unfold(reader, |mut reader| async move {
            let bytes = reader.next().await?;
            Some((Ok::<_, Infallible>(bytes), reader))
        }))
    }

    fn id(&self, number: u64) -> EventId<'_> {
        EventId { stream: self.number, number, kind: &self.kind }
    }

    fn event(&self, number: u64, text: &str) -> Bytes {
        // The first revision has no event ids.
        let id = self.revision.has(Feature::EventIds).then(|| self.id(number));
        Event { id, name: Some("message"), data: Some(text), retry: None }.bytes()
    }

    /// The event that opens a stream. It tells the client the id to resume from, and after how long to do so.
    fn priming(&self, next: u64) -> Bytes {
        let id = Some(self.id(next.saturating_sub(1)));
        Event { id, retry: Some(RETRY_INTERVAL), data: Some(""), name: None }.bytes()
    }
}

/// RAII guard of a reader. When this is dropped, the stream has no reader any more, unless a later one has replaced this one.
struct Attached {
    log: Arc<EventLog>,
    reader: u64,
    _hold: Hold,
}

impl Drop for Attached {
    fn drop(&mut self) {
        {
            let mut state = self.log.state.lock();
            if state.reader == self.reader {
                state.attached = false;
                state.left = Instant::now();
                state.busy = None;
            }
        }
        self.log.changed();
    }
}

struct Reader {
    attached: Attached,
    changes: watch::Receiver<u64>,
    keep_alive: Interval,
    leave_at: Option<Instant>,
    /// Cancelled when another client needs the place of this one.
    over: Option<CancellationToken>,
    next: u64,
    primed: bool,
    /// Whether the client was told when to come back.
    dismissed: bool,
}

impl Reader {
    /// Returns what to send next. None: the stream has ended, the client is to come back later, or another reader has replaced this one.
    async fn next(&mut self) -> Option<Bytes> {
        let log = Arc::clone(&self.attached.log);
        if !self.primed {
            self.primed = true;
            return Some(log.priming(self.next));
        }
        loop {
            self.changes.borrow_and_update();
            {
                let mut state = log.state.lock();
                if state.reader != self.attached.reader {
                    return None;
                }
                let at = self.next.max(state.first);
                let index = usize::try_from(at - state.first).unwrap_or(usize::MAX);
                if let Some(text) = state.events.get(index).map(|(text, _)| Arc::clone(text)) {
                    self.next = at + 1;
                    state.read = self.next;
                    drop(state);
                    log.changed();
                    return Some(log.event(at, &text));
                }
                if state.ended {
                    let told = std::mem::replace(&mut self.dismissed, true);
                    let last = || Event { retry: Some(RESTART_INTERVAL), ..Event::default() }.bytes();
                    let tells = state.dismissed && !told && log.revision.has(Feature::EventIds);
                    return tells.then(last);
                }
            }
            let leave_at = self.leave_at;
            let leave = async move {
                match leave_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let over = async {
                match &self.over {
                    Some(over) => over.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                () = leave => return None,
                () = over => return None,
                _ = self.keep_alive.tick() => return Some(sse::ALIVE),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_event_says_what_its_stream_is_for() {
        let uuid = "0b8f0d0e-6f0c-4d1c-9b0a-1a2b3c4d5e6f";
        for purpose in [
            Purpose::Changes,
            Purpose::Batch,
            Purpose::Told,
            Purpose::Answer(Id::number(-7)),
            Purpose::Answer(Id::string(uuid)),
            Purpose::Answer(Id::string("a\r\n\"-ü")),
        ] {
            let kind = purpose.kind();
            assert!(kind.bytes().all(|byte| byte.is_ascii_graphic()), "{kind}");
            assert_eq!(Purpose::parse(&kind), Some(purpose));
        }
        let long = Purpose::Answer(Id::string(&"x".repeat(MAX_REQUEST_ID_BYTES)));
        assert_eq!(long.kind(), Purpose::Batch.kind(), "too long to be part of each event's id");
        for other in ["", "x", "cc", "a", "a!", "aW10", "ü"] {
            assert_eq!(Purpose::parse(other), None, "{other}");
        }
    }

    #[test]
    fn who_keeps_most_makes_room() {
        let streams = Streams::new(None);
        let mut kept = streams.table.lock();
        let (ann, ben) = (Party::of(1), Party::of(2));
        let stream = |number| (number, MAX_STREAM_BYTES, Instant::now());
        (0..4).for_each(|number| kept.add(ben, stream(number)));
        (4..1000).for_each(|number| kept.add(ann, stream(number)));
        let numbers =
            |kept: &Table, party| kept.finished[&party].streams.iter().map(|(number, ..)| *number).collect::<Vec<_>>();
        assert_eq!(numbers(&kept, ben), [0, 1, 2, 3], "no stream of the client with few bytes is dropped");
        let of_ann = numbers(&kept, ann);
        assert_eq!(of_ann, (1000 - of_ann.len() as u64..1000).collect::<Vec<_>>(), "the oldest are dropped");
        assert!(
            kept.finished_bytes <= MAX_FINISHED_BYTES && kept.finished_bytes > MAX_FINISHED_BYTES - MAX_STREAM_BYTES
        );
        (1000..2000).for_each(|number| kept.add(ben, stream(number)));
        let (of_ann, of_ben) = (kept.finished[&ann].bytes, kept.finished[&ben].bytes);
        assert!(of_ann.abs_diff(of_ben) <= MAX_STREAM_BYTES, "both have half: {of_ann} and {of_ben}");
    }
}
