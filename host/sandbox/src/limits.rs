//! The memory budget of one call, and of all calls together.
//!
//! wasmtime's own limit is per memory; a component may have several, so this one sums. A refusal reaches the guest as a
//! failed growth and then, mostly, as a panic, which looks like any other; `refused` tells them apart.

use wasmtime::ResourceLimiter;

use crate::ledger::{Account, Charge};

/// What a stream can hold of a file: what was read ahead, or what is still to be written.
const STREAM_BYTES: usize = 64 << 10;
/// Streams that every instance may have.
const FREE_STREAMS: usize = 16;

/// What one element of a table is charged as.
const TABLE_ELEMENT_BYTES: usize = 16;

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
    used: Charge,
    /// For what streams may hold, as long as they are there.
    streams: Charge,
    refused: Option<Refused>,
}

impl MemoryBudget {
    pub(crate) fn new(limit: usize, total: &Account) -> Self {
        Self { limit, used: total.open(), streams: total.open(), refused: None }
    }

    pub(crate) fn refused(&self) -> Option<Refused> {
        self.refused
    }

    /// What is held.
    pub(crate) fn used(&self) -> usize {
        self.used.bytes()
    }

    /// Whether more than half of what there was beyond `base` is used up, so that a later call may not get along with the
    /// rest.
    pub(crate) fn is_half_spent(&self, base: usize) -> bool {
        self.used().saturating_sub(base) > self.limit.saturating_sub(base) / 2
    }

    /// Charges for what so many open streams may hold at once; what earlier ones held is given back.
    pub(crate) fn hold_streams(&mut self, count: usize) -> bool {
        let bytes = count.saturating_sub(FREE_STREAMS) * STREAM_BYTES;
        self.streams.shrink(bytes);
        let fits = self.used().saturating_add(bytes) <= self.limit && self.streams.cover(bytes).is_ok();
        if !fits {
            self.refused = Some(Refused::Own);
        }
        fits
    }

    /// For the next call: what this one was refused is its own matter.
    pub(crate) fn renew(&mut self) {
        self.refused = None;
    }

    /// Charges what the guest makes grow: its own memory, or what the host keeps for it.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let refused = match self.used().checked_add(bytes) {
            Some(sum) if sum <= self.limit => self.used.grow(bytes).is_err().then_some(Refused::Total),
            _ => Some(Refused::Own),
        };
        if refused.is_some() {
            self.refused = refused;
            return false;
        }
        true
    }
}

// A growth that the system refuses after it was granted here stays charged until the instance is gone. To take it back,
// one would have to know of which growth wasmtime speaks, and it speaks of some that it never asked for.
impl ResourceLimiter for MemoryBudget {
    fn memory_growing(&mut self, current: usize, desired: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        Ok(most.is_none_or(|most| desired <= most) && self.grow(desired.saturating_sub(current)))
    }

    fn table_growing(&mut self, current: usize, desired: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        let bytes = desired.saturating_sub(current).saturating_mul(TABLE_ELEMENT_BYTES);
        Ok(most.is_none_or(|most| desired <= most) && self.grow(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_all_memories_and_gives_back() {
        let total = Account::new(150);
        let mut one = MemoryBudget::new(100, &total);
        assert!(one.memory_growing(0, 60, None).unwrap());
        assert!(!one.memory_growing(0, 60, None).unwrap(), "two memories share one limit");
        assert_eq!(one.refused(), Some(Refused::Own));
        let mut two = MemoryBudget::new(100, &total);
        assert!(!two.memory_growing(0, 95, None).unwrap());
        assert_eq!(two.refused(), Some(Refused::Total));
        drop(one);
        assert!(two.memory_growing(0, 95, None).unwrap());
        assert!(!two.memory_growing(0, 2, Some(1)).unwrap(), "beyond what the memory itself allows");
        two.memory_grow_failed(wasmtime::Error::msg("no")).unwrap();
        two.table_grow_failed(wasmtime::Error::msg("a table that was never asked about")).unwrap();
        assert_eq!(two.used(), 95, "what failed is not taken for what was granted");
        assert!(!two.table_growing(0, 6, None).unwrap());
        assert_eq!(total.left(), 55);
        drop(two);
        assert_eq!(total.used(), 0);
    }
}
