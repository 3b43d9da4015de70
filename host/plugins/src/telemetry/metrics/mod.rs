//! Metrics. `counted` receives the records of runs and counts them in `store`; `gauges` reads the current state of other modules, and
//! `process` reads what the system reports about this process, both when metrics are requested. The result is a list of families
//! (`family`), which `text` encodes.
//!
//! The number of series is bounded, whatever names clients and plugins choose: further names are counted under `_OTHER`.

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

    /// Returns all families with their current values.
    pub fn families(&self) -> Vec<Family> {
        let mut all = self.counters.families();
        all.extend(self.sources.families());
        all.extend(process::families());
        all
    }

    /// Returns the text that Prometheus scrapes.
    pub fn text(&self) -> String {
        encode(self.families())
    }
}
