//! Writes the audit log. Whoever adds a line writes it: that is a write into the system's memory, which takes a microsecond, and to
//! wake a thread for it takes ten. If somebody else is writing at that moment, the line is queued, and whoever writes then writes
//! all that wait. A thread does all that may take longer: it syncs, rotates, tries again after a failure, and writes everything
//! while a write was slow, so that a disk that hangs holds up no more than the one write that found it so.
//!
//! While the file cannot be written, lines wait in their order and each attempt begins with the first of them, so the chain has no
//! gap when it goes on.

use std::{
    collections::VecDeque,
    fs::File,
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use super::{
    chain::Head,
    event,
    files::{LogFile, Place},
};
use crate::{
    base::{refusals::Refusals, text::hex},
    observe::journal::{Room, Unrecorded},
};

/// About how many bytes are written at once.
const BATCH_BYTES: usize = 1 << 20;
/// How much memory is kept to put a line together.
const KEPT_BYTES: usize = 64 << 10;
/// A write that takes longer than this leaves the following ones to the thread.
const SLOW: Duration = Duration::from_millis(5);
/// For how long the thread then writes all of them.
const SLOW_FOR: Duration = Duration::from_secs(1);
/// For how long a line may be in the system's memory only.
const SYNC_AFTER: Duration = Duration::from_secs(1);
/// How often the operator's log is told the head, if it has changed.
const HEAD_AFTER: Duration = Duration::from_secs(60);
/// After how long writing is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// The least time between two messages to the operator that writing fails.
const TOLD_AFTER: Duration = Duration::from_secs(10);

/// What the thread and everybody else know of each other.
pub struct Desk {
    /// Lines that nobody has taken yet.
    queue: Mutex<VecDeque<Line>>,
    /// Held by whoever writes.
    writer: Mutex<Writer>,
    /// Whether lines are written by those who add them.
    direct: AtomicBool,
    /// Whether the last line has been added.
    closed: AtomicBool,
    /// The thread, to wake it.
    thread: OnceLock<Thread>,
    pub state: Arc<State>,
}

pub struct State {
    /// Whether the log cannot be written.
    pub failing: AtomicBool,
    /// The room for lines that wait, in KiB.
    pub room: Arc<Semaphore>,
    /// Calls that were refused since the log could be written last.
    pub refused: AtomicU64,
    /// Lines for which there was no room since then.
    pub lost: AtomicU64,
    /// And before that.
    pub lost_before: AtomicU64,
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

/// A line that waits.
struct Line {
    members: Vec<u8>,
    /// Given back when the line is written.
    _room: Room,
    /// Is told the number of the line.
    written: Option<oneshot::Sender<Result<u64, Unrecorded>>>,
}

/// What became of a line that was added.
pub enum Added {
    /// It is written, and this is its number.
    Written(u64),
    /// It waits, and its number comes when it is written. Nobody sends one if there are no more lines.
    Waits(oneshot::Receiver<Result<u64, Unrecorded>>),
}

impl Line {
    /// A line that nobody waits for.
    fn own(members: Vec<u8>) -> Self {
        Self { members, _room: None, written: None }
    }

    fn told(&mut self, result: Result<u64, Unrecorded>) {
        if let Some(written) = self.written.take() {
            // This fails if nobody waits any more.
            written.send(result).ok();
        }
    }
}

impl Desk {
    pub fn new(room_kib: usize, file: LogFile, head: Head, rotate_bytes: usize) -> Self {
        let state = Arc::new(State {
            failing: AtomicBool::new(false),
            room: Arc::new(Semaphore::new(room_kib)),
            refused: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            lost_before: AtomicU64::new(0),
            open: AtomicU64::new(0),
            refusals: Refusals::default(),
        });
        Self {
            queue: Mutex::default(),
            writer: Mutex::new(Writer::new(Arc::clone(&state), file, head, rotate_bytes)),
            direct: AtomicBool::new(true),
            closed: AtomicBool::new(false),
            thread: OnceLock::new(),
            state,
        }
    }

    /// Adds a line, and writes it unless somebody else does. `room` is given back when that is done.
    pub fn add(&self, members: Vec<u8>, room: Room) -> Added {
        if let Some(seq) = self.write_at_once(&members) {
            return Added::Written(seq);
        }
        let (written, told) = oneshot::channel();
        let mut queue = self.queue.lock();
        if !self.closed.load(Ordering::Acquire) {
            queue.push_back(Line { members, _room: room, written: Some(written) });
            drop(queue);
            if self.direct.load(Ordering::Acquire) { self.write_directly() } else { self.wake() }
        }
        Added::Waits(told)
    }

    /// Writes this line, if that is possible right now and no other line waits. Returns its number.
    fn write_at_once(&self, members: &[u8]) -> Option<u64> {
        let mut writer = self.direct.load(Ordering::Acquire).then(|| self.writer.try_lock())??;
        // Whoever adds a line from now on cannot write it before this one.
        let is_next = {
            let queue = self.queue.lock();
            queue.is_empty() && !self.closed.load(Ordering::Acquire)
        };
        if !is_next || !writer.waiting.is_empty() || writer.failure.is_some() {
            return None;
        }
        let was_synced = writer.sync_at.is_none();
        let began = Instant::now();
        let written = writer.write_one(members, began);
        let slow = writer.is_slow_since(began);
        drop(writer);
        let Ok(Some(seq)) = written else {
            self.direct.store(false, Ordering::Release);
            return None;
        };
        if slow {
            self.direct.store(false, Ordering::Release);
            self.wake();
        } else {
            if was_synced {
                self.wake();
            }
            if !self.queue.lock().is_empty() {
                self.write_directly();
            }
        }
        Some(seq)
    }

    /// Adds the last line of all.
    pub fn close(&self, members: impl FnOnce() -> Vec<u8>) {
        let mut queue = self.queue.lock();
        if !self.closed.swap(true, Ordering::AcqRel) {
            queue.push_back(Line::own(members()));
        }
        drop(queue);
        self.wake();
    }

    pub fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Writes until nothing is left to write, or somebody else is writing. Whoever has written looks again afterwards, so no line
    /// is left behind.
    fn write_directly(&self) {
        while let Some(mut writer) = self.writer.try_lock() {
            let (began, was_synced) = (Instant::now(), writer.sync_at.is_none());
            writer.take_all(&self.queue);
            let written = writer.write_all(false);
            let wakes = was_synced && writer.sync_at.is_some();
            let slow = writer.is_slow_since(began);
            drop(writer);
            if slow || !matches!(written, Ok(Written::All)) {
                self.direct.store(false, Ordering::Release);
                return self.wake();
            }
            if wakes {
                self.wake();
            }
            if self.queue.lock().is_empty() {
                return;
            }
        }
    }

    /// What the thread does until the last line is written.
    pub fn run(&self) {
        self.thread.get_or_init(thread::current);
        loop {
            let closed = self.closed.load(Ordering::Acquire);
            let mut writer = self.writer.lock();
            writer.take_all(&self.queue);
            if closed {
                return writer.end();
            }
            let began = Instant::now();
            writer.turn();
            writer.is_slow_since(began);
            let (sync, healthy, until) = (writer.due(), writer.is_quick(), writer.deadline());
            drop(writer);
            if let Some(file) = sync {
                // Others write meanwhile.
                let synced = file.sync_data();
                self.writer.lock().synced(synced);
                continue;
            }
            self.direct.store(healthy, Ordering::Release);
            if !self.queue.lock().is_empty() {
                continue;
            }
            match until {
                None => thread::park(),
                Some(until) => thread::park_timeout(until.saturating_duration_since(Instant::now())),
            }
        }
    }
}

struct Writer {
    state: Arc<State>,
    file: LogFile,
    head: Head,
    rotate_bytes: u64,
    waiting: VecDeque<Line>,
    /// Where a line is put together.
    buffer: Vec<u8>,
    /// When what was written has to reach the disk.
    sync_at: Option<Instant>,
    /// When a write was slow.
    slow_at: Option<Instant>,
    /// The last head that the operator's log was told, and when.
    told: (Head, Instant),
    failure: Option<Failure>,
    last_complaint: Option<Instant>,
}

/// Whether all lines were written.
enum Written {
    All,
    /// The file has to be rotated first.
    NotBeforeRotation,
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
    fn new(state: Arc<State>, file: LogFile, head: Head, rotate_bytes: usize) -> Self {
        Self {
            state,
            file,
            head,
            rotate_bytes: rotate_bytes as u64,
            waiting: VecDeque::new(),
            buffer: Vec::new(),
            sync_at: None,
            slow_at: None,
            told: (head, Instant::now()),
            failure: None,
            last_complaint: None,
        }
    }

    fn take_all(&mut self, queue: &Mutex<VecDeque<Line>>) {
        let mut lines = std::mem::take(&mut *queue.lock());
        if self.failure.is_some() {
            lines.iter_mut().for_each(|line| line.told(Err(Unrecorded)));
        }
        if self.waiting.is_empty() {
            self.waiting = lines;
        } else {
            self.waiting.append(&mut lines);
        }
    }

    /// Whether what began then took too long for those who add lines to wait for it. If so, they do not for a while.
    fn is_slow_since(&mut self, began: Instant) -> bool {
        let now = Instant::now();
        let slow = now.duration_since(began) > SLOW;
        if slow {
            self.slow_at = Some(now);
        }
        slow
    }

    /// Whether those who add lines may write them.
    fn is_quick(&self) -> bool {
        self.failure.is_none() && self.slow_at.is_none_or(|at| at.elapsed() >= SLOW_FOR)
    }

    /// When there is something to do, even if no line comes.
    fn deadline(&self) -> Option<Instant> {
        if let Some(failure) = &self.failure {
            return Some(failure.retry_at);
        }
        let tell_at = (self.told.0 != self.head).then(|| self.told.1 + HEAD_AFTER);
        let quick_at = self.slow_at.map(|at| at + SLOW_FOR).filter(|at| *at > Instant::now());
        self.sync_at.into_iter().chain(tell_at).chain(quick_at).min()
    }

    /// The file, if it is to be synced now.
    fn due(&mut self) -> Option<Arc<File>> {
        let due = self.failure.is_none() && self.sync_at.is_some_and(|at| at <= Instant::now());
        due.then(|| {
            // What is written from now on has to be synced again.
            self.sync_at = None;
            self.file.handle()
        })
    }

    fn synced(&mut self, synced: io::Result<()>) {
        if let Err(error) = synced {
            self.failed(&error);
        }
    }

    /// Does what is due, on the thread.
    fn turn(&mut self) {
        let now = Instant::now();
        if self.failure.as_ref().is_some_and(|failure| now < failure.retry_at) {
            return;
        }
        match self.placed().and_then(|()| self.write_all(true)) {
            Ok(_) => self.recovered(),
            Err(error) => self.failed(&error),
        }
        if self.told.0 != self.head && self.told.1 + HEAD_AFTER <= now {
            self.tell_head();
        }
    }

    /// Writes the rest, whatever happened before, and gives the file up.
    fn end(&mut self) {
        self.failure = None;
        if self.write_all(true).and_then(|_| self.file.handle().sync_data()).is_err() {
            tracing::error!("the audit log could not be written to its end");
        }
        self.tell_head();
        self.file.unlock();
    }

    /// Makes sure that the file is where it should be.
    fn placed(&mut self) -> io::Result<()> {
        if self.file.place()? == Place::Anew {
            tracing::error!("the audit log was moved or removed; its lines go on in a new file");
            self.waiting.push_front(Line::own(event::missing(self.file.path())));
        }
        Ok(())
    }

    /// Writes one line at the end. None: the file has to be rotated first.
    fn write_one(&mut self, members: &[u8], now: Instant) -> io::Result<Option<u64>> {
        self.buffer.clear();
        let head = self.head.append(members, &mut self.buffer);
        if self.is_too_long(0, self.buffer.len()) {
            return Ok(None);
        }
        self.file.write(&self.buffer)?;
        self.head = head;
        self.sync_at.get_or_insert(now + SYNC_AFTER);
        if self.buffer.capacity() > KEPT_BYTES {
            self.buffer = Vec::new();
        }
        Ok(Some(head.seq))
    }

    /// Whether the file would be too long with so many bytes more, of which the last line has those from `before` on.
    fn is_too_long(&self, before: usize, bytes: usize) -> bool {
        self.file.length + bytes as u64 > self.rotate_bytes && self.file.length + before as u64 > 0
    }

    /// Writes all lines that wait. `rotates`: whether that may take as long as a rotation does.
    fn write_all(&mut self, rotates: bool) -> io::Result<Written> {
        let mut buffer = Vec::new();
        while !self.waiting.is_empty() {
            buffer.clear();
            let mut head = self.head;
            let mut lines = 0;
            for line in &self.waiting {
                let before = buffer.len();
                let next = head.append(&line.members, &mut buffer);
                if self.is_too_long(before, buffer.len()) || (lines > 0 && buffer.len() > BATCH_BYTES) {
                    buffer.truncate(before);
                    break;
                }
                (head, lines) = (next, lines + 1);
            }
            if lines == 0 {
                if !rotates {
                    return Ok(Written::NotBeforeRotation);
                }
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
        Ok(Written::All)
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file.handle().sync_data()?;
        self.sync_at = None;
        self.tell_head();
        self.file.rotate()
    }

    /// Tells the operator's log where the chain ends. Only who knows that can tell whether lines were cut off since.
    fn tell_head(&mut self) {
        if self.told.0 != self.head {
            tracing::info!(line = self.head.seq, head = hex(&self.head.hash), "the audit log so far");
        }
        self.told = (self.head, Instant::now());
    }

    fn failed(&mut self, error: &io::Error) {
        let now = Instant::now();
        // It comes first: whoever is told that its answer is withheld may call again at once, and that call must not run.
        self.state.failing.store(true, Ordering::Release);
        for line in &mut self.waiting {
            line.told(Err(Unrecorded));
        }
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
        self.state.lost_before.fetch_add(lost, Ordering::Relaxed);
        let failure = self.failure.take();
        if failure.is_none() && lost == 0 && !self.state.failing.load(Ordering::Relaxed) {
            return;
        }
        self.state.failing.store(false, Ordering::Relaxed);
        let refused = self.state.refused.swap(0, Ordering::Relaxed);
        let (problem, lasted) = failure.as_ref().map_or(("it took too long", Duration::ZERO), |failure| {
            (failure.problem.as_str(), failure.since.elapsed())
        });
        let members = event::interrupted(problem, lasted, refused, lost);
        self.waiting.push_back(Line::own(members));
        if failure.is_some_and(|failure| failure.told) {
            tracing::info!("the audit log can be written again; {refused} calls were refused, {lost} lines are lost");
        }
        if let Err(error) = self.write_all(true) {
            self.failed(&error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        audit::{chain::Verifier, files},
        config::{
            Audit,
            audit::{Arguments, OnFailure},
        },
    };

    /// However many add lines at once, each is written once and told its own number, and the chain goes on over all files.
    #[test]
    fn many_write_one_chain() {
        const WRITERS: usize = 8;
        const LINES: usize = 300;
        let folder = tempfile::tempdir().unwrap();
        let (arguments, on_failure, file) = (Arguments::Digest, OnFailure::Refuse, folder.path().join("audit.jsonl"));
        let config = Audit { file, arguments, on_failure, rotate_bytes: 20_000, keep: 1000 };
        let opened = files::LogFile::open(&config).unwrap();
        let desk = Desk::new(1024, opened.file, opened.head, config.rotate_bytes);
        let told = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| desk.run());
            let all: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (desk, told) = (&desk, &told);
                    scope.spawn(move || {
                        for number in 0..LINES {
                            let members = format!("\"event\":\"{writer}.{number}\"");
                            let seq = match desk.add(members.clone().into(), None) {
                                Added::Written(seq) => seq,
                                Added::Waits(seq) => seq.blocking_recv().unwrap().unwrap(),
                            };
                            told.lock().push((seq, members));
                        }
                    })
                })
                .collect();
            all.into_iter().for_each(|one| one.join().unwrap());
            desk.close(|| "\"event\":\"stop\"".into());
            assert!(matches!(desk.add(b"\"event\":\"late\"".into(), None), Added::Waits(_)));
            thread.join().unwrap();
        });
        let (mut verifier, mut lines) = (Verifier::default(), Vec::new());
        for (_, mut file) in files::open_all(&config.file).unwrap() {
            let mut text = String::new();
            io::Read::read_to_string(&mut file, &mut text).unwrap();
            assert!(text.len() <= 20_000);
            lines.extend(text.lines().map(str::to_owned));
        }
        lines.iter().for_each(|line| verifier.line(line.as_bytes()).unwrap());
        assert_eq!(lines.len(), WRITERS * LINES + 1);
        assert!(lines.last().unwrap().contains("stop"));
        for (seq, members) in told.into_inner() {
            assert!(lines[usize::try_from(seq).unwrap() - 1].contains(&members), "{seq}");
        }
    }
}
