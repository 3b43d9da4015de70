//! The journal, which stores records durably (the audit log). Unlike an observer, a journal can fail. A run whose record could not be
//! stored does not begin, and an answer whose record was not stored is not sent.

use std::{
    future::{Future, Ready, ready},
    path::PathBuf,
    pin::Pin,
    task::{Context, Poll},
};

use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::record::{ApprovalOutcome, CallRecord};

/// The error for a record that the journal cannot store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the audit log cannot be written")]
pub struct Unrecorded;

/// A future that resolves when a record is stored, or when it is known that it cannot be stored.
pub enum Promise<T> {
    /// The result is known already.
    Known(Ready<Result<T, Unrecorded>>),
    Waiting(Pin<Box<dyn Future<Output = Result<T, Unrecorded>> + Send>>),
}

impl<T> Promise<T> {
    pub fn known(result: Result<T, Unrecorded>) -> Self {
        Self::Known(ready(result))
    }
}

impl<T> Future for Promise<T> {
    type Output = Result<T, Unrecorded>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Known(result) => Pin::new(result).poll(cx),
            Self::Waiting(waiting) => waiting.as_mut().poll(cx),
        }
    }
}

/// Room for the record of a run, which is reserved while the plugin runs. `None`: the run continues without room, because the operator has
/// configured `on_failure = "continue"`.
pub type Room = Option<OwnedSemaphorePermit>;

/// A run, with the data that only the journal receives.
pub struct Run<'a> {
    pub record: &'a CallRecord,
    /// The arguments as [`Journal::arguments`] has encoded them.
    pub arguments: &'a str,
    /// The number of the journal entry about the beginning of the run, if there is one.
    pub begun: Option<u64>,
}

/// An event other than a run.
#[derive(Debug)]
pub enum Event {
    /// A config was read, and is in use from now on.
    ConfigRead { file: Option<PathBuf>, digest: Option<[u8; 32]> },
    /// A config is invalid, so the previous one stays in use.
    ConfigRefused { file: Option<PathBuf>, problem: String },
    /// The grants of a plugin have changed.
    Granted { plugin: String, added: Vec<String>, removed: Vec<String> },
    /// A person approved a call of this plugin and all further calls like it, for as long as `remembered` says.
    Approved { plugin: String, name: String, principal: String, remembered: ApprovalOutcome },
    /// A plugin is served. `before`: the digest of the version that it replaces, if any.
    Served { plugin: String, digest: [u8; 32], before: Option<[u8; 32]> },
    /// A plugin is not served any more.
    Removed { plugin: String, digest: [u8; 32] },
    /// A plugin, or a file that should be one, cannot be served.
    Failed { plugin: String, stage: &'static str, problem: String, last_good: bool },
}

/// Stores records durably.
pub trait Journal: Send + Sync {
    /// Encodes the arguments of a call as they are to be stored, in the journal's own format.
    fn arguments(&self, arguments: &Value) -> String;

    /// Reserves room for the record of a run with `bytes` bytes of text from the client. Fails if the run must not begin.
    fn room(&self, bytes: usize) -> Promise<Room>;

    /// Stores an entry about the beginning of a run. Resolves with the number of the entry, or with `None` if the run continues without
    /// one.
    fn begun(&self, run: &Run<'_>) -> Promise<Option<u64>>;

    /// Stores the record of a run that has ended or was refused, even if the promise is dropped. Resolves with the number of the entry, or
    /// with `None` if the answer is sent without one.
    fn ended(&self, run: &Run<'_>, room: Room) -> Promise<Option<u64>>;

    /// Stores an event, if possible.
    fn note(&self, event: &Event);

    /// Whether the journal lets runs begin.
    fn can_record(&self) -> bool;
}
