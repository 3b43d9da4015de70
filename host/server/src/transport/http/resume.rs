//! Event streams of legacy sessions, which their clients may leave and take up again.
//!
//! What is said on a stream is kept for a while under numbered events, so that a client that was cut off, or told to come
//! back later, asks for what followed the last event it has seen. A stream goes on whether or not anybody reads it, and all
//! that is kept has a bound: what nobody has fetched makes room for what is newer.

use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, Interval, interval_at},
};
use wharf_protocol::{Feature, Revision};

use super::{
    body::Hold,
    connections::Busy,
    reply::{KEEP_ALIVE, Running},
};
use crate::{
    base::ledger::{Account, Charge},
    client::session::Session,
};

/// What one stream keeps, in bytes, besides its last event.
const MAX_STREAM_BYTES: usize = 256 * 1024;
/// What all finished streams keep together, in bytes, and for how long.
const MAX_FINISHED_BYTES: usize = 32 << 20;
const KEPT: Duration = Duration::from_secs(300);
/// How long clients are told to wait before they come back.
const RETRY: Duration = Duration::from_secs(1);

/// The streams of all sessions.
#[derive(Default)]
pub struct Streams(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_number: BTreeMap<u64, Arc<EventLog>>,
    last_number: u64,
    /// Those that say no more, oldest first.
    finished: VecDeque<(u64, usize, Instant)>,
    finished_bytes: usize,
}

impl Kept {
    /// Drops what is too old or too much.
    fn make_room(&mut self) {
        while let Some((number, bytes, at)) = self.finished.front().copied() {
            if self.finished_bytes <= MAX_FINISHED_BYTES && at.elapsed() < KEPT {
                return;
            }
            self.finished.pop_front();
            self.finished_bytes -= bytes;
            self.by_number.remove(&number);
        }
    }
}

impl Streams {
    /// A new stream of a session.
    pub fn open(&self, session: &Session) -> Arc<EventLog> {
        let mut kept = self.0.lock();
        kept.make_room();
        kept.last_number += 1;
        let log = Arc::new(EventLog {
            number: kept.last_number,
            session: Arc::clone(&session.id),
            account: session.account.clone(),
            revision: session.revision,
            state: Mutex::new(State::new()),
            changes: watch::channel(0).0,
        });
        kept.by_number.insert(log.number, Arc::clone(&log));
        log
    }

    /// The stream and the number of the event that follows the one named; none if it is not kept, or another session's.
    pub fn find(&self, session: &Session, last_event_id: &str) -> Option<(Arc<EventLog>, u64)> {
        let (number, event) = last_event_id.split_once('-')?;
        let (number, event): (u64, u64) = (number.parse().ok()?, event.parse().ok()?);
        let log = self.0.lock().by_number.get(&number).filter(|log| *log.session == *session.id).cloned()?;
        let next = event.checked_add(1)?;
        let known = {
            let state = log.state.lock();
            next >= state.first && next <= state.next
        };
        known.then_some((log, next))
    }

    /// Says that a stream has ended; what it said is kept for a while.
    fn finish(&self, log: &EventLog) {
        let bytes = {
            let mut state = log.state.lock();
            state.ended = true;
            state.bytes
        };
        log.changed();
        let mut kept = self.0.lock();
        kept.finished.push_back((log.number, bytes, Instant::now()));
        kept.finished_bytes += bytes;
        kept.make_room();
    }

    /// Takes what is said on a stream until its request is answered.
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
        while let Ok(message) = running.messages.try_recv() {
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

/// What was said on one stream.
pub struct EventLog {
    number: u64,
    session: Arc<str>,
    /// Pays for what is kept.
    account: Account,
    revision: Revision,
    state: Mutex<State>,
    /// Counts changes, for those who wait.
    changes: watch::Sender<u64>,
}

struct State {
    /// Each with what is paid for it.
    events: VecDeque<(Arc<str>, Option<Charge>)>,
    /// The number of the first event that is kept, of the next to come, and of the next to be read. Event 0 is the one that
    /// only says that the stream is open.
    first: u64,
    next: u64,
    read: u64,
    bytes: usize,
    ended: bool,
    /// Counts readers; the latest one alone reads.
    reader: u64,
    attached: bool,
    /// Held while somebody reads the answer.
    busy: Option<Busy>,
}

impl State {
    fn new() -> Self {
        let (events, bytes, ended, attached) = (VecDeque::new(), 0, false, false);
        Self { events, first: 1, next: 1, read: 1, bytes, ended, reader: 0, attached, busy: None }
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

    /// Adds what was said meanwhile; what there is no room for is lost, as it is where nobody reads.
    async fn append_message(&self, text: String) {
        if let Ok(charge) = self.account.charge(text.len()) {
            self.append(text, Some(charge)).await;
        }
    }

    /// Adds an event. Waits for a slow reader; without one, the oldest events make room.
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
            // This log holds the other end.
            if changes.changed().await.is_err() {
                return;
            }
        }
        self.changed();
    }

    /// Ends when nobody has read for so long.
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

    /// The body of a response that reads from an event on, in place of any earlier reader. `poll_after`: when the client is to
    /// leave and come back. `hold`: as long as somebody reads.
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
            keep_alive: interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE),
            leave_at: poll_after.filter(|_| !primed).map(|after| Instant::now() + after),
            attached: Attached { log: self, reader, _hold: hold },
            next: from,
            primed,
        };
        Body::from_stream(stream::unfold(reader, |mut reader| async move {
            let bytes = reader.next().await?;
            Some((Ok::<_, Infallible>(bytes), reader))
        }))
    }

    fn event(&self, number: u64, text: &str) -> Bytes {
        // The first revision has no events to come back to.
        if !self.revision.has(Feature::EventIds) {
            return format!("event: message\ndata: {text}\n\n").into();
        }
        format!("id: {}-{number}\nevent: message\ndata: {text}\n\n", self.number).into()
    }

    /// Says that the stream is open, where to take it up, and when.
    fn priming(&self, next: u64) -> Bytes {
        format!("id: {}-{}\nretry: {}\ndata: \n\n", self.number, next.saturating_sub(1), RETRY.as_millis()).into()
    }
}

/// Gives the place of the reader up when it is dropped.
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
    next: u64,
    primed: bool,
}

impl Reader {
    /// What to send next; none when the stream is over, or another reader has taken it up.
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
                    return None;
                }
            }
            let leave_at = self.leave_at;
            let leave = async move {
                match leave_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                () = leave => return None,
                _ = self.keep_alive.tick() => return Some(Bytes::from_static(b": alive\n\n")),
            }
        }
    }
}
