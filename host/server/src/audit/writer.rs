//! The thread that writes the audit log. It takes all lines that wait, writes them at once, and then tells those who wait for them.
//! While the file cannot be written, lines wait in their order and each attempt begins with the first of them, so the chain has no
//! gap when it goes on.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use tokio::sync::{Semaphore, oneshot};

use super::{
    chain::Head,
    entry,
    files::{LogFile, Place},
};
use crate::{
    base::{refusals::Refusals, text::hex},
    observe::journal::{Room, Unrecorded},
};

/// How long a line waits for those of other calls that run, so that many calls at once do not wake the thread one by one.
const GATHER: Duration = Duration::from_micros(200);
/// If no other line came in that time, for how many turns lines are not made to wait.
const ALONE: u32 = 16;
/// About how many bytes are written at once.
const BATCH_BYTES: usize = 1 << 20;
/// For how long a line may be in the system's memory only.
const SYNC_AFTER: Duration = Duration::from_secs(1);
/// How often the operator's log is told the head, if it has changed.
const HEAD_AFTER: Duration = Duration::from_secs(60);
/// After how long writing is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// The least time between two messages to the operator that writing fails.
const TOLD_AFTER: Duration = Duration::from_secs(10);

/// What the thread and everybody else know of each other.
pub struct State {
    /// Whether the log cannot be written.
    pub failing: AtomicBool,
    /// The room for lines that wait, in KiB.
    pub room: Arc<Semaphore>,
    /// Calls that were refused since the log could be written last.
    pub refused: AtomicU64,
    /// Lines for which there was no room since then.
    pub lost: AtomicU64,
    /// How many calls have room and have not ended.
    pub open: AtomicU64,
    pub refusals: Refusals,
}

impl State {
    /// Counts a call that has been given room.
    pub fn count(&self, room: &Room) {
        if room.is_some() {
            self.open.fetch_add(1, Ordering::Relaxed);
        }
    }
}

pub enum Item {
    Line(Line),
    /// No line, but a reason to look whether the log can be written.
    Look,
    /// The last line of all.
    Close(String),
}

pub struct Line {
    pub members: String,
    /// Whether its call waits for it to begin.
    pub begins: bool,
    /// Given back when the line is written.
    pub _room: Room,
    /// Is told the number of the line.
    pub written: Option<oneshot::Sender<Result<u64, Unrecorded>>>,
}

impl Line {
    /// A line that nobody waits for.
    fn own(members: String) -> Self {
        Self { members, begins: false, _room: None, written: None }
    }

    fn told(&mut self, result: Result<u64, Unrecorded>) {
        if let Some(written) = self.written.take() {
            // This fails if nobody waits any more.
            written.send(result).ok();
        }
    }
}

pub struct Writer {
    state: Arc<State>,
    file: LogFile,
    head: Head,
    rotate_bytes: u64,
    waiting: VecDeque<Line>,
    /// For how many turns no line is to wait for others.
    alone: u32,
    /// When what was written has to reach the disk.
    sync_at: Option<Instant>,
    /// The last head that the operator's log was told, and when.
    told: (Head, Instant),
    failure: Option<Failure>,
    last_complaint: Option<Instant>,
}

/// The log cannot be written.
struct Failure {
    since: Instant,
    problem: String,
    retry_at: Instant,
    /// Whether the operator was told.
    told: bool,
}

impl Writer {
    pub fn new(state: Arc<State>, file: LogFile, head: Head, rotate_bytes: usize) -> Self {
        Self {
            state,
            file,
            head,
            rotate_bytes: rotate_bytes as u64,
            waiting: VecDeque::new(),
            alone: 0,
            sync_at: None,
            told: (head, Instant::now()),
            failure: None,
            last_complaint: None,
        }
    }

