//! Divides the file descriptors of the process among calls. Each call takes only a part of those that are left, so that even a
//! call that opens as many as it can leaves some for the next one.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use rustix::process::{Resource, getrlimit};

/// Descriptors that wharf itself needs for sockets, pipes, watches and the cache, and for connections of plugins.
const OWN: usize = 320;
/// The most that one call gets, however many are left.
const MOST: usize = 1024;
/// The least that each call may open, even if fewer are left: with less, the runtimes of some languages do not start.
const LEAST: usize = 64;

/// The descriptors that are left to give to calls.
#[derive(Clone)]
pub(crate) struct Handles {
    left: Arc<AtomicUsize>,
}

/// One call's part; given back when dropped.
pub(crate) struct Share {
    left: Arc<AtomicUsize>,
    count: usize,
}

impl Handles {
    pub(crate) fn new() -> Self {
        let limit = getrlimit(Resource::Nofile)
            .current
            .map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        Self { left: Arc::new(AtomicUsize::new(limit.saturating_sub(OWN))) }
    }

    /// A quarter of what is left, within the bounds above.
    pub(crate) fn take(&self) -> Share {
        let mut count = LEAST;
        let take = |left: usize| {
            count = (left / 4).clamp(LEAST, MOST).min(left);
            Some(left - count)
        };
        // The update never fails; if nothing is left, it takes nothing.
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok();
        Share { left: Arc::clone(&self.left), count }
    }
}

impl Share {
    /// Whether this part is enough for an instance that has had room for `limit` handles. An instance that is used again never
    /// gives up room that it once had.
    pub(crate) fn covers(&self, limit: usize) -> bool {
        self.limit() >= limit
    }

    /// How many handles the call may have.
    pub(crate) fn limit(&self) -> usize {
        self.count.max(LEAST)
    }

    /// Gives back all but `to`, while the instance waits for its next call and opens nothing.
    pub(crate) fn shrink(&mut self, to: usize) {
        let excess = self.count.saturating_sub(to);
        self.count -= excess;
        self.left.fetch_add(excess, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.left.fetch_add(self.count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greedy_leave_some() {
        let handles = Handles { left: Arc::new(AtomicUsize::new(768)) };
        let parts: Vec<Share> = (0..8).map(|_| handles.take()).collect();
        let counts: Vec<usize> = parts.iter().map(|part| part.count).collect();
        assert_eq!(counts, [192, 144, 108, 81, 64, 64, 64, 51]);
        assert!(parts.iter().all(|part| part.limit() >= LEAST));
        drop(parts);
        assert_eq!(handles.left.load(Ordering::Relaxed), 768);
        let mut part = handles.take();
        part.shrink(5);
        assert_eq!(handles.left.load(Ordering::Relaxed), 763);
        drop(part);
        assert_eq!(handles.left.load(Ordering::Relaxed), 768);
        assert_eq!(Handles { left: Arc::new(AtomicUsize::new(usize::MAX)) }.take().count, MOST);
    }
}
