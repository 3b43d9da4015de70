//! What the client of a call hears of it while it runs: log records, progress reports and announcements of changes, each within its limits.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    bindings::model::{Kind, Level},
    wasi::{
        masked::Masked,
        reach::{Events, Wait},
        traffic::Traffic,
    },
};

/// The maximum number of log records of a call, and also that of progress reports and of resource updates.
const MAX_EVENTS: u32 = 1000;
/// How long a call waits, in all, for a client that reads events more slowly than the guest sends them (backpressure).
const SLOW_CLIENT_GRACE: Duration = Duration::from_secs(1);
/// The maximum length of a text in one event.
const MAX_EVENT_BYTES: usize = 16 * 1024;
/// The maximum length of the URI of an update.
const MAX_URI_BYTES: usize = 8 * 1024;

/// Passes the events of a call on, as far as its limits allow. In each function, `traffic` is the traffic of the call, whose secrets are
/// masked.
pub(crate) struct Voice {
    events: Arc<dyn Events>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    logs: u32,
    progress: u32,
    updates: u32,
    last_progress: Option<f64>,
    /// How long the call may still wait for its client to read.
    grace: Duration,
}

impl Voice {
    pub(crate) fn new(events: Arc<dyn Events>) -> Self {
        Self { events, counts: Counts { grace: SLOW_CLIENT_GRACE, ..Counts::default() } }
    }

    /// Returns another voice to the same client, with limits of its own.
    pub(crate) fn again(&self) -> Self {
        Self::new(Arc::clone(&self.events))
    }

    /// Returns a future that the call has to wait for before it runs, if any.
    pub(crate) fn wait_to_run(&self) -> Option<Wait<'_>> {
        self.events.wait_to_run()
    }

    /// Passes on a log record.
    pub(crate) async fn log(
        &mut self,
        traffic: Option<&Traffic>,
        level: Level,
        mut message: String,
        data: Option<String>,
    ) {
        self.counts.logs = self.counts.logs.saturating_add(1);
        if self.counts.logs <= MAX_EVENTS {
            shorten(traffic, &mut message);
            let mut data = data.filter(|data| data.len() <= MAX_EVENT_BYTES);
            mask(traffic, &mut data);
            self.make_room().await;
            self.events.log(level, message, data);
        }
    }

    /// Passes on a progress report.
    pub(crate) async fn report(
        &mut self,
        traffic: Option<&Traffic>,
        done: f64,
        total: Option<f64>,
        message: Option<String>,
    ) {
        let grows = done.is_finite() && self.counts.last_progress.is_none_or(|last| done > last);
        if grows && self.counts.progress < MAX_EVENTS {
            self.counts.progress += 1;
            self.counts.last_progress = Some(done);
            let message = message.map(|mut message| {
                shorten(traffic, &mut message);
                message
            });
            self.make_room().await;
            self.events.progress(done, total.filter(|total| total.is_finite()), message);
        }
    }

    /// Announces that a list has changed.
    pub(crate) fn list_changed(&self, which: Kind) {
        self.events.list_changed(which);
    }

    /// Announces that a resource has new contents.
    pub(crate) async fn resource_updated(&mut self, traffic: Option<&Traffic>, mut uri: String) {
        if uri.len() <= MAX_URI_BYTES && self.counts.updates < MAX_EVENTS {
            self.counts.updates += 1;
            mask(traffic, &mut uri);
            self.events.resource_updated(uri);
            // Finding the owner of the resource takes a moment, and a guest may call this function in a loop. Yielding lets other tasks run
            // in between.
            tokio::task::yield_now().await;
        }
    }

    /// Waits for a client that reads events more slowly than the guest sends them, for at most [`SLOW_CLIENT_GRACE`] in all.
    async fn make_room(&mut self) {
        let Some(unread) = self.events.wait_to_speak() else { return };
        let began = Instant::now();
        // If there is still no room then, the event is dropped.
        tokio::time::timeout(self.counts.grace, unread).await.ok();
        self.counts.grace = self.counts.grace.saturating_sub(began.elapsed());
    }
}

/// Masks the network's secrets in a value from the plugin.
fn mask(traffic: Option<&Traffic>, said: &mut impl Masked) {
    if let Some(traffic) = traffic {
        traffic.mask(said);
    }
}

/// Masks a text and cuts it to the length of an event. The text is cut to four times that length before it is searched: that bounds the
/// search, and still finds a secret that lies across the final cut.
fn shorten(traffic: Option<&Traffic>, text: &mut String) {
    text.truncate(text.floor_char_boundary(4 * MAX_EVENT_BYTES));
    mask(traffic, text);
    if text.len() > MAX_EVENT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_EVENT_BYTES));
        text.push('…');
    }
}
