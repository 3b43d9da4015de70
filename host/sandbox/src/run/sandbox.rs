//! The state that all plugins share: the engines, the cache, the places for running calls, and the memory.

use std::{path::PathBuf, sync::Arc, time::Duration};

use rustix::process::{Resource, getrlimit};
use wasmtime::{Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::{
    bounds::{
        handles::Handles,
        idle::{IDLE, Keep},
        runtime::{GuestRuntime, Ticks},
    },
    compile::{
        cache::Cache,
        child::{CompilerConfig, Compilers},
        engine::{Linkable, MEMORIES_PER_SLOT, base_config, pool, tick},
    },
    contract::told::one_line,
    file::load_error::EngineError,
    run::{
        instance::Instance,
        parts::ClientAccounts,
        warm::{Bounds, Warm},
    },
};
use wharf_base::{
    accounts::Account,
    places::{Places, PoolRule},
};

/// The number of extra slots for plugins that have no call running, used when all other slots are taken.
const FIRST_SLOTS: usize = 16;

/// The rule for running calls of all plugins.
pub static SLOTS: PoolRule = PoolRule {
    of: "running calls of all plugins",
    number: "`total_concurrency` in [limits]",
    taker: "client",
    until: "the call ends; calls beyond it wait, within their time limit",
    asking: "not held",
    gone: "held until the call ends or is stopped",
    gives_way: "none",
    old: Duration::MAX,
};

/// The rule for calls of plugins that had no other call running when the call began.
pub static FIRST: PoolRule = PoolRule {
    of: "first calls of plugins while all other places are taken",
    number: "16, fixed",
    taker: "client",
    until: "the call ends",
    asking: "not held",
    gone: "held until the call ends or is stopped",
    gives_way: "none",
    old: Duration::MAX,
};

/// How long an idle instance is retained. A person may think for minutes between two calls.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// If the limit on the memory of all instances is below this, what idle slots keep is not subtracted from it: running calls may use all of
/// it. This much is enough for a handful of instances.
const LOW_MEMORY_BYTES: usize = 256 << 20;

/// The operator's settings for all plugins together.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// How many calls of all plugins together run at once. At most as many instances are retained between calls. A plugin that has no call
    /// running may get one of 16 places in addition to these.
    pub total_concurrency: usize,
    /// How many bytes of memory all instances may hold together. Instances that are retained between calls may hold a quarter of it.
    pub total_memory_bytes: usize,
    /// The directory in which compiled code is cached. It must be closed to other users, or it is not used. Without one, every start
    /// compiles every plugin.
    pub cache_dir: Option<PathBuf>,
    /// How components are compiled.
    pub compiler: CompilerConfig,
    /// The account to which compiled code is charged.
    pub host_memory: Account,
}

/// Everything that plugins share. A process needs only one.
pub struct Sandbox {
    /// `None` if the address space has no room for a pool.
    pub(crate) pooled: Option<Linkable>,
    pub(crate) on_demand: Linkable,
    pub(crate) cache: Option<Cache>,
    pub(crate) slots: Arc<Places>,
    /// Further slots, for plugins that have no call running, so that they need not wait when other plugins have taken all of
    /// `slots`.
    pub(crate) first_slots: Arc<Places>,
    /// Idle instances that are retained from one call of a client to the next.
    pub(crate) warm: Arc<Warm<Instance>>,
    /// The memory of guests, with an account for each client.
    pub(crate) memory: ClientAccounts,
    /// The account to which compiled code is charged.
    pub(crate) host_memory: Account,
    pub(crate) handles: Handles,
    pub(crate) runtime: GuestRuntime,
    pub(crate) ticks: Arc<Ticks>,
    pub(crate) compilers: Compilers,
}

impl Sandbox {
    /// Starts the engines and the guest threads. If there is no room for a pool, or the cache cannot be trusted, the sandbox works without
    /// it and warns the operator.
    pub fn new(config: SandboxConfig) -> Result<Arc<Self>, EngineError> {
        let failed = |error: wasmtime::Error| EngineError::Engine(one_line(&error));
        let slots = config.total_concurrency.max(1);
        // Copy-on-write images of initial memories are files that exist only in memory, but the system's limit on the size of files applies
        // to them too.
        let images = getrlimit(Resource::Fsize).current.is_none();
        let base = base_config(images, config.compiler.effort);
        let mut pooled = base.clone();
        let all_slots = slots + FIRST_SLOTS + slots;
        // What slots keep between calls is memory in use, so running calls get only the rest. If the limit is low, slots keep less of it.
        let memories = all_slots.saturating_mul(MEMORIES_PER_SLOT as usize);
        let keep = Keep::of(memories, config.total_memory_bytes, page_scans_are_ours());
        let resting = if config.total_memory_bytes < LOW_MEMORY_BYTES { 0 } else { keep.total };
        pooled.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(all_slots, keep.each)));
        let pooled = match Engine::new(&pooled) {
            Ok(engine) => {
                IDLE.allow(keep, memories);
                Some(Linkable::new(engine).map_err(failed)?)
            }
            Err(error) => {
                tracing::warn!(
                    "no room for a pool of {slots} sandboxes, so each is created on demand, which is slower: {}",
                    one_line(&error)
                );
                None
            }
        };
        let mut on_demand = base;
        on_demand.allocation_strategy(InstanceAllocationStrategy::OnDemand);
        let on_demand = Engine::new(&on_demand).and_then(Linkable::new).map_err(failed)?;
        let ticks: Arc<Ticks> = Arc::default();
        let engines: Vec<_> = pooled.iter().chain([&on_demand]).map(|one| one.engine.weak()).collect();
        std::thread::Builder::new()
            .name("wharf-epoch".into())
            .spawn({
                let ticks = Arc::clone(&ticks);
                move || tick(&engines, &ticks)
            })
            .map_err(|error| EngineError::Engine(error.to_string()))?;
        let cache = config.cache_dir.and_then(|directory| match Cache::open(&directory) {
            Ok(cache) => Some(cache),
            Err(error) => {
                tracing::warn!("compiled plugins are not cached, so every start compiles them again: {error}");
                None
            }
        });
        let runtime = GuestRuntime::new().map_err(|error| EngineError::Engine(error.to_string()))?;
        let warm =
            Arc::new(Warm::new(Bounds { count: slots, bytes: config.total_memory_bytes / 4, idle: IDLE_TIMEOUT }));
        runtime.every(IDLE_TIMEOUT / 10, &warm, Warm::retire);
        Ok(Arc::new(Self {
            pooled,
            on_demand,
            cache,
            slots: Places::new(&SLOTS, slots),
            first_slots: Places::new(&FIRST, FIRST_SLOTS),
            warm,
            memory: ClientAccounts::new(Account::new(config.total_memory_bytes - resting)),
            host_memory: config.host_memory,
            handles: Handles::new(),
            runtime,
            ticks,
            compilers: Compilers::new(config.compiler, images)?,
        }))
    }

    /// Returns the account of all guests' memory together.
    pub fn guest_memory(&self) -> &Account {
        self.memory.whole()
    }

    /// Returns the engine for which artifacts are compiled; both engines accept them.
    pub(crate) fn compiler(&self) -> &Engine {
        self.pooled.as_ref().map_or(&self.on_demand.engine, |one| &one.engine)
    }
}

/// Whether resets of memories ask [`IDLE`] what to keep.
fn page_scans_are_ours() -> bool {
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    return crate::bounds::pagemap::is_in_place() && PoolingAllocationConfig::is_pagemap_scan_available();
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    return false;
}
