//! The memory that the slots of the pool keep after a call.
//!
//! wasmtime zeroes what a call has written and leaves those pages in memory, so that the next call in the slot does not wait for the
//! kernel to find new ones. The time for a page that is found again is about ten times the time to zero one. What all idle slots keep
//! together is bounded: it is subtracted from the memory of running calls, and given back to the kernel when it exceeds its bound.

use std::sync::Arc;

use wasmtime::{Engine, PoolingAllocationConfig};

/// What an idle slot may keep on average.
const BYTES_PER_SLOT: usize = 2 << 20;
/// The most that a slot keeps of each of its memories. Calls of Python and JavaScript plugins write several MiB.
const MAX_BYTES_PER_MEMORY: usize = 16 << 20;
/// The same if the kernel cannot tell which pages were written (before Linux 6.7), so that all of this is zeroed after each call.
const MAX_BYTES_WITHOUT_SCAN: usize = 1 << 20;
/// How many slots may keep as much as they can.
const FULL_SLOTS: usize = 8;

/// How much the idle slots of a pool keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keep {
    /// All slots together.
    pub total: usize,
    /// One slot, of each of its memories.
    pub memory: usize,
    /// As much as every slot can keep without exceeding `total`.
    slot: usize,
}

impl Keep {
    /// Returns the bounds for a pool of `slots` slots if all instances together may hold `memory` bytes. Little memory means that less is
    /// kept.
    pub(crate) fn new(slots: usize, memory: usize) -> Self {
        let total = BYTES_PER_SLOT.saturating_mul(slots).min(memory / 4);
        let scans = PoolingAllocationConfig::is_pagemap_scan_available();
        let most = if scans { MAX_BYTES_PER_MEMORY } else { MAX_BYTES_WITHOUT_SCAN };
        Self { total, memory: most.min(total / FULL_SLOTS), slot: total / slots.max(1) }
    }
}

/// Holds the bound on what idle slots keep. Each instance has one, which is dropped after the instance's memory.
pub(crate) struct Returning {
    slots: Arc<IdleSlots>,
    /// Whether the instance may have written more than every slot can keep.
    large: bool,
}

/// The idle slots of a pool.
pub(crate) struct IdleSlots {
    engine: Engine,
    keep: Keep,
}

impl IdleSlots {
    pub(crate) fn new(engine: &Engine, keep: Keep) -> Arc<Self> {
        Arc::new(Self { engine: engine.clone(), keep })
    }

    pub(crate) fn returning(self: &Arc<Self>) -> Returning {
        Returning { slots: Arc::clone(self), large: true }
    }

    /// Returns how many bytes the idle slots keep.
    fn kept(&self) -> usize {
        self.engine.pooling_allocator_metrics().map_or(0, |metrics| metrics.unused_memory_bytes_resident())
    }
}

impl Returning {
    /// Notes how many bytes of memory the instance has.
    pub(crate) fn has(&mut self, bytes: usize) {
        self.large = bytes > self.slots.keep.slot;
    }
}

impl Drop for Returning {
    fn drop(&mut self) {
        if self.large && self.slots.kept() > self.slots.keep.total {
            self.slots.engine.release_idle_pool_memory();
        }
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::{Instance, InstanceAllocationStrategy, Module, Store};

    use super::*;
    use crate::engine::{base_config, pool};

    const MIB: usize = 1 << 20;

    #[test]
    fn what_is_kept_follows_the_memory_that_there_is() {
        let most = if PoolingAllocationConfig::is_pagemap_scan_available() { 16 * MIB } else { MIB };
        for (slots, memory, total, each) in [
            (144, 2048 * MIB, 288 * MIB, most),
            (144, 512 * MIB, 128 * MIB, most),
            (144, 64 * MIB, 16 * MIB, most.min(2 * MIB)),
            (1, 2048 * MIB, 2 * MIB, most.min(MIB / 4)),
        ] {
            let keep = Keep::new(slots, memory);
            assert_eq!((keep.total, keep.memory), (total, each), "{slots} slots, {memory} bytes");
            assert!(keep.slot * slots <= keep.total);
        }
    }

    #[test]
    fn idle_slots_keep_pages_until_they_are_too_many() {
        const SLOTS: usize = 4;
        let keep = Keep { total: 8 * MIB, memory: 4 * MIB, slot: 2 * MIB };
        let mut config = base_config(true);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(SLOTS, keep.memory)));
        let engine = Engine::new(&config).unwrap();
        let slots = IdleSlots::new(&engine, keep);
        // Each instance writes 4 MiB.
        let text = "(module (memory 64) (func (export \"run\") (memory.fill (i32.const 0) (i32.const 1) (i32.const 4194304))))";
        let module = Module::new(&engine, wat::parse_str(text).unwrap()).unwrap();
        let run = || {
            let mut store = Store::new(&engine, ());
            store.set_epoch_deadline(1);
            let instance = Instance::new(&mut store, &module, &[]).unwrap();
            instance.get_typed_func::<(), ()>(&mut store, "run").unwrap().call(&mut store, ()).unwrap();
            (store, slots.returning())
        };
        drop((run(), run()));
        assert_eq!(slots.kept(), 8 * MIB, "as much as is allowed");
        let mut third = (run(), run(), run());
        third.0.1.has(MIB);
        let (first, rest) = (third.0, (third.1, third.2));
        drop(rest);
        assert_eq!(slots.kept(), 8 * MIB);
        drop(first);
        assert_eq!(slots.kept(), 12 * MIB, "an instance that said that it was small is believed");
        drop(run());
        assert_eq!(slots.kept(), 0, "all of it was given back");
    }
}
