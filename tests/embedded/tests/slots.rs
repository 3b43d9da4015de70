//! Checks that no data of a call reaches the next one: guests in several languages fill their memories and tables and end in every possible
//! way, and in between, a guest checks that all of its own fresh memory and table has its initial contents.
//!
//! `slots [CALLS] [--swap] [--languages]`. `--swap` swaps out the memory of running calls before they end, and needs a swap device (`cargo
//! xtask slots --swap` creates one). `--languages` fails if the guests of `cargo xtask check languages` are missing.
//!
//! It has no test harness, because `main` must be able to run as the compiler process of plugins.

#![expect(clippy::disallowed_methods, reason = "a program of its own, which ends with what it spawns")]
#![expect(clippy::print_stdout, reason = "the whole program is a test")]

use std::{
    collections::BTreeMap,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail, ensure};
use e2e::random::Random;
use tokio::task::JoinSet;
use wharf_base::{accounts::Account, places::Party};
use wharf_sandbox::{
    CallError, CallTool, Client, Code, CompilerConfig, Effort, LoadedPlugin, NoEvents, Outcome, PluginCall, PluginSpec,
    Program, Sandbox, SandboxConfig, ToolAnswer, Traces,
    model::{ClientCapabilities, Context as CallContext, Reports},
};
use wharf_scope::{Limits, MemoryLimit, Scope, network::HttpLimits};

/// The default number of calls.
const CALLS: usize = 3_000;
const PAGE: usize = 64 << 10;
/// The number of additional pages of the checking guest. The filling guests have up to as many.
const PAGES: usize = 48;
/// The number of concurrent calls.
const AT_ONCE: usize = 8;
/// The number of further copies of the checking guest, so that it runs in many slots at the same time.
const LOOKERS: usize = 16;

/// A component with two functions. `smear` fills its memory and its table, everywhere or in every other page, and ends as requested. `look`
/// counts the differences from a new instance: words of memory that are not zero, bytes of the image that differ, and entries of the table
/// that are not null.
const GUEST: &str = r#"
(component
  (core module $m
    (memory (export "memory") 2)
    (data (i32.const 4096) "SEAL-OF-A-NEW-IMAGE-OF-32-BYTES!")
    (table $t 4 8192 funcref)
    (elem declare func $down)
    (func $down (param $n i32) (result i32) (i32.add (i32.const 1) (call $down (i32.add (local.get $n) (i32.const 1)))))
    (func $spin (param $n i32)
      (loop $again
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br_if $again (local.get $n))))
    (func (export "smear") (param $pages i32) (param $step i32) (param $end i32) (param $spins i32) (result i64)
      (local $at i32) (local $size i32)
      (drop (memory.grow (local.get $pages)))
      (local.set $size (i32.mul (memory.size) (i32.const 65536)))
      (loop $next
        (i64.store (local.get $at) (i64.const 0x5a5a5a5a5a5a5a5a))
        (local.set $at (i32.add (local.get $at) (local.get $step)))
        (br_if $next (i32.lt_u (local.get $at) (local.get $size))))
      (drop (table.grow $t (ref.func $down) (i32.const 5000)))
      (table.fill $t (i32.const 0) (ref.func $down) (i32.const 4))
      (call $spin (local.get $spins))
      (if (i32.eq (local.get $end) (i32.const 1)) (then (unreachable)))
      (if (i32.eq (local.get $end) (i32.const 2)) (then (loop $ever (br $ever))))
      (if (i32.eq (local.get $end) (i32.const 3)) (then (drop (call $down (i32.const 0)))))
      (if (i32.eq (local.get $end) (i32.const 4))
        (then (loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) (unreachable)))
      (i64.const 0))
    (func (export "look") (param $pages i32) (param $spins i32) (result i64)
      (local $at i32) (local $size i32) (local $dirty i64)
      (drop (memory.grow (local.get $pages)))
      (local.set $size (i32.mul (memory.size) (i32.const 65536)))
      (loop $next
        (if (i32.and
              (i64.ne (i64.load (local.get $at)) (i64.const 0))
              (i32.eqz (i32.eq (i32.shr_u (local.get $at) (i32.const 5)) (i32.const 128))))
          (then (local.set $dirty (i64.add (local.get $dirty) (i64.const 1)))))
        (local.set $at (i32.add (local.get $at) (i32.const 8)))
        (br_if $next (i32.lt_u (local.get $at) (local.get $size))))
      (if (i64.ne (i64.load (i32.const 4096)) (i64.const 0x2d464f2d4c414553))
        (then (local.set $dirty (i64.add (local.get $dirty) (i64.const 1)))))
      (if (i64.ne (i64.load (i32.const 4120)) (i64.const 0x2153455459422d32))
        (then (local.set $dirty (i64.add (local.get $dirty) (i64.const 1)))))
      (drop (table.grow $t (ref.null func) (i32.const 5000)))
      (local.set $at (i32.const 0))
      (loop $next
        (if (i32.eqz (ref.is_null (table.get $t (local.get $at))))
          (then (local.set $dirty (i64.add (local.get $dirty) (i64.const 1)))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $at) (table.size $t))))
      (call $spin (local.get $spins))
      (local.get $dirty)))
  (core instance $i (instantiate $m))
  (func (export "smear") (param "pages" u32) (param "step" u32) (param "end" u32) (param "spins" u32) (result u64)
    (canon lift (core func $i "smear")))
  (func (export "look") (param "pages" u32) (param "spins" u32) (result u64) (canon lift (core func $i "look"))))
