//! What all plugins share: the engines, the cache, the places to run in, the memory there is.

use std::{path::PathBuf, sync::Arc, time::Duration};

use rustix::process::{Resource, getrlimit};
use tokio::sync::Semaphore;
use wasmtime::{Engine, InstanceAllocationStrategy};

use crate::{
    cache::Cache,
    compile::{CompilerConfig, Compilers},
    engine::{Linkable, base_config, pool, tick},
    handles::Handles,
    instance::Instance,
    ledger::Account,
    load_error::EngineError,
    runtime::GuestRuntime,
    warm::{Bounds, Warm},
};

/// How many plugins get a first call through when all other slots are taken.
const FIRST_SLOTS: usize = 16;

/// How long an instance is kept warm that nobody uses.
const IDLE: Duration = Duration::from_secs(60);

// What a slot keeps between calls instead of returning it to the kernel. Measured: 27 us a call without, 12.7 us with.
const MEMORY_KEEP_RESIDENT: usize = 2 << 20;
/// Less than this is all for what runs: it is a handful of sandboxes.
const LITTLE: usize = 256 << 20;
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// Calls that run at once, over all plugins; as many instances are kept warm at most.
    pub total_concurrency: usize,
    /// Memory all instances may hold together; those that are only kept warm, a quarter of it.
    pub total_memory_bytes: usize,
    /// Where compiled code is kept; none: compile at every start.
    pub cache_dir: Option<PathBuf>,
    pub compiler: CompilerConfig,
    /// Pays for compiled code.
    pub host_memory: Account,
}

/// Everything plugins share.
pub struct Sandbox {
    /// None where the address space has no room for a pool.
    pub(crate) pooled: Option<Linkable>,
    pub(crate) on_demand: Linkable,
    pub(crate) cache: Option<Cache>,
    pub(crate) slots: Arc<Semaphore>,
    /// Slots beside those, for a plugin that has no call running: others that hold all they may do not keep it waiting.
    pub(crate) first_slots: Arc<Semaphore>,
    /// Instances between two calls of a client.
    pub(crate) warm: Arc<Warm<Instance>>,
    pub(crate) total_memory: Account,
    /// Pays for compiled code.
    pub(crate) host_memory: Account,
    pub(crate) handles: Handles,
    pub(crate) runtime: GuestRuntime,
    pub(crate) compilers: Compilers,
}

impl Sandbox {
    pub fn new(config: SandboxConfig) -> Result<Arc<Self>, EngineError> {
        let failed = |error: wasmtime::Error| EngineError::Engine(format!("{error:#}"));
        let slots = config.total_concurrency.max(1);
        // Images of initial memories are files in memory, for which a limit on file sizes counts too.
        let images = getrlimit(Resource::Fsize).current.is_none();
        let base = base_config(images);
        let mut pooled = base.clone();
        let all_slots = slots + FIRST_SLOTS + slots;
        // What slots keep between calls is memory in use, so what runs gets the rest. Where there is little, they keep less.
        let kept = MEMORY_KEEP_RESIDENT.saturating_mul(all_slots).min(config.total_memory_bytes / 4);
        let keep = kept / all_slots;
        let resting = if config.total_memory_bytes < LITTLE { 0 } else { kept };
        pooled.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(all_slots, keep)));
        let pooled = match Engine::new(&pooled) {
            Ok(engine) => Some(Linkable::new(engine).map_err(failed)?),
            Err(error) => {
                tracing::warn!(
                    "no room for a pool of {slots} sandboxes, so each is made on demand, which is slower: {error:#}"
                );
                None
            }
        };
        let mut on_demand = base;
        on_demand.allocation_strategy(InstanceAllocationStrategy::OnDemand);
        let on_demand = Engine::new(&on_demand).and_then(Linkable::new).map_err(failed)?;
        let engines: Vec<_> = pooled.iter().chain([&on_demand]).map(|one| one.engine.weak()).collect();
        std::thread::Builder::new()
            .name("wharf-epoch".into())
            .spawn(move || tick(&engines))
            .map_err(|error| EngineError::Engine(error.to_string()))?;
        let cache = config.cache_dir.and_then(|directory| match Cache::open(&directory) {
            Ok(cache) => Some(cache),
            Err(error) => {
                tracing::warn!("compiled plugins are not cached, every start compiles anew: {error}");
                None
            }
        });
        let runtime = GuestRuntime::new().map_err(|error| EngineError::Engine(error.to_string()))?;
        let warm = Arc::new(Warm::new(Bounds { count: slots, bytes: config.total_memory_bytes / 4, idle: IDLE }));
        runtime.every(IDLE / 10, &warm, Warm::retire);
        Ok(Arc::new(Self {
            pooled,
            on_demand,
            cache,
            slots: Arc::new(Semaphore::new(slots)),
            first_slots: Arc::new(Semaphore::new(FIRST_SLOTS)),
            warm,
            total_memory: Account::new(config.total_memory_bytes - resting),
            host_memory: config.host_memory,
            handles: Handles::new(),
            runtime,
            compilers: Compilers::new(config.compiler, images)?,
        }))
    }

    /// The engine artifacts are compiled with; both engines accept them.
    pub(crate) fn compiler(&self) -> &Engine {
        self.pooled.as_ref().map_or(&self.on_demand.engine, |one| &one.engine)
    }
}
