//! The one build that demonstrations, tests and the time between two changes share, and what is built with it.
//!
//! Everything here uses cargo's profile `dev`, the features of the whole workspace, and the linter as the compiler of the workspace's own
//! crates, so no crate is compiled twice. With other packages selected, cargo would enable other features of shared dependencies; with
//! another compiler, it would compile the workspace's crates again.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context, Result, bail};
use cargo_metadata::MetadataCommand;

use crate::{debian, lint, root, run, say, toolchain};

/// The target that plugins are built for.
pub const TARGET: &str = "wasm32-wasip2";

/// Where cargo puts programs of this build.
pub fn built(program: &str) -> PathBuf {
    root().join("target/debug").join(program)
}

/// The wharf of this build, or the one that the environment variable `WHARF_BIN` names.
pub fn wharf() -> PathBuf {
    env::var_os("WHARF_BIN").map_or_else(|| built("wharf"), |file| root().join(file))
}

/// The folder that the repository's plugins are built into.
pub fn plugins() -> PathBuf {
    root().join("target/plugins")
}

/// Says which step a command is at, and how many there are.
pub struct Steps {
    begun: usize,
    of: usize,
}

impl Steps {
    pub fn new(of: usize) -> Self {
        Self { begun: 0, of }
    }

    pub fn begin(&mut self, what: &str) {
        self.begun += 1;
        say(&format!("[{}/{}] {what}", self.begun, self.of));
    }
}

/// Runs cargo in this build.
pub fn cargo<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Result<()> {
    run(&mut command(arguments)?)
}

/// Returns a command of cargo in this build. Its first argument is cargo's command. Tests bound the memory that wharf takes, so it has the
/// allocator that it is used with.
pub fn command<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Result<Command> {
    with(&["--features", "wharf/jemalloc"], arguments)
}

fn with<A: AsRef<OsStr>>(features: &[&str], arguments: impl IntoIterator<Item = A>) -> Result<Command> {
    let mut cargo = crate::cargo();
    let mut arguments = arguments.into_iter();
    cargo.args(arguments.next()).args(["--locked", "--workspace"]).args(features).args(arguments);
    lint::compile_with(&mut cargo)?;
    Ok(cargo)
}

/// Builds plugins, wharf, and the other programs in `more`. If `WHARF_BIN` names a wharf, that one is used and none is built.
pub fn prepare(more: &[&str]) -> Result<()> {
    guests()?;
    programs(more)
}

/// Builds wharf and the other programs in `more`.
pub fn programs(more: &[&str]) -> Result<()> {
    let wharf = if env::var_os("WHARF_BIN").is_some() { [].as_slice() } else { &["wharf"] };
    let named: Vec<&str> = wharf.iter().chain(more).flat_map(|program| ["--bin", program]).collect();
    if named.is_empty() {
        return Ok(());
    }
    cargo(["build"].into_iter().chain(named))
}

/// Builds every plugin of the repository that needs no C compiler, as `target/plugins/<name>.wasm`.
pub fn guests() -> Result<()> {
    build_guests(&guest_packages(false)?, &[])
}

/// Builds plugins, with additional environment variables.
pub fn build_guests(packages: &[String], more: &[(String, PathBuf)]) -> Result<()> {
    add_target(TARGET)?;
    let mut cargo = crate::cargo();
    cargo.args(["build", "--locked", "--profile", "guest", "--target", TARGET, "--target-dir", "target/guests"]);
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    cargo.envs(more.iter().map(|(name, value)| (name, value)));
    run(&mut cargo)?;
    let from = root().join("target/guests").join(TARGET).join("guest");
    let to = plugins();
    fs::create_dir_all(&to)?;
    for package in packages {
        let file = from.join(format!("{}.wasm", package.replace('-', "_")));
        let place = to.join(format!("{package}.wasm"));
        // An unchanged file is not replaced, so that cargo does not rebuild what embeds it.
        if fs::read(&place).ok() == Some(fs::read(&file).with_context(|| file.display().to_string())?) {
            continue;
        }
        // The copy is made under another name and then renamed, because a running wharf may be watching the folder. Another check may do the
        // same at the same time.
        let partial = to.join(format!("{package}.{}.partial", std::process::id()));
        fs::copy(&file, &partial).with_context(|| format!("{} was not built", file.display()))?;
        fs::rename(&partial, &place)?;
    }
    Ok(())
}

/// Returns the names of the plugins: the workspace members that are not default members. Plugins that are partly in C set
/// `package.metadata.guest.compiler` in their manifest; `in_c` selects those or all others.
pub fn guest_packages(in_c: bool) -> Result<Vec<String>> {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec()?;
    let native = metadata.workspace_default_members.clone();
    let guests = metadata.workspace_packages().into_iter().filter(|package| !native.contains(&package.id));
    let guests = guests.filter(|package| package.metadata.pointer("/guest/compiler").is_some() == in_c);
    let mut guests: Vec<String> = guests.map(|package| package.name.to_string()).collect();
    guests.sort();
    Ok(guests)
}

/// Returns the names of the packages that are compiled for this machine.
pub fn own_packages() -> Result<Vec<String>> {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec()?;
    Ok(metadata.workspace_default_packages().into_iter().map(|package| package.name.to_string()).collect())
}

