//! What a fresh call takes in each language and what a second core adds: sandboxes of wharf, against a bare wasmtime loop with the
//! same settings and the same component.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use rustix::time::{ClockId, clock_gettime};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
    component::{Component, Linker, ResourceTable, Val, types::ComponentItem},
};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wharf_base::places::Party;
use wharf_sandbox::{
    CallTool, Code, LoadedPlugin, NoEvents, Outcome, PluginCall, PluginSpec, Sandbox, ToolAnswer, Traces,
};
use wharf_scope::{Limits, MemoryLimit, Scope, network::HttpLimits};

use crate::{
    Effort,
    report::{Report, Row, Wanted, median},
    servers::Built,
};

/// Something that is done again and again.
pub type Once = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync>;

/// How often something was done on so many threads at once, and what the process had of the kernel meanwhile.
#[derive(Clone, Copy, Default)]
pub struct Rate {
    pub per_second: f64,
    /// The time on a core that each took, in microseconds, which the machine's other work changes least.
    pub core_us: f64,
    /// Page faults, each time.
    faults: f64,
    /// The kernel's part of the time on a core.
    kernel: f64,
}

/// This process's page faults, its seconds on a core, and how many of them the kernel had, by ticks of a hundredth.
fn used() -> Result<[f64; 3]> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name, in parentheses, may have spaces.
    let (_, rest) = stat.rsplit_once(')').context("not a stat")?;
    let fields: Vec<f64> = rest.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(f64::NAN)).collect();
    let field = |number: usize| fields.get(number).copied().context("not a stat");
    Ok([field(6)?, on_core(), field(11)? / 100.0])
}

/// The seconds that this process has had on a core.
pub fn on_core() -> f64 {
    let on_core = clock_gettime(ClockId::ProcessCPUTime);
    on_core.tv_sec as f64 + on_core.tv_nsec as f64 / 1e9
}

/// Does each of these again and again on so many threads, each in a task of its own.
pub fn rate(threads: usize, duration: Duration, all: &[Once]) -> Result<Rate> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let count = Arc::new(AtomicU64::new(0));
    let before = used()?;
    let start = Instant::now();
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for once in all {
            let (count, once) = (Arc::clone(&count), Arc::clone(once));
            tasks.push(tokio::spawn(async move {
                let mut own = 0;
                while start.elapsed() < duration {
                    once().await?;
                    own += 1;
                }
                count.fetch_add(own, Ordering::Relaxed);
                Ok::<_, anyhow::Error>(())
            }));
        }
        for task in tasks {
            task.await??;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    let elapsed = start.elapsed().as_secs_f64();
    let count = count.load(Ordering::Relaxed) as f64;
    let ([faults, on_core, kernel], [faults_before, on_core_before, kernel_before]) = (used()?, before);
    let (faults, on_core, kernel) = (faults - faults_before, on_core - on_core_before, kernel - kernel_before);
    Ok(Rate {
        per_second: count / elapsed,
        core_us: on_core / count * 1e6,
        faults: faults / count,
        kernel: kernel / on_core,
    })
}

/// What a round measured: wharf on one thread and on two, the other side on one and on two.
pub type Round = [Rate; 4];

/// Measures a round. `sides`: what wharf and the other side do on two threads; the first half of it is for one thread.
pub fn round(sides: [&[Once]; 2], effort: &Effort) -> Result<Round> {
    let mut rates = Round::default();
    let [ours, theirs] = sides;
    for (rate, (threads, all)) in rates.iter_mut().zip([(1, ours), (2, ours), (1, theirs), (2, theirs)]) {
        let (all, _) = all.split_at(all.len() * threads / 2);
        *rate = self::rate(threads, effort.round / 2, all)?;
    }
    Ok(rates)
}

/// The median of this over the rounds.
pub fn over(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    median(rounds.iter().map(of).collect())
}

/// What wharf gains by a second core, and what the other side gains.
pub fn gains(rounds: &[Round]) -> [f64; 2] {
    [
        over(rounds, |[one, two, ..]| two.per_second / one.per_second),
        over(rounds, |[.., one, two]| two.per_second / one.per_second),
    ]
}

/// Does this on another thread. The thread of the caller runs a runtime, which may not run another.
pub fn apart<T: Send>(what: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| scope.spawn(what).join().map_err(|_| anyhow!("a thread panicked"))?)
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

