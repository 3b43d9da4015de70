//! Metrics. `counted` is what is told of runs and counts them in `store`; `gauges` reads what others know of themselves, at the
//! moment when somebody asks, and `process` what the system knows of this process. All of it becomes one list of families
//! (`family`), from which `text` is made.
//!
//! How many series there are is bounded, whatever clients and plugins call themselves: what does not fit is counted under `_OTHER`.

mod counted;
mod family;
mod gauges;
mod process;
mod store;
mod text;

use std::sync::Arc;

pub use self::{
    counted::Counters,
    counted::{PLUGINS, SERIES},
    family::{Family, Kind, Labels, Point, Value},
    gauges::{Lost, Sources},
    store::BOUNDS,
    text::{CONTENT_TYPE, encode},
};

/// All metrics of one wharf.
pub struct Metrics {
    counters: Arc<Counters>,
    sources: Sources,
}

impl Metrics {
    pub fn new(counters: Arc<Counters>, sources: Sources) -> Self {
        Self { counters, sources }
    }

    /// All families as they are now.
    pub fn families(&self) -> Vec<Family> {
        let mut all = self.counters.families();
        all.extend(self.sources.families());
        all.extend(process::families());
        all
    }

    /// The text that Prometheus reads.
    pub fn text(&self) -> String {
        encode(self.families())
    }
}
