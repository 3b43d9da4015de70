//! Records about a call besides its outcome: what it printed, what it was refused, and which HTTP requests it made.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use parking_lot::Mutex;

use crate::{
    bounds::{limits::Refused, output::Capture},
    wasi::masked::Masked,
};
use wharf_scope::{
    Denial,
    network::{HttpDenial, HttpRefusal, HttpUse, Network},
};

/// The maximum number of distinct denials that are recorded of a call.
const MAX_DENIALS: usize = 16;
/// The maximum number of HTTP requests that are recorded of a call.
const MAX_EXCHANGES: usize = 128;

/// The records of a call. They can be read while it runs, and when it was stopped; its instance may be gone or serve another call by then.
#[derive(Clone, Default)]
pub struct Traces(Arc<Seen>);

#[derive(Default)]
struct Seen {
    began: OnceLock<Instant>,
    /// The output that the instance captures; empty until there is an instance.
    printed: OnceLock<Capture>,
    denials: Mutex<Vec<Denial>>,
    refused: Mutex<Option<Refused>>,
    exchanges: Exchanges,
    /// Knows the secrets that are masked. Empty: the call has no network.
    network: OnceLock<Arc<dyn Network>>,
}

impl Traces {
    /// Returns what the call was refused until now.
    pub fn denials(&self) -> Vec<Denial> {
        self.masked(self.0.denials.lock().clone())
    }

    /// Returns the first 128 HTTP requests that the call has made until now, including refused ones.
    pub fn requests(&self) -> Vec<HttpUse> {
        self.masked(self.0.exchanges.seen())
    }

    fn masked<T: Masked>(&self, mut said: T) -> T {
        if let Some(network) = self.0.network.get() {
            said.mask(&|bytes| network.hide(bytes));
        }
        said
    }

    /// Sets the network of the call.
    pub(crate) fn reach(&self, network: &Arc<dyn Network>) {
        self.0.network.set(Arc::clone(network)).ok();
    }

    /// Notes that the turn of the call has come.
    pub(crate) fn begin(&self) {
        self.0.began.set(Instant::now()).ok();
    }

    /// Returns when the turn of the call came.
    pub(crate) fn began(&self) -> Option<Instant> {
        self.0.began.get().copied()
    }

    /// Sets the output of the instance in which the call runs.
    pub(crate) fn capture(&self, printed: &Capture) {
        self.0.printed.set(printed.clone()).ok();
    }

    /// Records why the call was refused memory, if it was.
    pub(crate) fn settle(&self, refused: Option<Refused>) {
        *self.0.refused.lock() = refused;
    }

    pub(crate) fn refused(&self) -> Option<Refused> {
        *self.0.refused.lock()
    }

    /// Records a denial.
    pub(crate) fn deny(&self, denial: Denial) {
        let mut denials = self.0.denials.lock();
        // A denial that kept a secret from leaking is recorded beyond the usual limit.
        let is_leak = matches!(&denial, Denial::Http(HttpDenial { why: HttpRefusal::Placeholder(_), .. }));
        if (is_leak || denials.len() < MAX_DENIALS) && !denials.contains(&denial) && denials.len() < 4 * MAX_DENIALS {
            denials.push(denial);
        }
    }

    /// Returns the HTTP requests that were made.
    pub(crate) fn exchanges(&self) -> &Exchanges {
        &self.0.exchanges
    }

    pub(crate) fn printed(&self) -> String {
        self.masked(self.0.printed.get().map(Capture::text).unwrap_or_default())
    }
}

/// The record of one HTTP request, updated while it is in flight.
#[derive(Default)]
pub(crate) struct Exchange {
    pub(crate) method: String,
    pub(crate) authority: String,
    pub(crate) url: String,
    pub(crate) status: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) denied: AtomicBool,
}

impl Exchange {
    fn seen(&self) -> HttpUse {
        let status = u16::try_from(self.status.load(Ordering::Relaxed)).ok().filter(|status| *status > 0);
        HttpUse {
            method: self.method.clone(),
            authority: self.authority.clone(),
            status,
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            denied: self.denied.load(Ordering::Relaxed),
        }
    }
}

/// The recorded HTTP requests of a call.
#[derive(Default)]
pub(crate) struct Exchanges(Mutex<Vec<Arc<Exchange>>>);

impl Exchanges {
    pub(crate) fn add(&self, exchange: &Arc<Exchange>) {
        let mut all = self.0.lock();
        if all.len() < MAX_EXCHANGES {
            all.push(Arc::clone(exchange));
        }
    }

    pub(crate) fn seen(&self) -> Vec<HttpUse> {
        self.0.lock().iter().map(|exchange| exchange.seen()).collect()
    }
}