/// A call of a tool.
#[derive(Clone)]
pub struct Work {
    pub tool: &'static str,
    pub arguments: String,
}

impl Work {
    /// As the contract's parameters.
    fn values(&self) -> [Val; 3] {
        let context = [
            ("answers", Val::List(Vec::new())),
            ("state", Val::Option(None)),
            ("revision", Val::String("2025-11-25".into())),
            ("client", Val::Option(None)),
            ("caller", Val::Option(None)),
            ("capabilities", Val::Flags(Vec::new())),
            ("reports", Val::Flags(Vec::new())),
            ("more", Val::String("{}".into())),
        ];
        let context = context.map(|(name, value)| (name.to_owned(), value));
        [Val::String(self.tool.into()), Val::String(self.arguments.clone()), Val::Record(context.into())]
    }
}

/// wasmtime alone: a pool with the settings that wharf uses, a store, an instance and one call.
fn bare(component: &[u8], work: &Work) -> wasmtime::Result<Once> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(80)
        .total_core_instances(80 * 32)
        .total_memories(80 * 2)
        .total_tables(80 * 4)
        .total_stacks(80)
        .table_elements(20_000)
        .linear_memory_keep_resident(1 << 20)
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
    let call = component.get_export(Some(&interface), "call-tool").map(|(_, call)| call);
    let call = call.ok_or_else(|| wasmtime::Error::msg("the plugin has no call-tool"))?;
    let values = Arc::new(work.values());
    Ok(Arc::new(move || {
        let (engine, pre, values) = (engine.clone(), pre.clone(), Arc::clone(&values));
        let once = async move {
            let state = State { wasi: WasiCtx::builder().build(), table: ResourceTable::new() };
            let mut store = Store::new(&engine, state);
            store.set_epoch_deadline(1_000_000);
            let instance = pre.instantiate_async(&mut store).await?;
            let function = instance.get_func(&mut store, call);
            let function = function.ok_or_else(|| wasmtime::Error::msg("call-tool is not a function"))?;
            let mut results = [Val::Bool(false)];
            function.call_async(&mut store, values.as_slice(), &mut results).await?;
            match results {
                [Val::Result(Ok(Some(outcome)))] if matches!(&*outcome, Val::Variant(case, _) if case == "text") => {
                    Ok(())
                }
                other => Err(wasmtime::Error::msg(format!("not an answer: {other:?}"))),
            }
        };
        Box::pin(async move { once.await.map_err(|error| anyhow!("{error:?}")) })
    }))
}

/// Compiles a component, on a thread with a runtime for that.
pub fn load(sandbox: &Arc<Sandbox>, component: &Path) -> Result<Code> {
    let file = std::fs::File::open(component)?;
    apart(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(sandbox.load(file, || {}))?)
    })
}

/// A plugin with limits that do not matter here.
pub fn plugin(code: Code, concurrency: usize) -> Result<LoadedPlugin> {
    let limits = Limits {
        concurrency,
        memory: MemoryLimit::Bytes(64 << 20),
        timeout: Duration::from_secs(30),
        output_bytes: 4 << 20,
        http: HttpLimits { requests: 100, at_once: 8, in_bytes: 16 << 20, out_bytes: 4 << 20 },
    };
    let spec = PluginSpec { id: "bench".into(), limits, config: "{}".into(), adapter: Arc::default() };
    Ok(LoadedPlugin::new(code, spec)?)
}

/// The same by way of wharf's sandbox: with limits, scope, capture and admission.
fn sandboxed(sandbox: &Arc<Sandbox>, component: &Path, work: &Work) -> Result<Once> {
    let plugin = plugin(load(sandbox, component)?, 16)?;
    let (tool, args) = (work.tool, Arc::new(work.arguments.clone()));
    Ok(Arc::new(move || {
        let (plugin, args) = (plugin.clone(), Arc::clone(&args));
        Box::pin(async move {
            let context = bench::context();
            let operation = CallTool { name: tool.into(), args, context };
            let (scope, events) = (Scope::default(), Arc::new(NoEvents));
            match plugin
                .call(PluginCall {
                    operation,
                    scope,
                    events,
                    timeout: None,
                    client: None,
                    party: Party::SOLE,
                    traces: Traces::default(),
                })
                .await
                .result?
            {
                Outcome::Done(ToolAnswer::Text(_)) => Ok(()),
                other => bail!("not an answer: {other:?}"),
            }
        })
    }))
}

