//! What wakes the library. The library and those that wake it hold clones of one [`Inbox`].

use std::sync::Arc;

use tokio::sync::Notify;

use super::announced::Announcements;

#[derive(Clone, Default)]
pub struct Inbox {
    /// Notify this to make the library look for changed files.
    pub files: Arc<Notify>,
    /// Receives the plugins' announcements of changed lists.
    pub announcements: Announcements,
}
