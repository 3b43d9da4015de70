//! The memory budget of one call, and of all calls together.
//!
//! wasmtime's own limit is per memory; a component may have several, so this one sums. A refusal reaches the guest as a
//! failed growth and then, mostly, as a panic, which looks like any other; `refused` tells them apart.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use wasmtime::ResourceLimiter;

/// What one element of a table is charged as.
const TABLE_ELEMENT_BYTES: usize = 16;

/// The memory all calls may hold together.
#[derive(Clone)]
pub(crate) struct TotalMemory {
    used: Arc<AtomicUsize>,
    limit: usize,
}

impl TotalMemory {
    pub(crate) fn new(limit: usize) -> Self {
        Self { used: Arc::default(), limit }
    }

    /// Whether so much is left, as things stand.
    pub(crate) fn has(&self, bytes: usize) -> bool {
        self.limit.saturating_sub(self.used.load(Ordering::Relaxed)) >= bytes
    }

    fn take(&self, bytes: usize) -> bool {
        let within = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Why memory was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The call's own budget.
    Own,
    /// The budget of all calls.
    Total,
}

pub(crate) struct MemoryBudget {
    limit: usize,
    used: usize,
    last_growth: usize,
    total: TotalMemory,
    refused: Option<Refused>,
}

impl MemoryBudget {
    pub(crate) fn new(limit: usize, total: TotalMemory) -> Self {
        Self { limit, used: 0, last_growth: 0, total, refused: None }
    }

    pub(crate) fn refused(&self) -> Option<Refused> {
        self.refused
    }

    /// What is held.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Whether more than half of what there was beyond `base` is used up, so that a later call may not get along with the
    /// rest.
    pub(crate) fn is_half_spent(&self, base: usize) -> bool {
        self.used.saturating_sub(base) > self.limit.saturating_sub(base) / 2
    }

    /// For the next call: what this one was refused is its own matter.
    pub(crate) fn renew(&mut self) {
        self.refused = None;
    }

    fn grow(&mut self, bytes: usize) -> bool {
        let refused = match self.used.checked_add(bytes) {
            Some(sum) if sum <= self.limit => (!self.total.take(bytes)).then_some(Refused::Total),
            _ => Some(Refused::Own),
        };
        if refused.is_some() {
            self.refused = refused;
            return false;
        }
        self.used += bytes;
        self.last_growth = bytes;
        true
    }

    fn undo(&mut self) {
        self.used -= self.last_growth;
        self.total.give(self.last_growth);
        self.last_growth = 0;
    }
}

impl Drop for MemoryBudget {
    fn drop(&mut self) {
        self.total.give(self.used);
    }
}

impl ResourceLimiter for MemoryBudget {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grow(desired.saturating_sub(current)))
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.undo();
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grow(desired.saturating_sub(current).saturating_mul(TABLE_ELEMENT_BYTES)))
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.undo();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_all_memories_and_gives_back() {
        let total = TotalMemory::new(150);
        let mut one = MemoryBudget::new(100, total.clone());
        assert!(one.memory_growing(0, 60, None).unwrap());
        assert!(!one.memory_growing(0, 60, None).unwrap(), "two memories share one limit");
        assert_eq!(one.refused(), Some(Refused::Own));
        let mut two = MemoryBudget::new(100, total.clone());
        assert!(!two.memory_growing(0, 95, None).unwrap());
        assert_eq!(two.refused(), Some(Refused::Total));
        drop(one);
        assert!(two.memory_growing(0, 95, None).unwrap());
        two.memory_grow_failed(wasmtime::Error::msg("no")).unwrap();
        assert!(two.table_growing(0, 6, None).unwrap());
        assert_eq!((total.has(54), total.has(55)), (true, false));
        drop(two);
        assert_eq!(total.used.load(Ordering::Relaxed), 0);
    }
}
