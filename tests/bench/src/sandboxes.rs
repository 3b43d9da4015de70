//! What a second core adds: fresh sandboxes of wharf, against a bare wasmtime loop with the same settings.

use std::{
    path::Path,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
    component::{Component, Linker, ResourceTable, Val, types::ComponentItem},
};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wharf_sandbox::{Call, Code, Limits, List, NoEvents, Plugin, PluginSpec, Sandbox, Scope, network::HttpLimits};

use crate::{
    Effort,
    report::{Report, Row, Wanted},
    servers::Built,
};

/// Something that is done again and again.
pub type Once = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync>;

/// Runs one thing after another on so many threads, each with a task of its own; gives how often per second.
fn rate(threads: usize, duration: Duration, once: &Once) -> Result<f64> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let count = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for _ in 0..threads {
            let (count, once) = (Arc::clone(&count), Arc::clone(once));
            tasks.push(tokio::spawn(async move {
                while start.elapsed() < duration {
                    once().await?;
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, anyhow::Error>(())
            }));
        }
        for task in tasks {
            task.await??;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(count.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64())
}

struct State {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

fn is_function(item: &ComponentItem) -> bool {
    matches!(item, ComponentItem::ComponentFunc(_))
}

/// wasmtime alone: a pool with the settings that wharf uses, a store, an instance and one call.
fn bare(component: &[u8]) -> wasmtime::Result<Once> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(80)
        .total_core_instances(80 * 32)
        .total_memories(80)
        .total_tables(80 * 4)
        .total_stacks(80)
        .table_elements(20_000)
        .linear_memory_keep_resident(2 << 20)
        .table_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    let mut config = Config::new();
    config.epoch_interruption(true).allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    let engine = Engine::new(&config)?;
    let component = Component::new(&engine, component)?;
    let mut linker: Linker<State> = Linker::new(&engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    // What plugins call of the host is not called here. WASI is real: a trap of its exact version would go before it.
    for (name, import) in component.component_type().imports(&engine).filter(|(name, _)| name.starts_with("wharf:")) {
        let ComponentItem::ComponentInstance(functions) = import.ty else { continue };
        let mut interface = linker.instance(name)?;
        for (function, _) in functions.exports(&engine).filter(|(_, item)| is_function(&item.ty)) {
            interface.func_new(function, |_, _, _, _| Err(wasmtime::Error::msg("the host is not there")))?;
        }
    }
    let pre = linker.instantiate_pre(&component)?;
    let (_, interface) = component
        .component_type()
        .exports(&engine)
        .find_map(|(name, _)| name.contains("/tools@").then(|| component.get_export(None, name)).flatten())
        .ok_or_else(|| wasmtime::Error::msg("the plugin has no tools"))?;
    let list = component.get_export(Some(&interface), "list-tools").map(|(_, list)| list);
    let list = list.ok_or_else(|| wasmtime::Error::msg("the plugin has no list-tools"))?;
    Ok(Arc::new(move || {
        let (engine, pre) = (engine.clone(), pre.clone());
        let once = async move {
            let state = State { wasi: WasiCtx::builder().build(), table: ResourceTable::new() };
            let mut store = Store::new(&engine, state);
            store.set_epoch_deadline(1_000_000);
            let instance = pre.instantiate_async(&mut store).await?;
            let function = instance.get_func(&mut store, list);
            let function = function.ok_or_else(|| wasmtime::Error::msg("list-tools is no function"))?;
            let mut results = [Val::Bool(false)];
            function.call_async(&mut store, &[], &mut results).await
        };
        Box::pin(async move { once.await.map_err(|error| anyhow::anyhow!("{error:?}")) })
    }))
}

/// Compiles a component, on a thread with a runtime for that.
pub fn load(sandbox: &Arc<Sandbox>, component: &Path) -> Result<Code> {
    let file = std::fs::File::open(component)?;
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            Ok(runtime.block_on(sandbox.load(file, || {}))?)
        });
        loading.join().map_err(|_| anyhow::anyhow!("loading panicked"))?
    })
}

/// A plugin with limits that do not matter here.
pub fn plugin(code: Code, concurrency: usize) -> Result<Plugin> {
    let limits = Limits {
        concurrency,
        memory_bytes: 64 << 20,
        timeout: Duration::from_secs(30),
        output_bytes: 4 << 20,
        http: HttpLimits { requests: 100, at_once: 8, in_bytes: 16 << 20, out_bytes: 4 << 20 },
    };
    let spec = PluginSpec { id: "bench".into(), limits, config: "{}".into(), adapter: Arc::default() };
    Ok(Plugin::new(code, spec)?)
}

/// The same by way of wharf's sandbox: with limits, scope, capture and admission.
fn sandboxed(component: &Path) -> Result<Once> {
    let sandbox = Sandbox::new(bench::sandbox_config())?;
    let code = load(&sandbox, component)?;
    let plugin = plugin(code, 16)?;
    Ok(Arc::new(move || {
        let plugin = plugin.clone();
        Box::pin(async move {
            let (operation, scope, events) = (List, Scope::default(), Arc::new(NoEvents));
            plugin.call(Call { operation, scope, events, timeout: None, client: None }).await.result?;
            Ok(())
        })
    }))
}

/// Compares the gains, in rounds that alternate.
pub fn compare(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    let path = built.plugins.join("echo.wasm");
    let component = std::fs::read(&path)?;
    let (ours, theirs) = (sandboxed(&path)?, bare(&component).map_err(|error| anyhow::anyhow!("{error:?}"))?);
    let mut sums = [0.0; 4];
    // The runtime that runs this may not run another.
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                for _ in 0..effort.rounds {
                    for (sum, (threads, once)) in
                        sums.iter_mut().zip([(1, &ours), (2, &ours), (1, &theirs), (2, &theirs)])
                    {
                        *sum += rate(threads, effort.round, once)?;
                    }
                }
                Ok::<_, anyhow::Error>(())
            })
            .join()
            .map_err(|_| anyhow::anyhow!("a thread panicked"))?
    })?;
    let [one, two, bare_one, bare_two] = sums.map(|sum| sum / f64::from(effort.rounds));
    report.row(Row {
        name: "second core: gain of fresh sandboxes / gain of bare wasmtime",
        figure: (two / one) / (bare_two / bare_one),
        unit: "×",
        wanted: Wanted::AtLeast,
        target: 0.95,
        detail: format!("{one:.0} → {two:.0} against {bare_one:.0} → {bare_two:.0} a second"),
    });
    Ok(())
}
