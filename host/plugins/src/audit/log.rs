//! The interface of the audit log to the rest of wharf: an implementation of [`Journal`].
//!
//! A line reaches the file, that is the system's page cache, before the answer to its call is sent; it reaches the disk within a second.
//! So a crash of wharf loses no line about an answer that was sent, and a crash of the machine loses the lines of the last second.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    time::timeout,
};

use super::{
    arguments::ArgumentsEncoder,
    chain::Head,
    entry, event,
    files::{LogFile, Opened},
    key,
    writer::{SharedWriter, WriterState},
};
use crate::observe::journal::{Event, Journal, Promise, Room, Run, Unrecorded};
use wharf_config::config::{
    Audit,
    audit::{OnFailure, key_file},
};

/// The maximum size of the lines that wait to be written, in KiB.
const MAX_QUEUED_KIB: usize = 32 << 10;
/// The size that is reserved for a line, in KiB, in addition to the texts of its client.
const LINE_KIB: usize = 4;
/// How long a call waits for room in the queue, and then how long its answer waits until the line is written.
const ROOM_TIMEOUT: Duration = Duration::from_secs(1);
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the shutdown waits for the last lines.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The audit log.
pub struct Log {
    writer: Arc<SharedWriter>,
    arguments: ArgumentsEncoder,
    on_failure: OnFailure,
    /// Resolves when the thread has ended.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Log {
    /// Opens the log, or creates it, and starts its writer thread.
    pub fn open(config: &Audit) -> Result<Arc<Self>> {
        let Opened { file, head, torn } = LogFile::open(config)?;
        let key_path = key_file(&config.file);
        let key = if head == Head::NONE { key::read_or_make(&key_path)? } else { key::read(&key_path, &config.file)? };
        if head == Head::NONE {
            // An existing key does not mean that there was a log: the key may have been made for the log of another config.
            tracing::info!("starting a new audit log {}, because it did not exist or was empty", config.file.display());
        }
        let arguments = ArgumentsEncoder::new(&key, config.arguments)?;
        let writer = Arc::new(SharedWriter::new(MAX_QUEUED_KIB, file, head, config));
        let (end, ended) = oneshot::channel();
        let run = {
            let writer = Arc::clone(&writer);
            move || {
                writer.run();
                // This fails if the receiver is gone, which is fine.
                end.send(()).ok();
            }
        };
        let thread = std::thread::Builder::new().name("wharf-audit".into()).spawn(run);
        thread.context("the thread of the audit log cannot be started")?;
        let log = Self { writer, arguments, on_failure: config.on_failure, ended: Mutex::new(Some(ended)) };
        log.add(event::started());
        if let Some((aside, bytes)) = torn {
            tracing::warn!("the audit log ended with an unfinished line, which was moved to {}", aside.display());
            log.add(event::torn(&aside, bytes));
        }
        Ok(Arc::new(log))
    }

    /// Returns the number of lines that were lost since the start.
    pub fn lost(&self) -> u64 {
        self.state().lost_before.load(Ordering::Relaxed) + self.state().lost.load(Ordering::Relaxed)
    }

    /// Whether the log cannot be written at the moment.
    pub fn is_failing(&self) -> bool {
        self.state().failing.load(Ordering::Acquire)
    }

    /// Adds the last line, and waits for up to `CLOSE_TIMEOUT` until all lines are written.
    pub async fn close(&self) {
        self.say_stop();
        let ended = self.ended.lock().take();
        if let Some(ended) = ended
            && timeout(CLOSE_TIMEOUT, ended).await.is_err()
        {
            tracing::error!("the last lines of the audit log could not be written in time");
        }
    }

    fn say_stop(&self) {
        self.writer.close(|| event::stopped(self.state().open.load(Ordering::Relaxed)));
    }

    fn state(&self) -> &Arc<WriterState> {
        &self.writer.state
    }

