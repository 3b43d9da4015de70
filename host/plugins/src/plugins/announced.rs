//! Collects the plugins' announcements of changed lists. Announcements are merged: at most one is pending for each plugin and kind of
//! list, however many the plugin makes.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::Notify;
use wharf_sandbox::model::Kind;

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
