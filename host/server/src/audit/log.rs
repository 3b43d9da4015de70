//! The audit log as the rest of wharf sees it: the journal that records go to.
//!
//! A line reaches the file, which means the system's memory, before the answer of its call leaves; it reaches the disk within a
//! second. A crash of wharf loses no line of an answer that was given, and a crash of the machine those of its last second.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{sync::oneshot, time::timeout};

use super::{
    arguments::Writing,
    chain::Head,
    entry, event,
    files::{LogFile, Opened},
    key,
    writer::{Added, Desk, State},
};
use crate::{
    config::{
        Audit,
        audit::{OnFailure, key_file},
    },
    observe::journal::{Event, Journal, Promise, Room, Run, Unrecorded},
};

/// How many KiB of lines may wait to be written.
const ROOM_KIB: usize = 32 << 10;
/// How many KiB a line takes without what its client wrote.
const LINE_KIB: usize = 4;
/// How long a call waits for room, and then an answer for its line.
const ROOM_WITHIN: Duration = Duration::from_secs(1);
const WRITTEN_WITHIN: Duration = Duration::from_secs(5);
/// How long the end of wharf waits for the last lines.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

pub struct Log {
    desk: Arc<Desk>,
    writing: Writing,
    on_failure: OnFailure,
    /// Resolves when the thread has ended.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Log {
    /// Opens the log, or begins it, and starts the thread that looks after it.
    pub fn open(config: &Audit) -> Result<Arc<Self>> {
        let Opened { file, head, torn } = LogFile::open(config)?;
        let key_path = key_file(&config.file);
        let key = if head == Head::NONE { key::read_or_make(&key_path)? } else { key::read(&key_path, &config.file)? };
        if head == Head::NONE {
            // The key says nothing of it: it may have been made for the log of another config.
            tracing::info!("the audit log {} begins; there was none, or it was empty", config.file.display());
        }
        let writing = Writing::new(&key, config.arguments)?;
        let desk = Arc::new(Desk::new(ROOM_KIB, file, head, config.rotate_bytes));
        let (end, ended) = oneshot::channel();
        let run = {
            let desk = Arc::clone(&desk);
            move || {
                desk.run();
                // This fails if nobody waits for the end.
                end.send(()).ok();
            }
        };
        std::thread::Builder::new().name("wharf-audit".into()).spawn(run).context("no thread for the audit log")?;
        let log = Self { desk, writing, on_failure: config.on_failure, ended: Mutex::new(Some(ended)) };
        log.add(event::started());
        if let Some((aside, bytes)) = torn {
            tracing::warn!("the audit log ended with an unfinished line, which is now in {}", aside.display());
            log.add(event::torn(&aside, bytes));
        }
        Ok(Arc::new(log))
    }

    /// How many lines were lost since the start.
    pub fn lost(&self) -> u64 {
        self.state().lost_before.load(Ordering::Relaxed) + self.state().lost.load(Ordering::Relaxed)
    }

    /// Whether it cannot be written at the moment.
    pub fn is_failing(&self) -> bool {
        self.state().failing.load(Ordering::Acquire)
    }

    /// Writes the last line, and waits a while for all to be written.
    pub async fn close(&self) {
        self.say_stop();
        let ended = self.ended.lock().take();
        if let Some(ended) = ended
            && timeout(CLOSED_WITHIN, ended).await.is_err()
        {
            tracing::error!("the audit log takes too long to be written to its end");
        }
    }

    fn say_stop(&self) {
        self.desk.close(|| event::stopped(self.state().open.load(Ordering::Relaxed)));
    }

    fn state(&self) -> &Arc<State> {
        &self.desk.state
    }

    /// Adds a line that nobody waits for, if there is room.
    fn add(&self, members: Vec<u8>) {
        match self.room_now(members.len()) {
            Some(room) => drop(self.desk.add(members, Some(room))),
            None => {
                self.state().lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn room_now(&self, bytes: usize) -> Room {
        Arc::clone(&self.state().room).try_acquire_many_owned(kib(bytes)).ok()
    }

    /// Adds a line. The promise resolves when it is written or cannot be.
    fn promise(&self, members: Vec<u8>, room: Room) -> Promise<Option<u64>> {
        let mut told = match self.desk.add(members, room) {
            // In most cases it is written by now.
            Added::Written(seq) => return Promise::known(Ok(Some(seq))),
            Added::Waits(told) => told,
        };
        let continues = self.on_failure == OnFailure::Continue;
        match told.try_recv() {
            Ok(Ok(seq)) => return Promise::known(Ok(Some(seq))),
            _ if continues && self.state().failing.load(Ordering::Acquire) => return Promise::known(Ok(None)),
            Ok(Err(unrecorded)) if !continues => return Promise::known(Err(unrecorded)),
            Ok(Err(_)) => return Promise::known(Ok(None)),
            Err(_) => {}
        }
        let desk = Arc::clone(&self.desk);
        Promise::Waiting(Box::pin(async move {
            let told = timeout(WRITTEN_WITHIN, told).await;
            if told.is_err() {
                desk.state.refusals.say("answers, because writing the audit log takes too long");
                // The thread takes this back as soon as it gets on.
                desk.state.failing.store(true, Ordering::Relaxed);
                desk.wake();
            }
            match told {
                Ok(Ok(Ok(seq))) => Ok(Some(seq)),
                _ if continues => Ok(None),
                _ => Err(Unrecorded),
            }
        }))
    }

    fn refuse<T: Send + 'static>(&self) -> Promise<T> {
        self.state().refused.fetch_add(1, Ordering::Relaxed);
        Promise::known(Err(Unrecorded))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.say_stop();
    }
}

/// How many KiB a line with so many bytes of a client takes.
fn kib(bytes: usize) -> u32 {
    u32::try_from((LINE_KIB + bytes / 1024).min(ROOM_KIB)).unwrap_or(u32::MAX)
}

impl Journal for Log {
    fn arguments(&self, arguments: &Value) -> String {
        self.writing.members(arguments)
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
            match timeout(ROOM_WITHIN, room).await {
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
        self.promise(entry::begun(run), None)
    }

    fn ended(&self, run: &Run<'_>, room: Room) -> Promise<Option<u64>> {
        let members = entry::ended(run);
        match room {
            Some(room) => {
                self.state().open.fetch_sub(1, Ordering::Relaxed);
                self.promise(members, Some(room))
            }
            None => match self.room_now(members.len()) {
                Some(room) => self.promise(members, Some(room)),
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
    use crate::config::audit::Arguments;

    #[test]
    fn lines_without_room_are_counted_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let config = Audit {
            file: folder.path().join("audit.jsonl"),
            arguments: Arguments::Digest,
            on_failure: OnFailure::Continue,
            rotate_bytes: 1 << 20,
            keep: 1,
        };
        let Opened { file, head, .. } = LogFile::open(&config).unwrap();
        let desk = Arc::new(Desk::new(LINE_KIB, file, head, config.rotate_bytes));
        let writing = Writing::new(&[0; 32], config.arguments).unwrap();
        let log = Log { desk, writing, on_failure: config.on_failure, ended: Mutex::default() };
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
