//! Writes the audit log. A task that adds a line usually writes it, with all other lines that were added by then: a write into the page
//! cache takes a few microseconds, while waking another thread takes ten. If another task is writing at that moment, that task writes all
//! queued lines before it finishes. A writer thread does everything that may take longer: it syncs, rotates, and retries after a failure.
//! While writes are slow, it also writes all lines, so that a hanging disk delays at most the one write that noticed it.
//!
//! While the file cannot be written, lines are queued in order, and each retry begins with the first of them, so the chain has no gap
//! afterwards.

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
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};

use super::{
    chain::Head,
    event,
    files::{LogFile, Presence},
};
use crate::observe::journal::{Room, Unrecorded};
use wharf_base::{refusals::Refusals, text::hex};
use wharf_config::config::audit::Audit;

/// The approximate maximum size of one write.
const MAX_BATCH_BYTES: usize = 1 << 20;
/// The maximum capacity of the line buffer that is retained between writes.
const MAX_RETAINED_BYTES: usize = 64 << 10;
/// How long a write may take before the writer thread takes over: of two in a row, because the system may have run something else during
/// one, and of any.
const SLOW_WRITE_GRACE: Duration = Duration::from_millis(5);
const HANGING_WRITE_GRACE: Duration = Duration::from_millis(100);
/// How long the writer thread writes all lines after a slow write.
const SLOW_MODE_INTERVAL: Duration = Duration::from_secs(1);
/// How long a line may be in the page cache before it is synced to the disk.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// How often the head of the chain is written to the operator's log, if it has changed.
const HEAD_INTERVAL: Duration = Duration::from_secs(60);
/// How long to wait before a failed write is retried.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// The minimum time between two messages to the operator that the log cannot be written.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(10);

/// The writer of the log, shared by the writer thread and all tasks that add lines.
pub struct SharedWriter {
    /// Lines that were added and not yet taken by a writer.
    queue: Mutex<VecDeque<Line>>,
    /// Locked by the thread that writes.
    writer: Mutex<Writer>,
    /// Whether tasks write the lines that they add.
    direct: AtomicBool,
    /// Whether the last line has been added.
    closed: AtomicBool,
    /// The writer thread, so that it can be woken.
    thread: OnceLock<Thread>,
    pub state: Arc<WriterState>,
}

/// The state of the log.
pub struct WriterState {
    /// Whether the log cannot be written.
    pub failing: AtomicBool,
    /// The room for queued lines, in KiB.
    pub room: Arc<Semaphore>,
    /// The number of calls that were refused since the last `interrupted` line.
    pub refused: AtomicU64,
    /// The number of lines that were lost since the last `interrupted` line, because there was no room for them.
    pub lost: AtomicU64,
    /// The number of lines that were lost before that.
    pub lost_before: AtomicU64,
    /// The number of calls that have room and have not ended.
    pub open: AtomicU64,
    pub refusals: Refusals,
}