    /// Adds a line without waiting until it is written. The line is lost if there is no room.
    fn add(&self, members: Vec<u8>) {
        match self.room_now(members.len()) {
            // It is written when it is dropped.
            Some(room) => drop(self.line(members, Some(room))),
            None => {
                self.state().lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn room_now(&self, bytes: usize) -> Room {
        Arc::clone(&self.state().room).try_acquire_many_owned(kib(bytes)).ok()
    }

    /// Adds a line and writes it at once. The promise resolves when it is written or cannot be written.
    fn now(&self, members: Vec<u8>, room: Room) -> Promise<Option<u64>> {
        let mut line = self.line(members, room);
        match line.written() {
            Some(written) => Promise::known(written),
            None => Promise::Waiting(Box::pin(line.wait())),
        }
    }

    /// Adds a line that is written after the other tasks that are ready have run, since these may add lines too: one write of several lines
    /// takes little longer than one of one line.
    fn soon(&self, members: Vec<u8>, room: Room) -> Promise<Option<u64>> {
        if !self.writer.is_direct() {
            return self.now(members, room);
        }
        let mut line = self.line(members, room);
        Promise::Waiting(Box::pin(async move {
            tokio::task::yield_now().await;
            match line.written() {
                Some(written) => written,
                None => line.wait().await,
            }
        }))
    }

    fn line(&self, members: Vec<u8>, room: Room) -> AddedLine {
        let told = self.writer.add(members, room);
        AddedLine {
            told,
            writes: true,
            continues: self.on_failure == OnFailure::Continue,
            writer: Arc::clone(&self.writer),
        }
    }

    fn refuse<T: Send + 'static>(&self) -> Promise<T> {
        self.state().refused.fetch_add(1, Ordering::Relaxed);
        Promise::known(Err(Unrecorded))
    }
}

/// A line that was added. It is written even if this is dropped.
struct AddedLine {
    /// Receives the number of the line once it is written.
    told: oneshot::Receiver<Result<u64, Unrecorded>>,
    /// Whether it may still have to be written.
    writes: bool,
    /// Whether answers are sent without a line that cannot be written.
    continues: bool,
    writer: Arc<SharedWriter>,
}

impl AddedLine {
    /// Writes the line, unless another task has, and returns its number. `None`: it is not known yet whether it can be written.
    fn written(&mut self) -> Option<Result<Option<u64>, Unrecorded>> {
        let mut told = self.told.try_recv();
        if told.is_err() {
            self.writer.write();
            told = self.told.try_recv();
        }
        self.writes = false;
        match told {
            Ok(Ok(seq)) => Some(Ok(Some(seq))),
            _ if self.continues && self.writer.state.failing.load(Ordering::Acquire) => Some(Ok(None)),
            Ok(Err(_)) if self.continues => Some(Ok(None)),
            Ok(Err(unrecorded)) => Some(Err(unrecorded)),
            // The log was closed before the line was added.
            Err(TryRecvError::Closed) if self.continues => Some(Ok(None)),
            Err(TryRecvError::Closed) => Some(Err(Unrecorded)),
            Err(TryRecvError::Empty) => None,
        }
    }

    /// Waits for the line for at most `WRITE_TIMEOUT`.
    async fn wait(mut self) -> Result<Option<u64>, Unrecorded> {
        let written = timeout(WRITE_TIMEOUT, &mut self.told).await;
        if written.is_err() {
            self.writer.state.refusals.say("answers, because writing the audit log takes too long");
            // The writer thread clears this as soon as a write succeeds.
            self.writer.state.failing.store(true, Ordering::Relaxed);
            self.writer.wake();
        }
        match written {
            Ok(Ok(Ok(seq))) => Ok(Some(seq)),
            _ if self.continues => Ok(None),
            _ => Err(Unrecorded),
        }
    }
}

impl Drop for AddedLine {
    fn drop(&mut self) {
        if self.writes {
            self.writer.write();
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.say_stop();
    }
}

/// Returns the size in KiB to reserve for a line with `bytes` bytes of text from a client.
fn kib(bytes: usize) -> u32 {
    u32::try_from((LINE_KIB + bytes / 1024).min(MAX_QUEUED_KIB)).unwrap_or(u32::MAX)
}

impl Journal for Log {
    fn arguments(&self, arguments: &Value) -> String {
        self.arguments.members(arguments)
    }

    fn room(&self, bytes: usize) -> Promise<Room> {
        let refuses = self.on_failure == OnFailure::Refuse;
        if refuses && self.state().failing.load(Ordering::Acquire) {
            return self.refuse();
        }
        let room = self.room_now(bytes);
        if room.is_some() || !refuses {
            self.state().count(&room);
            return Promise::known(Ok(room));
        }
        let room = Arc::clone(&self.state().room).acquire_many_owned(kib(bytes));
        let state = Arc::clone(self.state());
        Promise::Waiting(Box::pin(async move {
            match timeout(ROOM_TIMEOUT, room).await {
                Ok(Ok(room)) => {
                    let room = Some(room);
                    state.count(&room);
                    Ok(room)
                }
                _ => {
                    state.refusals.say("calls, because too many lines wait for the audit log to be written");
                    state.refused.fetch_add(1, Ordering::Relaxed);
                    Err(Unrecorded)
                }
            }
        }))
    }

    fn begun(&self, run: &Run<'_>) -> Promise<Option<u64>> {
        self.now(entry::begun(run), None)
    }

    fn ended(&self, run: &Run<'_>, room: Room) -> Promise<Option<u64>> {
        let members = entry::ended(run);
        match room {
            Some(room) => {
                self.state().open.fetch_sub(1, Ordering::Relaxed);
                self.soon(members, Some(room))
            }
            None => match self.room_now(members.len()) {
                Some(room) => self.soon(members, Some(room)),
                None => {
                    self.state().lost.fetch_add(1, Ordering::Relaxed);
                    Promise::known(Ok(None))
                }
            },
        }
    }

    fn note(&self, event: &Event) {
        self.add(event::noted(event));
    }

    fn can_record(&self) -> bool {
        self.on_failure == OnFailure::Continue || !self.state().failing.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_config::config::audit::Arguments;

    fn log(folder: &tempfile::TempDir, on_failure: OnFailure) -> Log {
        let config = Audit {
            file: folder.path().join("audit.jsonl"),
            arguments: Arguments::Digest,
            on_failure,
            rotate_bytes: 1 << 20,
            keep: 1,
            replica: None,
        };
        let Opened { file, head, .. } = LogFile::open(&config).unwrap();
        let writer = Arc::new(SharedWriter::new(LINE_KIB, file, head, &config));
        let arguments = ArgumentsEncoder::new(&[0; 32], config.arguments).unwrap();
        Log { writer, arguments, on_failure, ended: Mutex::default() }
    }

    #[tokio::test]
    async fn lines_of_calls_that_end_together_are_written_by_one_write() {
        let folder = tempfile::tempdir().unwrap();
        let log = log(&folder, OnFailure::Refuse);
        let length = || log.writer.length();
        let line = |text: &str| log.soon(format!("\"event\":\"{text}\"").into(), None);
        let (first, second) = (line("first"), line("second"));
        assert_eq!(length(), 0);
        assert_eq!(first.await, Ok(Some(1)));
        let both = length();
        assert_eq!(second.await, Ok(Some(2)));
        assert_eq!(length(), both);
        drop(line("third"));
        assert!(length() > both, "a line is written even if nobody waits for it");
    }

    #[tokio::test]
    async fn a_line_that_comes_after_the_end_is_not_written() {
        for (on_failure, expected) in [(OnFailure::Refuse, Err(Unrecorded)), (OnFailure::Continue, Ok(None))] {
            let folder = tempfile::tempdir().unwrap();
            let log = log(&folder, on_failure);
            log.say_stop();
            assert_eq!(log.soon(b"\"event\":\"late\"".into(), None).await, expected);
            assert_eq!(log.now(b"\"event\":\"late\"".into(), None).await, expected);
        }
    }

    #[test]
    fn lines_without_room_are_counted_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let log = log(&folder, OnFailure::Continue);
        let event = || Event::Removed { plugin: "p".into(), digest: [0; 32] };
        log.note(&event());
        assert_eq!((log.lost(), log.is_failing()), (0, false));
        let taken = Arc::clone(&log.state().room).try_acquire_many_owned(kib(0)).unwrap();
        log.note(&event());
        log.note(&event());
        assert_eq!(log.lost(), 2);
        drop(taken);
        log.state().failing.store(true, Ordering::Relaxed);
        assert_eq!((log.lost(), log.is_failing()), (2, true));
    }
}
