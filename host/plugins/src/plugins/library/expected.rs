//! Tells requests early what they have to wait for, and what they need not wait for.

use std::sync::Arc;

use super::{Installed, Library};
use crate::plugins::status::Subject;

impl Library {
    /// Publishes which plugins should be served, and which are still being loaded. Those that tasks have installed count as being loaded
    /// until the catalog has them.
    pub(super) fn publish_expected(&self) {
        let under_way = self.under_way.values().map(|one| (&one.config, one.kinds));
        let arrived = self.arrived.iter().filter(|one| !one.reported);
        let all = under_way.chain(arrived.map(|one| (&one.config, one.kinds)));
        let loading = all.filter(|(_, kinds)| kinds.is_none()).map(|(config, _)| Arc::clone(config)).collect();
        self.publisher.expect(&self.should_serve, loading);
    }

    /// Reports that a plugin failed during the first load, without waiting for the other plugins: clients get the instructions, which say
    /// so, before all are loaded. Later, a failure may come from a file that is still being written, so it is reported with the other
    /// changes. Returns whether it was.
    pub(super) fn report_at_once(&self, id: &str, installed: &Installed) -> bool {
        match installed {
            Installed::Failed { problem, instead: None } if !self.publisher.is_ready() => {
                self.publisher.report(Subject::plugin(id), problem.stage, &problem.text, self.served.contains_key(id));
                true
            }
            _ => false,
        }
    }
}