    /// Writes what comes, until it is told to close or nobody can send any more.
    pub fn run(mut self, items: &Receiver<Item>) {
        let mut open = true;
        while open {
            let next = match self.deadline() {
                None => items.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => items.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            match next {
                Ok(item) => open = self.take(item) && self.take_all(items) && self.gather(items),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => open = false,
            }
            if open {
                self.turn();
            }
        }
        // One last attempt, whatever happened before.
        self.failure = None;
        if self.write_all().and_then(|()| self.sync()).is_err() {
            tracing::error!("the audit log could not be written to its end");
        }
        self.tell_head();
    }

    /// Takes all lines that are there. False: the last line of all is among them.
    fn take_all(&mut self, items: &Receiver<Item>) -> bool {
        let mut open = true;
        while open && let Ok(item) = items.try_recv() {
            open = self.take(item);
        }
        open
    }

    /// Waits a moment if other calls are running, and takes what has come by then. Nobody has to wake this thread meanwhile.
    fn gather(&mut self, items: &Receiver<Item>) -> bool {
        // A call that waits for the line that says that it begins is no other one.
        let begun = self.waiting.iter().filter(|line| line.begins).count() as u64;
        if self.failure.is_some() || self.state.open.load(Ordering::Relaxed) <= begun {
            return true;
        }
        if self.alone > 0 {
            self.alone -= 1;
            return true;
        }
        let before = self.waiting.len();
        std::thread::park_timeout(GATHER);
        let open = self.take_all(items);
        if self.waiting.len() == before {
            self.alone = ALONE;
        }
        open
    }

    fn take(&mut self, item: Item) -> bool {
        let (mut line, last) = match item {
            Item::Line(line) => (line, false),
            Item::Look => return true,
            Item::Close(members) => (Line::own(members), true),
        };
        if self.failure.is_some() {
            line.told(Err(Unrecorded));
        }
        self.waiting.push_back(line);
        !last
    }

    /// When there is something to do, even if no line comes.
    fn deadline(&self) -> Option<Instant> {
        if let Some(failure) = &self.failure {
            return Some(failure.retry_at);
        }
        let tell_at = (self.told.0 != self.head).then(|| self.told.1 + HEAD_AFTER);
        self.sync_at.into_iter().chain(tell_at).min()
    }

    /// Does what is due.
    fn turn(&mut self) {
        let now = Instant::now();
        if self.failure.as_ref().is_some_and(|failure| now < failure.retry_at) {
            return;
        }
        let done = self.write_all().and_then(|()| match self.sync_at {
            Some(at) if at <= now => self.sync(),
            _ => Ok(()),
        });
        match done {
            Ok(()) => self.recovered(),
            Err(error) => self.failed(&error, now),
        }
        if self.told.0 != self.head && self.told.1 + HEAD_AFTER <= now {
            self.tell_head();
        }
    }

    /// Writes all lines that wait.
    fn write_all(&mut self) -> io::Result<()> {
        let mut buffer = Vec::new();
        while !self.waiting.is_empty() {
            if self.file.place()? == Place::Anew {
                tracing::error!("the audit log was moved or removed; its lines go on in a new file");
                let members = entry::missing(self.file.path());
                self.waiting.push_front(Line::own(members));
            }
            buffer.clear();
            let mut head = self.head;
            let mut lines = 0;
            for line in &self.waiting {
                let before = buffer.len();
                let next = head.append(&line.members, &mut buffer);
                let too_long =
                    self.file.length + buffer.len() as u64 > self.rotate_bytes && self.file.length + before as u64 > 0;
                if too_long || (lines > 0 && buffer.len() > BATCH_BYTES) {
                    buffer.truncate(before);
                    break;
                }
                (head, lines) = (next, lines + 1);
            }
            if lines == 0 {
                self.rotate()?;
                continue;
            }
            self.file.write(&buffer)?;
            let first = self.head.next();
            self.head = head;
            self.sync_at.get_or_insert_with(|| Instant::now() + SYNC_AFTER);
            for (seq, mut line) in (first..).zip(self.waiting.drain(..lines)) {
                line.told(Ok(seq));
            }
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.sync()?;
        self.tell_head();
        self.file.rotate()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()?;
        self.sync_at = None;
        Ok(())
    }

    /// Tells the operator's log where the chain ends. Only who knows that can tell whether lines were cut off since.
    fn tell_head(&mut self) {
        if self.told.0 != self.head {
            tracing::info!(line = self.head.seq, head = hex(&self.head.hash), "the audit log so far");
        }
        self.told = (self.head, Instant::now());
    }

    fn failed(&mut self, error: &io::Error, now: Instant) {
        for line in &mut self.waiting {
            line.told(Err(Unrecorded));
        }
        self.state.failing.store(true, Ordering::Relaxed);
        let problem = error.to_string();
        let failure = self.failure.get_or_insert_with(|| Failure {
            since: now,
            problem: problem.clone(),
            retry_at: now,
            told: false,
        });
        failure.retry_at = now + RETRY_AFTER;
        if !failure.told && self.last_complaint.is_none_or(|last| now >= last + TOLD_AFTER) {
            (failure.told, self.last_complaint) = (true, Some(now));
            tracing::error!("the audit log {} cannot be written: {problem}", self.file.path().display());
        }
    }

    fn recovered(&mut self) {
        let lost = self.state.lost.swap(0, Ordering::Relaxed);
        let failure = self.failure.take();
        if failure.is_none() && lost == 0 && !self.state.failing.load(Ordering::Relaxed) {
            return;
        }
        self.state.failing.store(false, Ordering::Relaxed);
        let refused = self.state.refused.swap(0, Ordering::Relaxed);
        let (problem, lasted) = failure.as_ref().map_or(("it took too long", Duration::ZERO), |failure| {
            (failure.problem.as_str(), failure.since.elapsed())
        });
        let members = entry::interrupted(problem, lasted, refused, lost);
        self.waiting.push_back(Line::own(members));
        if failure.is_some_and(|failure| failure.told) {
            tracing::info!("the audit log can be written again; {refused} calls were refused, {lost} lines are lost");
        }
        if let Err(error) = self.write_all() {
            self.failed(&error, Instant::now());
        }
    }
}
