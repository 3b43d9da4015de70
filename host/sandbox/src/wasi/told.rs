//! What keeps the changes of the call that an instance serves, and the streams that tell it of the first write to a file.

use std::{
    collections::BTreeSet,
    fs::File,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use wasmtime_wasi::{
    async_trait,
    p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult},
};

use crate::{bounds::written::Written, wasi::blocking::blocking};
use wharf_scope::{
    Directory,
    changes::{Change, Changes},
};

/// Returns what keeps the changes of a call, if any of its directories is to be kept.
pub(crate) fn of(directories: &[Directory]) -> Option<Arc<dyn Changes>> {
    directories.iter().find_map(|directory| directory.changes.clone())
}

/// What keeps the changes of the call that an instance serves. Streams to files have it too, and may outlive the call.
#[derive(Default)]
pub(crate) struct Told {
    changes: Mutex<Option<Arc<dyn Changes>>>,
    /// The number of the call.
    call: AtomicU64,
}

impl Told {
    /// Begins a call, or ends one with `None`.
    pub(crate) fn begin(&self, changes: Option<Arc<dyn Changes>>) {
        self.call.fetch_add(1, Ordering::Relaxed);
        // Dropped after the lock is free: the end of a call is written then.
        let before = std::mem::replace(&mut *self.changes.lock(), changes);
        drop(before);
    }

    pub(crate) fn keeper(&self) -> Option<Arc<dyn Changes>> {
        self.changes.lock().clone()
    }

    /// Returns what has to be told of the first write of the call, and the number of the call. `told`: the number of the last call in which
    /// it was told.
    fn first(&self, told: u64) -> Option<(Arc<dyn Changes>, u64)> {
        let call = self.call.load(Ordering::Relaxed);
        if told == call { None } else { Some((self.keeper()?, call)) }
    }
}

/// The files that a call has written to, by the handles of the guest.
#[derive(Default)]
pub(crate) struct Touched(BTreeSet<u32>);

impl Touched {
    pub(crate) fn contains(&self, handle: u32) -> bool {
        self.0.contains(&handle)
    }

    pub(crate) fn insert(&mut self, handle: u32) {
        self.0.insert(handle);
    }

    /// Notes that a handle was given to another file.
    pub(crate) fn forget(&mut self, handle: u32) {
        self.0.remove(&handle);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Blocks this thread. Where the runtime can, it goes on with others meanwhile.
fn in_place<T>(work: impl FnOnce() -> T) -> T {
    let flavor = tokio::runtime::Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match flavor {
        Ok(tokio::runtime::RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// A stream to a file, whose bytes are counted, and which tells of the first write in each call.
pub(crate) struct FileStream {
    stream: DynOutputStream,
    file: Arc<File>,
    written: Arc<Written>,
    /// How many bytes were counted since what is free was last looked at.
    unseen: Option<u64>,
    told: Arc<Told>,
    /// The call in which that was last told.
    call: u64,
}

impl FileStream {
    pub(crate) fn of(
        stream: DynOutputStream,
        file: Arc<File>,
        (written, told): (Arc<Written>, Arc<Told>),
    ) -> DynOutputStream {
        Box::new(Self { stream, file, written, unseen: None, told, call: 0 })
    }

    fn count(&mut self, bytes: usize) -> StreamResult<()> {
        let counted = self.written.count(&self.file, bytes, &mut self.unseen);
        counted.map_err(|error| StreamError::Trap(error.into()))
    }

    /// Tells of the first write, where it may wait.
    async fn tell(&mut self) {
        if let Some((changes, call)) = self.told.first(self.call) {
            let file = Arc::clone(&self.file);
            blocking(move || changes.before(Change::Write(&file))).await;
            // Not before: the guest may stop to wait.
            self.call = call;
        }
    }

    /// Tells of it where it may not. Most guests wait until they may write, and then it was told before.
    fn tell_now(&mut self) {
        if let Some((changes, call)) = self.told.first(self.call) {
            in_place(|| changes.before(Change::Write(&self.file)));
            self.call = call;
        }
    }
}

#[async_trait]
impl Pollable for FileStream {
    async fn ready(&mut self) {
        self.tell().await;
        self.stream.ready().await;
    }
}

#[async_trait]
impl OutputStream for FileStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.tell_now();
        self.count(bytes.len())?;
        self.stream.write(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.tell().await;
        self.count(bytes.len())?;
        self.stream.blocking_write_and_flush(bytes).await
    }

    fn write_zeroes(&mut self, bytes: usize) -> StreamResult<()> {
        self.tell_now();
        self.count(bytes)?;
        self.stream.write_zeroes(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.stream.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.stream.check_write()
    }

    async fn write_ready(&mut self) -> StreamResult<usize> {
        self.tell().await;
        self.stream.write_ready().await
    }

    async fn cancel(&mut self) {
        self.stream.cancel().await;
    }
}
