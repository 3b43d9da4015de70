//! Divides the file descriptors of the process among calls. Each call gets only a quarter of those that are left, so that even a call that
//! opens as many as it can leaves some for the next one.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use rustix::process::{Resource, getrlimit};

/// The number of descriptors that are reserved for wharf itself (sockets, pipes, file watches, the cache) and for connections of plugins.
const RESERVED_HANDLES: usize = 320;
/// The maximum for one call, however many are left.
const MAX_HANDLES_PER_CALL: usize = 1024;
/// The minimum for each call, even if fewer are left: with less, some language runtimes do not start.
const MIN_HANDLES_PER_CALL: usize = 64;

/// The descriptors that are still available to calls.
#[derive(Clone)]
pub(crate) struct Handles {
    left: Arc<AtomicUsize>,
}

/// The share of one call. This is an RAII guard: dropping it gives the descriptors back.
pub(crate) struct Share {
    left: Arc<AtomicUsize>,
    count: usize,
}

impl Handles {
    pub(crate) fn new() -> Self {
        let limit = getrlimit(Resource::Nofile)
            .current
            .map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        Self { left: Arc::new(AtomicUsize::new(limit.saturating_sub(RESERVED_HANDLES))) }
    }

    /// Takes a quarter of what is left, within the bounds above.
    pub(crate) fn take(&self) -> Share {
        let mut count = MIN_HANDLES_PER_CALL;
        let take = |left: usize| {
            count = (left / 4).clamp(MIN_HANDLES_PER_CALL, MAX_HANDLES_PER_CALL).min(left);
            Some(left - count)
        };
        // The update never fails; if nothing is left, it takes nothing.
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok();
        Share { left: Arc::clone(&self.left), count }
    }
}

impl Share {
    /// Whether this share is enough for an instance whose handle table had room for `limit` handles. The table of an instance that is used
    /// again never shrinks.
    pub(crate) fn covers(&self, limit: usize) -> bool {
        self.limit() >= limit
    }

    /// Returns the number of handles that the call may have.
    pub(crate) fn limit(&self) -> usize {
        self.count.max(MIN_HANDLES_PER_CALL)
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
        assert!(parts.iter().all(|part| part.limit() >= MIN_HANDLES_PER_CALL));
        drop(parts);
        assert_eq!(handles.left.load(Ordering::Relaxed), 768);
        let mut part = handles.take();
        part.shrink(5);
        assert_eq!(handles.left.load(Ordering::Relaxed), 763);
        drop(part);
        assert_eq!(handles.left.load(Ordering::Relaxed), 768);
        assert_eq!(Handles { left: Arc::new(AtomicUsize::new(usize::MAX)) }.take().count, MAX_HANDLES_PER_CALL);
    }
}
