//! The meter, which counts. Like an observer, it receives the records of runs; in addition, it receives answers that needed no plugin,
//! sessions, and events concerning plugins and the config.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use wharf_protocol::{Method, Revision};

use super::{journal::Event, record::CallRecord};

/// An answer to a request that did not run a plugin.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    pub method: Method,
    pub revision: Revision,
    pub took: Duration,
    /// The error code, if the answer is an error.
    pub error: Option<i32>,
}

/// Counts runs, answers, sessions and events. The methods are called in asynchronous tasks, so they must not block.
pub trait Meter: Send + Sync {
    /// Counts a run, or a call that was refused before it ran.
    fn ended(&self, record: &CallRecord);

    /// Counts an answer to a request that did not run a plugin.
    fn answered(&self, answered: &Answered);

    /// Counts an event concerning a plugin or the config.
    fn noted(&self, event: &Event);

    /// Counts a session that begins.
    fn opened(&self, revision: Revision);

    /// Counts the end of a session, which lasted for `lasted`.
    fn closed(&self, revision: Revision, lasted: Duration);
}

/// An RAII guard that counts a session as open until it is dropped.
pub struct CountedSession {
    pub(super) meter: Arc<dyn Meter>,
    pub(super) revision: Revision,
    pub(super) began: Instant,
}

impl Drop for CountedSession {
    fn drop(&mut self) {
        self.meter.closed(self.revision, self.began.elapsed());
    }
}

/// The timing of a request. If it is dropped without [`Timing::end`], because the request got no answer, it counts nothing.
pub struct Timing {
    pub(super) meter: Arc<dyn Meter>,
    pub(super) method: Method,
    pub(super) revision: Revision,
    pub(super) began: Instant,
}

impl Timing {
    /// Counts the answer. `error`: the error code, if the answer is an error.
    pub fn end(self, error: Option<i32>) {
        let Self { meter, method, revision, began } = self;
        meter.answered(&Answered { method, revision, took: began.elapsed(), error });
    }
}
