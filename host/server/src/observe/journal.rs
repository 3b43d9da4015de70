//! Where records are kept for good. Unlike an observer, a journal can fail: then a run that it could not keep a record of does not
//! begin, and an answer of which there is no record does not leave.

use std::{
    future::{Future, Ready, ready},
    path::PathBuf,
    pin::Pin,
    task::{Context, Poll},
};

use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::record::{Approval, CallRecord};

/// The record of a run cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the audit log cannot be written")]
pub struct Unrecorded;

/// Resolves when something is kept, or when it is known that it cannot be.
pub enum Promise<T> {
    /// That is known already.
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

/// Room for the record of a run, kept free while the plugin runs. None: the run goes on without, since the operator wants that.
pub type Room = Option<OwnedSemaphorePermit>;

/// A run, with what only a journal is told of it.
pub struct Run<'a> {
    pub record: &'a CallRecord,
    /// What [`Journal::arguments`] made of its arguments.
    pub arguments: &'a str,
    /// The number of the entry that says that it began, if there is one.
    pub begun: Option<u64>,
}

/// Something that happened, other than a run.
#[derive(Debug)]
pub enum Event {
    /// A config was read, and is in use from now on.
    ConfigRead { file: Option<PathBuf>, digest: Option<[u8; 32]> },
    /// A config is wrong, so the one before stays in use.
    ConfigRefused { file: Option<PathBuf>, problem: String },
    /// What a plugin is granted has changed.
    Granted { plugin: String, added: Vec<String>, removed: Vec<String> },
    /// A person approved of further calls like one of this plugin, for as long as `remembered` says.
    Approved { plugin: String, name: String, principal: String, remembered: Approval },
    /// A plugin is served, in place of an earlier version of it if there was one.
    Served { plugin: String, digest: [u8; 32], before: Option<[u8; 32]> },
    /// A plugin is no longer served.
    Removed { plugin: String, digest: [u8; 32] },
    /// Something that should be a plugin cannot be served.
    Failed { plugin: String, stage: &'static str, problem: String, last_good: bool },
}

pub trait Journal: Send + Sync {
    /// What is kept of arguments, as text of the journal's own.
    fn arguments(&self, arguments: &Value) -> String;

    /// Finds room for the record of a run, of whose text so many bytes come from its client. Fails if the run must not begin.
    fn room(&self, bytes: usize) -> Promise<Room>;

    /// Notes that a run begins. Resolves with the number of the entry, or with none if the run goes on without one.
    fn begun(&self, run: &Run<'_>) -> Promise<Option<u64>>;

    /// Takes the record of a run that has ended, or that was refused, whether or not the promise is waited for.
    fn ended(&self, run: &Run<'_>, room: Room) -> Promise<Option<u64>>;

    fn note(&self, event: &Event);

    /// Whether runs may begin, as far as the journal is concerned.
    fn can_record(&self) -> bool;
}