impl WriterState {
    /// Counts a call as open if it was given room.
    pub fn count(&self, room: &Room) {
        if room.is_some() {
            self.open.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A queued line.
struct Line {
    members: Vec<u8>,
    /// Released when the line is written.
    _room: Room,
    /// Receives the number of the line once it is written, or an error if it cannot be written.
    written: Option<oneshot::Sender<Result<u64, Unrecorded>>>,
}

impl Line {
    /// Creates a line of the writer itself, for which no task waits.
    fn own(members: Vec<u8>) -> Self {
        Self { members, _room: None, written: None }
    }

    fn notify(&mut self, result: Result<u64, Unrecorded>) {
        if let Some(written) = self.written.take() {
            // This fails if the task does not wait any more, which is fine.
            written.send(result).ok();
        }
    }
}

impl SharedWriter {
    pub fn new(room_kib: usize, file: LogFile, head: Head, config: &Audit) -> Self {
        let state = Arc::new(WriterState {
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
            writer: Mutex::new(Writer::new(Arc::clone(&state), file, head, config)),
            direct: AtomicBool::new(true),
            closed: AtomicBool::new(false),
            thread: OnceLock::new(),
            state,
        }
    }

    /// Adds a line, which the next call of [`SharedWriter::write`] writes. `room` is released when the line is written. Returns where its
    /// number is received, or an error if it cannot be written.
    pub fn add(&self, members: Vec<u8>, room: Room) -> oneshot::Receiver<Result<u64, Unrecorded>> {
        let (written, receiver) = oneshot::channel();
        let mut queue = self.queue.lock();
        if !self.closed.load(Ordering::Acquire) {
            queue.push_back(Line { members, _room: room, written: Some(written) });
        }
        receiver
    }

    /// Whether tasks write the lines that they add.
    pub fn is_direct(&self) -> bool {
        self.direct.load(Ordering::Acquire)
    }

    /// Writes the lines that were added, or lets the writer thread do it.
    pub fn write(&self) {
        if self.is_direct() { self.write_directly() } else { self.wake() }
    }

    /// Returns the length of the file.
    #[cfg(test)]
    pub fn length(&self) -> u64 {
        self.writer.lock().file.length()
    }

    /// Adds the last line. Lines that are added later are dropped.
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

    /// Writes queued lines until the queue is empty or another thread is writing. Each thread checks the queue again after it has released
    /// the writer, so no line is left behind.
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

    /// Runs the writer thread until the last line is written.
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
                // Other threads can write during the sync.
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
    state: Arc<WriterState>,
    file: LogFile,
    head: Head,
    rotate_bytes: u64,
    /// The member of each line that names this replica, with a comma; empty if there are no others.
    replica: String,
    waiting: VecDeque<Line>,
    /// The buffer in which lines are built.
    buffer: Vec<u8>,
    /// The deadline for syncing the lines written so far to the disk.
    sync_at: Option<Instant>,
    /// Whether the last write took longer than `SLOW_WRITE_GRACE`.
    last_was_slow: bool,
    /// When writes were last found to be slow.
    slow_at: Option<Instant>,
    /// The last head that was written to the operator's log, and the time of that.
    logged: (Head, Instant),
    failure: Option<Failure>,
    last_complaint: Option<Instant>,
}

/// Whether all lines were written.
enum Written {
    All,
    /// The file must be rotated first.
    NotBeforeRotation,
}

/// A failure to write the log.
struct Failure {
    since: Instant,
    problem: String,
    retry_at: Instant,
    /// Whether the failure was reported to the operator.
    reported: bool,
}

impl Writer {
    fn new(state: Arc<WriterState>, file: LogFile, head: Head, config: &Audit) -> Self {
        Self {
            state,
            file,
            head,
            rotate_bytes: config.rotate_bytes as u64,
            replica: config
                .replica
                .as_ref()
                .map(|name| format!("\"wharf.replica\":{},", Value::from(name.as_str())))
                .unwrap_or_default(),
            waiting: VecDeque::new(),
            buffer: Vec::new(),
            sync_at: None,
            last_was_slow: false,
            slow_at: None,
            logged: (head, Instant::now()),
            failure: None,
            last_complaint: None,
        }
    }

    fn take_all(&mut self, queue: &Mutex<VecDeque<Line>>) {
        let first = self.waiting.len();
        if first == 0 {
            // The queue gets the memory of the lines that were written.
            std::mem::swap(&mut self.waiting, &mut *queue.lock());
        } else {
            self.waiting.append(&mut queue.lock());
        }
        if self.failure.is_some() {
            self.waiting.iter_mut().skip(first).for_each(|line| line.notify(Err(Unrecorded)));
        }
    }

    /// Whether the disk is slow, after a write that began at this time. If so, the writer thread writes all lines for a while.
    fn is_slow_since(&mut self, began: Instant) -> bool {
        let now = Instant::now();
        let took = now.duration_since(began);
        let was_slow = std::mem::replace(&mut self.last_was_slow, took > SLOW_WRITE_GRACE);
        let slow = took > HANGING_WRITE_GRACE || (was_slow && self.last_was_slow);
        if slow {
            self.slow_at = Some(now);
        }
        slow
    }

    /// Whether tasks may write the lines that they add.
    fn is_quick(&self) -> bool {
        self.failure.is_none() && self.slow_at.is_none_or(|at| at.elapsed() >= SLOW_MODE_INTERVAL)
    }

    /// Returns the time at which the writer thread has something to do, even if no line is added.
    fn deadline(&self) -> Option<Instant> {
        if let Some(failure) = &self.failure {
            return Some(failure.retry_at);
        }
        let log_at = (self.logged.0 != self.head).then(|| self.logged.1 + HEAD_INTERVAL);
        let quick_at = self.slow_at.map(|at| at + SLOW_MODE_INTERVAL).filter(|at| *at > Instant::now());
        self.sync_at.into_iter().chain(log_at).chain(quick_at).min()
    }

    /// Returns the file if it must be synced now.
    fn due(&mut self) -> Option<Arc<File>> {
        let due = self.failure.is_none() && self.sync_at.is_some_and(|at| at <= Instant::now());
        due.then(|| {
            // Lines that are written from now on must be synced again.
            self.sync_at = None;
            self.file.handle()
        })
    }

    fn synced(&mut self, synced: io::Result<()>) {
        if let Err(error) = synced {
            self.failed(&error);
        }
    }

    /// Does what is due. To be called on the writer thread.
    fn turn(&mut self) {
        let now = Instant::now();
        if self.failure.as_ref().is_some_and(|failure| now < failure.retry_at) {
            return;
        }
        match self.ensure_present().and_then(|()| self.write_all(true)) {
            Ok(_) => self.recovered(),
            Err(error) => self.failed(&error),
        }
        if self.logged.0 != self.head && self.logged.1 + HEAD_INTERVAL <= now {
            self.log_head();
        }
    }

    /// Writes all remaining lines, even after a failure, and unlocks the file.
    fn end(&mut self) {
        self.failure = None;
        if self.write_all(true).and_then(|_| self.file.handle().sync_data()).is_err() {
            tracing::error!("the last lines of the audit log could not be written");
        }
        self.log_head();
        self.file.unlock();
    }

    /// Checks that the file is still at its path, and continues in a new one if it is missing.
    fn ensure_present(&mut self) -> io::Result<()> {
        if self.file.ensure_present()? == Presence::Recreated {
            tracing::error!("the audit log was moved or removed; it continues in a new file");
            self.waiting.push_front(Line::own(event::missing(self.file.path())));
        }
        Ok(())
    }

    /// Whether the file would be too long after a write of `bytes` bytes, whose last line begins at the offset `before`. A file may consist
    /// of one line of any length.
    fn is_too_long(&self, before: usize, bytes: usize) -> bool {
        self.file.length() + bytes as u64 > self.rotate_bytes && self.file.length() + before as u64 > 0
    }

    /// Writes all waiting lines. `rotates`: whether it may rotate the file, which takes longer.
    fn write_all(&mut self, rotates: bool) -> io::Result<Written> {
        while !self.waiting.is_empty() {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            let mut head = self.head;
            let mut lines = 0;
            for line in &self.waiting {
                let before = buffer.len();
                let next = head.append(self.replica.as_bytes(), &line.members, &mut buffer);
                if self.is_too_long(before, buffer.len()) || (lines > 0 && buffer.len() > MAX_BATCH_BYTES) {
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
            if buffer.capacity() <= MAX_RETAINED_BYTES {
                self.buffer = buffer;
            }
            let first = self.head.next();
            self.head = head;
            self.sync_at.get_or_insert_with(|| Instant::now() + SYNC_INTERVAL);
            for (seq, mut line) in (first..).zip(self.waiting.drain(..lines)) {
                line.notify(Ok(seq));
            }
        }
        Ok(Written::All)
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file.handle().sync_data()?;
        self.sync_at = None;
        self.log_head();
        self.file.rotate()
    }

    /// Writes the head of the chain to the operator's log. Comparing with it later shows whether lines were cut off at the end.
    fn log_head(&mut self) {
        if self.logged.0 != self.head {
            tracing::info!(line = self.head.seq, head = hex(&self.head.hash), "the audit log so far");
        }
        self.logged = (self.head, Instant::now());
    }

    fn failed(&mut self, error: &io::Error) {
        let now = Instant::now();
        // This must come first: a client whose answer is withheld may call again at once, and that call must not run.
        self.state.failing.store(true, Ordering::Release);
        for line in &mut self.waiting {
            line.notify(Err(Unrecorded));
        }
        let problem = error.to_string();
        let failure = self.failure.get_or_insert_with(|| Failure {
            since: now,
            problem: problem.clone(),
            retry_at: now,
            reported: false,
        });
        failure.retry_at = now + RETRY_INTERVAL;
        if !failure.reported && self.last_complaint.is_none_or(|last| now >= last + COMPLAINT_INTERVAL) {
            (failure.reported, self.last_complaint) = (true, Some(now));
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
        if failure.is_some_and(|failure| failure.reported) {
            tracing::info!("the audit log can be written again; {refused} calls were refused, {lost} lines were lost");
        }
        if let Err(error) = self.write_all(true) {
            self.failed(&error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{chain::Verifier, files};
    use wharf_config::config::{
        Audit,
        audit::{Arguments, OnFailure},
    };

    /// When many threads add lines at once, each line is written once, each thread gets the number of its line, and the chain continues
    /// across all files.
    #[test]
    fn many_write_one_chain() {
        const WRITERS: usize = 8;
        const LINES: usize = 300;
        let folder = tempfile::tempdir().unwrap();
        let (arguments, on_failure, file) = (Arguments::Digest, OnFailure::Refuse, folder.path().join("audit.jsonl"));
        let config =
            Audit { file, arguments, on_failure, rotate_bytes: 20_000, keep: 1000, replica: Some("r0".into()) };
        let opened = files::LogFile::open(&config).unwrap();
        let writer = SharedWriter::new(1024, opened.file, opened.head, &config);
        let told = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| writer.run());
            let all: Vec<_> = (0..WRITERS)
                .map(|thread| {
                    let (writer, told) = (&writer, &told);
                    scope.spawn(move || {
                        for number in 0..LINES {
                            let members = format!("\"event\":\"{thread}.{number}\"");
                            let seq = writer.add(members.clone().into(), None);
                            writer.write();
                            let seq = seq.blocking_recv().unwrap().unwrap();
                            told.lock().push((seq, members));
                        }
                    })
                })
                .collect();
            all.into_iter().for_each(|one| one.join().unwrap());
            writer.close(|| "\"event\":\"stop\"".into());
            assert!(writer.add(b"\"event\":\"late\"".into(), None).blocking_recv().is_err());
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
