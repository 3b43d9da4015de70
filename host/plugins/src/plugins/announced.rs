//! Collects the plugins' announcements of changed lists. Announcements are merged: at most one is pending for each plugin and kind of
//! list, however many the plugin makes.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};
use wharf_sandbox::model::Kind;

/// The minimum time between two list requests to a plugin that announces changes.
const ANNOUNCEMENT_INTERVAL: Duration = Duration::from_millis(250);
/// The exponential backoff before a plugin whose list request failed is asked again: the first interval, which each further failure
/// doubles, and the maximum.
const FIRST_BACKOFF_INTERVAL: Duration = Duration::from_secs(1);
const MAX_BACKOFF_INTERVAL: Duration = Duration::from_secs(300);

/// A set of list kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    pub fn of(kind: Kind) -> Self {
        Self(match kind {
            Kind::Tools => 1,
            Kind::Resources => 2,
            Kind::Prompts => 4,
        })
    }

    pub fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub fn has(self, kind: Kind) -> bool {
        self.0 & Self::of(kind).0 != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The lists that a plugin announced as changed and that were not requested yet, and the time at which they may be requested.
pub struct Announced {
    pub kinds: Kinds,
    pub next: Instant,
    failures: u32,
}

impl Default for Announced {
    fn default() -> Self {
        Self { kinds: Kinds::default(), next: Instant::now(), failures: 0 }
    }
}

impl Announced {
    /// Returns the lists to request now, and none of them again before [`ANNOUNCEMENT_INTERVAL`] is over.
    pub fn take(&mut self) -> Kinds {
        self.next = Instant::now() + ANNOUNCEMENT_INTERVAL;
        std::mem::take(&mut self.kinds)
    }

    /// Notes that the plugin answered a list request.
    pub fn listed(&mut self) {
        self.failures = 0;
    }

    /// Notes that a list request failed, and waits before the next one.
    pub fn failed(&mut self) {
        let wait = FIRST_BACKOFF_INTERVAL.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        self.next = Instant::now() + wait.min(MAX_BACKOFF_INTERVAL);
    }
}

/// The pending announcements. Cheap to clone; all clones share them.
#[derive(Clone, Default)]
pub struct Announcements(Arc<Pending>);

#[derive(Default)]
struct Pending {
    by_plugin: Mutex<BTreeMap<String, Kinds>>,
    news: Notify,
}

impl Announcements {
    pub fn add(&self, plugin: &str, kind: Kind) {
        let mut waiting = self.0.by_plugin.lock();
        match waiting.get_mut(plugin) {
            Some(kinds) => kinds.add(Kinds::of(kind)),
            None => {
                waiting.insert(plugin.to_owned(), Kinds::of(kind));
            }
        }
        drop(waiting);
        self.0.news.notify_one();
    }

    /// Removes and returns all pending announcements.
    pub fn take(&self) -> BTreeMap<String, Kinds> {
        std::mem::take(&mut self.0.by_plugin.lock())
    }

    /// Waits until an announcement is added. Returns at once if one was added since the last call.
    pub async fn notified(&self) {
        self.0.news.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_there_are_few_wait() {
        let announcements = Announcements::default();
        for _ in 0..1000 {
            announcements.add("a", Kind::Tools);
            announcements.clone().add("a", Kind::Prompts);
            announcements.add("b", Kind::Resources);
        }
        let taken = announcements.take();
        assert_eq!(taken.len(), 2);
        let a = taken.get("a").copied().unwrap();
        assert!(a.has(Kind::Tools) && a.has(Kind::Prompts) && !a.has(Kind::Resources));
        assert!(announcements.take().is_empty());
    }
}