/// Adds a target if rustc lacks it.
pub fn add_target(target: &str) -> Result<()> {
    if toolchain::libraries(target)?.join("lib").exists() {
        return Ok(());
    }
    say(&format!("adding the target {target}"));
    run(Command::new("rustup").args(["target", "add", target])).with_context(|| {
        format!("the target {target} is missing; install it the way Rust was installed on this machine")
    })
}

/// The plugins that the demo serves, and those that are built into wharf.
const DEMO_PLUGINS: [&str; 8] = ["echo", "fetch", "files", "git", "hello", "memory", "sequentialthinking", "time"];

/// Demonstrates wharf with an MCP client.
pub fn demo(rest: &[String]) -> Result<()> {
    let mut steps = Steps::new(3);
    steps.begin("building 8 plugins (a minute, the first time)");
    build_guests(&DEMO_PLUGINS.map(String::from), &[])?;
    steps.begin("building target/debug/wharf and an MCP client (three to four minutes, the first time)");
    // With the system's allocator, since wharf's takes longer to compile than any crate.
    run(&mut with(&[], ["build", "--bin", "wharf", "--bin", "demo"])?)?;
    steps.begin("the demonstration");
    run(Command::new(built("demo")).arg("--wharf").arg(wharf()).args(rest))
}

/// The tests whose bounds on time need a core for each test. Others mostly wait, so two of them share a core.
const TIMED: [&str; 7] = ["bystander", "flood", "hostile", "reload", "replicas", "roots_races", "threats"];

fn cores() -> usize {
    thread::available_parallelism().map_or(2, usize::from)
}

/// Runs everything that a pull request has to pass.
pub fn test() -> Result<()> {
    // Warnings, of the linter as well, are errors here and nowhere else.
    let strict = |arguments: &[&str]| run(command(arguments)?.env("CARGO_BUILD_WARNINGS", "deny"));
    lint::require()?;
    let mut steps = Steps::new(7);
    steps.begin("formatting, the project's own rules, licences of dependencies");
    run(crate::cargo().args(["fmt", "--all", "--check"])).context("run `cargo fmt --all`")?;
    crate::tidy(&[])?;
    steps.begin("building plugins");
    guests()?;
    steps.begin("compiling and linting wharf and all tests");
    // Programs are linted with their unit tests; of the programs themselves, tests start wharf only.
    strict(&["build", "--tests", "--benches", "--bin", "wharf"])?;
    steps.begin("unit tests");
    strict(&["test", "--no-fail-fast", "--lib", "--bins"])?;
    steps.begin("Redis and a registry for tests");
    debian::provide(&root(), "redis-server", "usr/bin/redis-server")?;
    debian::provide(&root(), "docker-registry", "usr/bin/docker-registry")?;
    steps.begin("tests of the real binary");
    let (timed, others): (Vec<_>, Vec<_>) =
        test_targets(&root(), "")?.into_iter().partition(|target| TIMED.contains(&target.as_str()));
    for (targets, threads) in [(others, 2 * cores()), (timed, cores())] {
        let named = targets.iter().flat_map(|target| ["--test", target.as_str()]);
        let mut tests = command(["test", "--no-fail-fast"].into_iter().chain(named))?;
        run(tests.env("CARGO_BUILD_WARNINGS", "deny").env("RUST_TEST_THREADS", threads.to_string()))?;
    }
    steps.begin("examples in documents of the code");
    strict(&["test", "--doc"])
}

/// Builds what has changed, and runs the tests whose path contains `name`: those of the real binary, or else unit tests.
pub fn try_tests(rest: &[String]) -> Result<()> {
    let [name] = rest else { bail!("usage: cargo xtask try NAME, with a part of a test's path, such as `reused::`") };
    let targets = test_targets(&root(), name)?;
    if targets.is_empty() {
        return cargo(["test", "--lib", "--bins", name]);
    }
    prepare(&[])?;
    let named = targets.iter().flat_map(|target| ["--test", target]);
    cargo(["test"].into_iter().chain(named).chain([name.as_str()]))
}

/// Returns the test programs with a function or module whose name contains the last part of `name`, or the one before a final `::`.
fn test_targets(root: &Path, name: &str) -> Result<Vec<String>> {
    let word = name.trim_end_matches("::").rsplit("::").next().unwrap_or_default();
    let mut targets = Vec::new();
    for place in ["tests/tests", "tests/embedded/tests"] {
        for entry in fs::read_dir(root.join(place)).context(place)? {
            let path = entry?.path();
            let target = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if target.contains(word) || has_test(&path, word)? {
                targets.push(target);
            }
        }
    }
    targets.sort();
    Ok(targets)
}

/// Whether this file or folder contains a function or a module whose name contains `word`.
fn has_test(path: &Path, word: &str) -> Result<bool> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            if has_test(&entry?.path(), word)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    if is_rust && path.file_stem().is_some_and(|stem| stem.to_string_lossy().contains(word)) {
        return Ok(true);
    }
    let text = if is_rust { fs::read_to_string(path)? } else { String::new() };
    Ok(text.lines().any(|line| {
        let named = line.split_once("fn ").or_else(|| line.split_once("mod ")).map(|(_, after)| after);
        named.is_some_and(|after| after.split(['(', ' ', ';', '<']).next().is_some_and(|name| name.contains(word)))
    }))
}
