//! The wasmtime engines: one with a pool of prepared slots, which makes a fresh sandbox per call cheap, and one that allocates on demand,
//! for components that exceed a slot. An artifact compiled for one runs on the other.

use std::time::Duration;

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, RegallocAlgorithm,
    component::Linker,
};

use crate::{
    bounds::runtime::Ticks,
    compile::effort::Effort,
    wasi::{linker::link, store::State},
};

/// The interval of epoch interruption: how often running guests yield to others. It is also the longest time for which a guest occupies an
/// I/O thread.
pub(crate) const TICK_INTERVAL: Duration = Duration::from_millis(5);

// The limits of an instance in a slot of the pool. Rust guests need 3 core instances and 2 tables, JavaScript guests 4 and 2 (7,722
// elements), Python guests 14 and 2. QuickJS has a second memory, which is empty and left over from its build. An instance that needs more
// is allocated on demand, which takes 2.6 times as long.
const CORE_INSTANCES_PER_SLOT: u32 = 32;
pub(crate) const MEMORIES_PER_SLOT: u32 = 2;
const TABLES_PER_SLOT: u32 = 4;
const TABLE_ELEMENTS: usize = 20_000;
const SLOT_MEMORY_BYTES: usize = 1 << 32;
const TABLE_KEEP_RESIDENT_BYTES: usize = 64 << 10;

/// An engine, and the linker with all host functions for it.
pub(crate) struct Linkable {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
}

impl Linkable {
    pub(crate) fn new(engine: Engine) -> wasmtime::Result<Self> {
        let mut linker = Linker::new(&engine);
        link(&mut linker)?;
        Ok(Self { engine, linker })
    }
}

/// How many ticks go on after the last guest has run, so that calls in quick succession do not wake the thread that counts.
const TICKS_WITHOUT_GUEST: u32 = 200;
/// How often that thread looks whether the engines are gone while no guest runs.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Advances the epoch of the engines at every tick until all of them are gone, without keeping them alive. Runs on a dedicated thread,
/// because a timer of the async runtime would depend on the very workers that guests occupy.
#[expect(clippy::disallowed_methods, reason = "its whole work is to wait for time to pass")]
pub(crate) fn tick(engines: &[wasmtime::EngineWeak], ticks: &Ticks) {
    let mut idle = 0;
    loop {
        if idle > TICKS_WITHOUT_GUEST && ticks.wait(LOOK_INTERVAL) {
            idle = 0;
        }
        // Also after a wait: a guest that has just begun has not computed through a tick.
        std::thread::sleep(TICK_INTERVAL);
        idle = if ticks.advance() { 0 } else { idle + 1 };
        let count = |engine: wasmtime::Engine| engine.increment_epoch();
        if engines.iter().filter_map(wasmtime::EngineWeak::upgrade).map(count).count() == 0 {
            return;
        }
    }
}

/// The stack of a call in code without optimizations.
const QUICK_STACK_BYTES: usize = 2 << 20;

/// Creates the engine of a process that only compiles.
pub(crate) fn compiler(images: bool, effort: Effort) -> wasmtime::Result<Engine> {
    let mut config = base_config(images, effort);
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    Engine::new(&config)
}

/// Returns the settings that both engines share, so that an artifact runs on either.
pub(crate) fn base_config(images: bool, effort: Effort) -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true).memory_reservation(SLOT_MEMORY_BYTES as u64);
    config.memory_init_cow(images);
    if effort == Effort::Quick {
        config.cranelift_opt_level(OptLevel::None).cranelift_regalloc_algorithm(RegallocAlgorithm::SinglePass);
        // Such code needs several times the stack: an interpreter would find it exhausted while it reads its program.
        config.max_wasm_stack(QUICK_STACK_BYTES).async_stack_size(2 * QUICK_STACK_BYTES);
    }
    config
}

/// Configures a pool of `slots` slots, each of which keeps `keep` bytes of each of its memories resident between calls.
pub(crate) fn pool(slots: usize, keep: usize) -> PoolingAllocationConfig {
    let slots = u32::try_from(slots).unwrap_or(u32::MAX / CORE_INSTANCES_PER_SLOT);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_memories(slots.saturating_mul(MEMORIES_PER_SLOT))
        .total_stacks(slots)
        .total_tables(slots.saturating_mul(TABLES_PER_SLOT))
        .total_core_instances(slots.saturating_mul(CORE_INSTANCES_PER_SLOT))
        .max_memories_per_component(MEMORIES_PER_SLOT)
        .max_tables_per_component(TABLES_PER_SLOT)
        .max_core_instances_per_component(CORE_INSTANCES_PER_SLOT)
        .max_tables_per_module(TABLES_PER_SLOT)
        .table_elements(TABLE_ELEMENTS)
        .max_memory_size(SLOT_MEMORY_BYTES)
        .max_unused_warm_slots(slots)
        .linear_memory_keep_resident(keep)
        .table_keep_resident(TABLE_KEEP_RESIDENT_BYTES)
        .pagemap_scan(Enabled::Auto);
    pool
}

#[cfg(test)]
mod tests {
    use wasmtime::component::Component;

    use super::*;

    #[test]
    fn a_component_with_two_memories_fits_into_a_slot() {
        let mut config = base_config(true, Effort::Full);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(1, 1 << 20)));
        let engine = Engine::new(&config).unwrap();
        let made = |instances: usize| {
            let text = format!(
                "(component (core module $m (memory 0)) {})",
                "(core instance (instantiate $m))".repeat(instances)
            );
            Component::new(&engine, wat::parse_str(text).unwrap())
        };
        assert!(made(2).is_ok(), "QuickJS has two, and would be made on demand for every call");
        assert!(made(3).is_err(), "the pool has no more for each slot");
    }
}