"#;

wharf_sandbox::narrow_page_scans!();

fn main() -> ExitCode {
    if let Some(compiled) = wharf_sandbox::compile_if_asked() {
        return compiled;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let calls = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(CALLS);
    match run(calls, has("--swap"), has("--languages")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A tool, and its arguments.
type Asked = (&'static str, String);

/// A plugin that writes to its memory, and the calls that make it do so.
struct Smearer {
    name: String,
    plugin: LoadedPlugin,
    tools: Vec<Asked>,
}

fn run(calls: usize, swap: bool, languages: bool) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let sandbox = Sandbox::new(SandboxConfig {
            total_concurrency: AT_ONCE,
            total_memory_bytes: 4 << 30,
            cache_dir: None,
            compiler: CompilerConfig {
                program: Program::This,
                memory_bytes: 4 << 30,
                timeout: Duration::from_secs(300),
                effort: Effort::Full,
            },
            host_memory: Account::new(1 << 30),
        })?;
        let code = load(&sandbox, &mut written(wat::parse_str(GUEST)?)?).await?;
        a_kept_instance_shows_what_is_left(&code).await?;
        let lookers: Vec<LoadedPlugin> = (0..LOOKERS).map(|_| plugin(&code)).collect::<Result<_>>()?;
        if swap {
            swapped_out(&code, &lookers).await?;
            println!("slots: nothing is left of calls whose memory was swapped out");
            return Ok(());
        }
        let smearers = smearers(&sandbox, &code, languages).await?;
        mixed(calls, &smearers, &lookers).await
    })
}

/// The checking guest does find the data of an earlier call if an instance is reused on purpose.
async fn a_kept_instance_shows_what_is_left(code: &Code) -> Result<()> {
    let plugin = plugin(code)?;
    let client = Client { key: "one".into(), in_one: false, lasts: None };
    let smeared = ask(&plugin, "smear", &smear(4, 8, 0, 1), Some(&client), None).await;
    ensure!(number(&smeared)? == 0, "it does not smear: {smeared:?}");
    let seen = number(&ask(&plugin, "look", &look(1), Some(&client), None).await)?;
    ensure!(seen > 6 * PAGE as u64 / 8, "the guest that looks sees only {seen} of what a kept instance has left");
    Ok(())
}

/// The plugins that write to their memory.
async fn smearers(sandbox: &Arc<Sandbox>, code: &Code, languages: bool) -> Result<Vec<Smearer>> {
    let mut all = Vec::new();
    let ends = |step: usize| (0..5).map(move |end| ("smear", smear(PAGES, step, end, 1))).collect::<Vec<Asked>>();
    // In every word, and in every other page of the operating system, which is more ranges than one scan for them returns.
    all.push(Smearer { name: "all".into(), plugin: plugin(code)?, tools: ends(8) });
    all.push(Smearer { name: "pieces".into(), plugin: plugin(code)?, tools: ends(8192) });
    let hostile = |tool: &'static str, arguments: &str| (tool, arguments.to_owned());
    let hostile = vec![
        hostile("ok", "{}"),
        hostile("allocate", r#"{"mib":3}"#),
        hostile("allocate", r#"{"mib":200}"#),
        hostile("trap", "{}"),
        hostile("panic", r#"{"message":"x"}"#),
        hostile("exit", r#"{"code":3}"#),
        hostile("recurse", "{}"),
        hostile("big", r#"{"bytes":3000000}"#),
        hostile("spin", "{}"),
        hostile("no_such_tool", "{}"),
    ];
    let mut found: Vec<(&str, PathBuf, Vec<Asked>)> = vec![("hostile", e2e::plugin("hostile"), hostile)];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("guests/languages");
    let simple = || vec![("test_simple_text", "{}".to_owned()), ("test_error_handling", "{}".to_owned())];
    found.push(("rust", e2e::plugin("conformance"), simple()));
    for language in ["ts", "python", "go", "c"] {
        let component = folder.join(language).join("dist/plugin.wasm");
        if component.is_file() {
            found.push((language, component, simple()));
        } else {
            ensure!(!languages, "{} is missing: cargo xtask check languages", component.display());
        }
    }
    for (name, path, tools) in found {
        let code = load(sandbox, &mut File::open(&path)?).await.with_context(|| path.display().to_string())?;
        all.push(Smearer { name: name.into(), plugin: plugin(&code)?, tools });
    }
    println!("slots: {}", all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", "));
    Ok(all)
}

/// Makes calls of all kinds with all kinds of ends, with checks in between.
async fn mixed(calls: usize, smearers: &[Smearer], lookers: &[LoadedPlugin]) -> Result<()> {
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.subsec_nanos().into();
    println!("slots: {calls} calls, seed {seed}");
    let mut random = Random::new(seed);
    let ends: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let mut running = JoinSet::new();
    let (began, mut looks) = (Instant::now(), 0_usize);
    for at in 0..calls {
        if running.len() >= AT_ONCE + 4
            && let Some(ended) = running.join_next().await
        {
            ended??;
        }
        if at % 2 == 0 {
            looks += 1;
            let looker = lookers.get(random.below(lookers.len())).context("a looker")?.clone();
            let spins = 1 + random.below(20_000);
            running.spawn(async move { is_new(&looker, spins).await });
            continue;
        }
        let one = smearers.get(random.below(smearers.len())).context("a smearer")?;
        let (tool, arguments) = one.tools.get(random.below(one.tools.len())).context("a tool")?.clone();
        let timeout = Duration::from_micros(500 + random.below(8_000) as u64);
        // Some are dropped before they end by themselves or by their deadline.
        let dropped = (random.below(4) == 0).then(|| Duration::from_micros(random.below(3_000) as u64));
        let (plugin, name, ends) = (one.plugin.clone(), one.name.clone(), Arc::clone(&ends));
        running.spawn(async move {
            let call = ask(&plugin, tool, &arguments, None, Some(timeout));
            let ended = match dropped {
                Some(after) => tokio::time::timeout(after, call).await.ok(),
                None => Some(call.await),
            };
            let ended = match ended {
                None => "dropped",
                Some(Ok(_)) => "returned",
                Some(Err(CallError::Timeout(_))) => "deadline",
                Some(Err(CallError::Trap { .. })) => "trap",
                Some(Err(CallError::Memory(_) | CallError::TotalMemory)) => "memory",
                Some(Err(CallError::Exit(_))) => "exit",
                Some(Err(CallError::Failed(_))) => "failed",
                Some(Err(CallError::Output(_))) => "output",
                Some(Err(other)) => bail!("{name} {tool}: {other:?}"),
            };
            *ends.lock().map_err(|_| anyhow::anyhow!("poisoned"))?.entry(ended.to_owned()).or_default() += 1;
            Ok(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    // Then in many slots at once.
    for looker in lookers {
        for _ in 0..2 {
            let looker = looker.clone();
            running.spawn(async move { is_new(&looker, 3_000_000).await });
            looks += 1;
        }
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    let ends = ends.lock().map_err(|_| anyhow::anyhow!("poisoned"))?.clone();
    println!("slots: {looks} looks found nothing, between calls that ended so: {ends:?}, in {:.1?}", began.elapsed());
    for kind in ["dropped", "returned", "deadline", "trap", "memory", "exit"] {
        ensure!(calls < 1000 || ends.contains_key(kind), "no call ended by {kind}, so that end was not tried");
    }
    Ok(())
}

/// Fills the memory of all concurrent calls, swaps it out while they run, lets them end, and checks.
async fn swapped_out(code: &Code, lookers: &[LoadedPlugin]) -> Result<()> {
    for (round, step) in [8, 8192, 8].into_iter().enumerate() {
        let plugin = plugin(code)?;
        let mut running = JoinSet::new();
        for at in 0..AT_ONCE {
            let plugin = plugin.clone();
            // Half of them return, the others trap.
            let arguments = smear(PAGES, step, at % 2, 1_500_000_000);
            running.spawn(async move { ask(&plugin, "smear", &arguments, None, Some(Duration::from_secs(100))).await });
        }
        let began = Instant::now();
        // All pages have been written by then; the calls continue to compute without using them. A guest that computes cannot say how far
        // it is, so this looks at the memory in use and then allows for the rest.
        while plugin.running() < AT_ONCE || kib("VmRSS")? < 30_000 {
            ensure!(began.elapsed() < Duration::from_secs(60), "the calls do not begin");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        let before = kib("VmSwap")?;
        tokio::task::spawn_blocking(page_out).await??;
        let swapped = kib("VmSwap")? - before;
        ensure!(
            running.len() == AT_ONCE && running.try_join_next().is_none(),
            "a call ended before its memory was out"
        );
        ensure!(swapped > 4_000, "only {swapped} KiB were swapped out: is there swap, and may this process use it?");
        println!("slots: round {round}: {} MiB of {AT_ONCE} running calls are swapped out", swapped >> 10);
        while let Some(ended) = running.join_next().await {
            match ended? {
                Ok(_) | Err(CallError::Trap { .. }) => {}
                Err(other) => bail!("smear: {other:?}"),
            }
        }
        let mut looking = JoinSet::new();
        for looker in lookers.iter().chain([&plugin]) {
            for _ in 0..4 {
                let looker = looker.clone();
                looking.spawn(async move { is_new(&looker, 30_000_000).await });
            }
        }
        while let Some(seen) = looking.join_next().await {
            seen??;
        }
    }
    Ok(())
}

/// Asks the kernel to swap out all large private mappings of this process, as it does by itself when memory is short.
fn page_out() -> Result<()> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let mut out = 0;
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let (Some(range), Some(rights)) = (fields.next(), fields.next()) else { continue };
        let Some((from, to)) = range.split_once('-') else { continue };
        let (from, to) = (usize::from_str_radix(from, 16)?, usize::from_str_radix(to, 16)?);
        if rights != "rw-p" || to - from < PAGE {
            continue;
        }
        out += usize::from(page_out_one(from, to - from));
    }
    ensure!(out > 0, "no mapping was taken");
    Ok(())
}

#[expect(unsafe_code, reason = "advising the kernel about memory is unsafe for advice that changes it")]
fn page_out_one(from: usize, length: usize) -> bool {
    // SAFETY: this advice moves pages without changing them; a range that was unmapped is an error.
    unsafe { rustix::mm::madvise(from as *mut _, length, rustix::mm::Advice::LinuxPageOut) }.is_ok()
}

/// Returns a line of this process's status, in KiB.
fn kib(key: &str) -> Result<u64> {
    Ok(e2e::memory_kib(std::process::id(), key))
}

async fn is_new(looker: &LoadedPlugin, spins: usize) -> Result<()> {
    let seen = ask(looker, "look", &look(spins), None, Some(Duration::from_secs(60))).await;
    let dirty = number(&seen)?;
    ensure!(dirty == 0, "a new instance found {dirty} words, bytes or entries of calls before it");
    Ok(())
}

fn smear(pages: usize, step: usize, end: usize, spins: usize) -> String {
    format!(r#"{{"pages":{pages},"step":{step},"end":{end},"spins":{spins}}}"#)
}

fn look(spins: usize) -> String {
    format!(r#"{{"pages":{PAGES},"spins":{spins}}}"#)
}

async fn ask(
    plugin: &LoadedPlugin,
    tool: &str,
    arguments: &str,
    client: Option<&Client>,
    timeout: Option<Duration>,
) -> Result<ToolAnswer, CallError> {
    let context = CallContext {
        answers: vec![],
        state: None,
        revision: "2026-07-28".into(),
        client: None,
        caller: None,
        capabilities: ClientCapabilities::empty(),
        reports: Reports::empty(),
        more: r#"{"meta":{},"capabilities":{}}"#.into(),
    };
    let operation = CallTool { name: tool.into(), args: Arc::new(arguments.to_owned()), context };
    let (scope, events, client) = (Scope::default(), Arc::new(NoEvents), client.cloned().map(Box::new));
    match plugin
        .call(PluginCall { operation, scope, events, timeout, client, party: Party::SOLE, traces: Traces::default() })
        .await
        .result?
    {
        Outcome::Done(answer) => Ok(answer),
        Outcome::Ask(_) => Err(CallError::Stopped),
    }
}

/// Returns the number that one of the guest's functions has answered.
fn number(answer: &Result<ToolAnswer, CallError>) -> Result<u64> {
    let text = match answer {
        Ok(ToolAnswer::Text(text) | ToolAnswer::Structured(text)) => text.clone(),
        other => format!("{other:?}"),
    };
    let digits: String =
        text.chars().skip_while(|one| !one.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().with_context(|| format!("not a number: {text}"))
}

fn plugin(code: &Code) -> Result<LoadedPlugin> {
    let limits = Limits {
        concurrency: AT_ONCE,
        memory: MemoryLimit::Bytes(64 << 20),
        timeout: Duration::from_secs(30),
        output_bytes: 1 << 20,
        http: HttpLimits { requests: 1, at_once: 1, in_bytes: 1, out_bytes: 1 },
    };
    let spec = PluginSpec { id: "slots".into(), limits, config: "{}".into(), adapter: Arc::default() };
    Ok(LoadedPlugin::new(code.clone(), spec)?)
}

async fn load(sandbox: &Arc<Sandbox>, component: &mut File) -> Result<Code> {
    Ok(sandbox.load(component.try_clone()?, || {}).await?)
}

/// Returns a file with this content, positioned at its beginning.
fn written(bytes: Vec<u8>) -> Result<File> {
    use std::io::Seek;
    let mut file = tempfile::tempfile()?;
    file.write_all(&bytes)?;
    file.rewind()?;
    Ok(file)
}