/// What was measured of one component.
struct Found {
    language: &'static str,
    rounds: Vec<Round>,
}

impl Found {
    fn note(&self) -> String {
        let of =
            |side: usize, what: fn(&Rate) -> f64| over(&self.rounds, |round| round.get(side).map_or(f64::NAN, what));
        format!(
            "{:<26} {:>5.0} us on a core (bare wasmtime {:.0}); a second on one core {:.0} ({:.0}), on two {:.0} ({:.0}); page faults a \
             call {:.0} ({:.0}), on two cores {:.0}; the kernel has {:.0} %, on two cores {:.0}",
            self.language,
            of(0, |rate| rate.core_us),
            of(2, |rate| rate.core_us),
            of(0, |rate| rate.per_second),
            of(2, |rate| rate.per_second),
            of(1, |rate| rate.per_second),
            of(3, |rate| rate.per_second),
            of(0, |rate| rate.faults),
            of(2, |rate| rate.faults),
            of(1, |rate| rate.faults),
            of(0, |rate| rate.kernel) * 100.0,
            of(1, |rate| rate.kernel) * 100.0,
        )
    }
}

/// Calls fresh sandboxes of one component after another, in rounds that alternate.
fn measure(sandbox: &Arc<Sandbox>, all: &[(&'static str, PathBuf, Work)], effort: &Effort) -> Result<Vec<Found>> {
    let mut sides = Vec::new();
    let mut found = Vec::new();
    for (language, path, work) in all {
        let bare = bare(&std::fs::read(path)?, work).map_err(|error| anyhow!("{error:?}"))?;
        sides.push([sandboxed(sandbox, path, work)?, bare].map(|once| [Arc::clone(&once), once]));
        found.push(Found { language, rounds: Vec::new() });
    }
    for round in 0..=effort.rounds {
        for ([ours, theirs], found) in sides.iter().zip(&mut found) {
            let rates = self::round([ours, theirs], effort)?;
            // The first round warms up.
            if round > 0 {
                found.rounds.push(rates);
            }
        }
    }
    Ok(found)
}

/// Compares the gains of the smallest plugin in each language, as far as they are built.
pub fn compare(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    let echo = Work { tool: "echo", arguments: format!(r#"{{"message":"{}"}}"#, "x".repeat(32)) };
    let greet = Work { tool: "greet", arguments: r#"{"name":"Ada"}"#.into() };
    let mut all = vec![("Rust, echo", built.plugins.join("echo.wasm"), echo)];
    if !effort.brief {
        all.push(("Rust", built.plugins.join("hello.wasm"), greet.clone()));
        all.extend(built.examples.iter().map(|(language, path)| (*language, path.clone(), greet.clone())));
    }
    let sandbox = Sandbox::new(bench::sandbox_config())?;
    let found = apart(|| measure(&sandbox, &all, effort))?;
    for one in &found {
        report.note(one.note());
    }
    for one in &found {
        let [gain, bare] = gains(&one.rounds);
        report.row(Row {
            name: format!("second core, fresh, {}: gain / bare wasmtime's", one.language).into(),
            figure: gain / bare,
            unit: "×",
            wanted: Wanted::AtLeast,
            target: if one.language.starts_with("Rust") { 0.95 } else { 0.6 },
            detail: format!("{gain:.2} against {bare:.2} ×"),
        });
    }
    let [rust, quick] =
        ["Rust", "JavaScript, QuickJS"].map(|language| found.iter().find(|one| one.language == language));
    if let Some((rust, quick)) = rust.zip(quick) {
        let ratios = rust.rounds.iter().zip(&quick.rounds);
        report.row(Row {
            name: "a fresh call of QuickJS / of Rust".into(),
            figure: median(ratios.map(|(rust, quick)| quick[0].core_us / rust[0].core_us).collect()),
            unit: "×",
            wanted: Wanted::AtMost,
            target: 8.0,
            detail: "by the time on a core".into(),
        });
    }
    Ok(())
}
