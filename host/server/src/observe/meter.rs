//! Who counts. A meter hears of runs as every observer does, and also of what is no run: answers that need no plugin, sessions, and
//! what happened to plugins and the config.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use wharf_protocol::{Method, Revision};

use super::{journal::Event, record::CallRecord};

/// An answer to a request that ran no plugin.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    pub method: Method,
    pub revision: Revision,
    pub took: Duration,
    /// The code of the error, if it is one.
    pub error: Option<i32>,
}

/// Called in the asynchronous tasks of requests, so none of this may block.
pub trait Meter: Send + Sync {
    /// Counts a run, or a call that was refused before it ran.
    fn ended(&self, record: &CallRecord);

    /// Counts an answer to a request that ran no plugin.
    fn answered(&self, answered: &Answered);

    /// Counts what happened to a plugin or the config.
    fn noted(&self, event: &Event);

    /// Counts a session that begins.
    fn opened(&self, revision: Revision);

    /// Counts the end of a session that lasted for so long.
    fn closed(&self, revision: Revision, lasted: Duration);
}

/// A session that is counted until this is dropped.
pub struct Counted {
    pub(super) meter: Arc<dyn Meter>,
    pub(super) revision: Revision,
    pub(super) began: Instant,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.meter.closed(self.revision, self.began.elapsed());
    }
}

/// A request whose answer is timed. Nothing is counted if nobody gets an answer.
pub struct Timing {
    pub(super) meter: Arc<dyn Meter>,
    pub(super) method: Method,
    pub(super) revision: Revision,
    pub(super) began: Instant,
}

impl Timing {
    /// Counts the answer. `error`: its code, if it is one.
    pub fn end(self, error: Option<i32>) {
        let Self { meter, method, revision, began } = self;
        meter.answered(&Answered { method, revision, took: began.elapsed(), error });
    }
}
