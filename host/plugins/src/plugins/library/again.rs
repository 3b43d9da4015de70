//! Requests the lists of plugins again that announce that these have changed.

use std::sync::Arc;

use tokio::time::Instant;

use super::Library;
use crate::plugins::announced::Kinds;

impl Library {
    /// Collects the plugins' announcements of changed lists.
    pub(super) fn take_announcements(&mut self) {
        for (id, kinds) in self.inbox.announcements.take() {
            if self.served.contains_key(&id) {
                self.announced.entry(id).or_default().kinds.add(kinds);
            }
        }
        self.list_again();
    }

    /// Requests the lists of plugins that announced a change, but never those of one plugin twice at the same time.
    pub(super) fn list_again(&mut self) {
        let now = Instant::now();
        let due = self
            .announced
            .iter_mut()
            .filter(|(id, one)| !one.kinds.is_empty() && one.next <= now && !self.under_way.contains_key(*id));
        let due: Vec<(String, Kinds)> = due.map(|(id, one)| (id.clone(), one.take())).collect();
        for (id, kinds) in due {
            if let Some(config) = self.served.get(&id).map(|served| Arc::clone(&served.config)) {
                self.start(config, None, Some(kinds));
            }
        }
    }
}
