//! `cargo xtask check fuzz`: runs the code that parses untrusted input under libFuzzer, on stable Rust.
//!
//! cargo calls this program as `RUSTC_WORKSPACE_WRAPPER` for the workspace's own crates, and the program adds the flags for coverage
//! instrumentation. Dependencies are built without those flags. Fuzzing needs a C++ compiler.

use std::{
    fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    conformance::child::finish,
    lint, say, tree,
    wrapper::{self, Call},
};

/// The environment variable that makes this program act as the wrapper of rustc.
const WRAPPER: &str = "WHARF_FUZZ_WRAPPER";
const FLAGS: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];
/// The maximum length of an input. Longer inputs rarely find more.
const MAX_INPUT_BYTES: u32 = 4096;
/// The maximum time that one input may take.
const MAX_INPUT_SECONDS: u32 = 5;
/// The maximum memory that one input may take.
const MAX_INPUT_MIB: u32 = 1024;
/// How long all targets run together if no time is given.
const DEFAULT_SECONDS: u64 = 60;

/// Runs rustc with the flags for fuzzing if cargo started this program as the wrapper of rustc; otherwise returns `None`.
pub fn compile_if_asked() -> Option<ExitCode> {
    let call = Call::of(WRAPPER)?;
    let mut command = Command::new(&call.rustc);
    command.args(&call.arguments);
    // The flags are not added to queries of the compiler, build scripts and procedural macros.
    let is_build_script = call.arguments.windows(2).any(|pair| pair == ["--crate-name", "build_script_build"]);
    if call.has("--crate-type") && !call.has("proc-macro") && !is_build_script {
        command.args(FLAGS);
    }
    Some(wrapper::run(&mut command))
}

/// Fuzzes one target for SECONDS, or all of them for SECONDS together. The arguments are `[TARGET] [SECONDS]`.
pub fn run(root: &Path, rest: &[String]) -> Result<()> {
    let targets = targets(root)?;
    let (wanted, seconds) = match rest {
        [] => (targets.clone(), DEFAULT_SECONDS),
        [one] => match one.parse() {
            Ok(seconds) => (targets.clone(), seconds),
            Err(_) => (vec![one.clone()], DEFAULT_SECONDS),
        },
        [one, seconds] => (vec![one.clone()], seconds.parse().context("SECONDS has to be a number")?),
        _ => bail!("usage: cargo xtask check fuzz [TARGET] [SECONDS]"),
    };
    if let Some(unknown) = wanted.iter().find(|name| !targets.contains(name)) {
        bail!("there is no target {unknown}; the targets are: {}", targets.join(", "));
    }
    let program = build()?;
    let each = (seconds / wanted.len() as u64).max(1);
    let mut inputs = 0;
    for name in &wanted {
        inputs += fuzz(root, &program, name, each)?;
    }
    say(&format!("{inputs} inputs over {} targets, no crash, no hang, no growth", wanted.len()));
    Ok(())
}

fn targets(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("tests/fuzz/corpus"))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn build() -> Result<std::path::PathBuf> {
    say("building the fuzz targets (a few minutes the first time)");
    // The features are those of the tests, so what was built for them is used here.
    let mut cargo = tree::command(["build", "--features", "fuzz/libfuzzer", "--bin", "fuzz"])?;
    for name in tree::own_packages()? {
        cargo.args(["--config", &format!("profile.dev.package.{name}.opt-level=1")]);
    }
    let program = lint::copy()?;
    crate::run(wrapper::wrap(cargo.env_remove(lint::WRAPPER), &program, WRAPPER))
        .context("fuzzing needs a C++ compiler, such as g++")?;
    Ok(tree::built("fuzz"))
}

/// Runs one target, and returns the number of inputs it tried. Inputs that reach new code are stored in `target/fuzz`. Inputs that fail are
/// stored in the corpus, so that every later run tries them again.
fn fuzz(root: &Path, program: &Path, name: &str, seconds: u64) -> Result<u64> {
    let found = root.join("target/fuzz").join(name);
    fs::create_dir_all(&found)?;
    let corpus = root.join("tests/fuzz/corpus").join(name);
    let log = root.join("target/fuzz").join(format!("{name}.log"));
    let mut command = Command::new(program);
    command
        .env("WHARF_FUZZ_TARGET", name)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={MAX_INPUT_BYTES}"))
        .arg(format!("-timeout={MAX_INPUT_SECONDS}"))
        .arg(format!("-rss_limit_mb={MAX_INPUT_MIB}"))
        .arg(format!("-artifact_prefix={}/failed-", corpus.display()))
        .arg("-print_final_stats=1")
        .args([&found, &corpus])
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log)?);
    let status = finish(&mut command, Duration::from_secs(seconds + 60))?;
    let said = fs::read_to_string(&log)?;
    if !status.success() {
        let end: Vec<&str> = said.lines().rev().take(30).collect();
        bail!(
            "{name} failed; the input is in {}:\n{}",
            corpus.display(),
            end.into_iter().rev().collect::<Vec<_>>().join("\n")
        );
    }
    let line = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let inputs = line.and_then(|line| line.trim().parse().ok()).context("the fuzzer printed no number of inputs")?;
    say(&format!("{name}: {inputs} inputs in {seconds} s"));
    Ok(inputs)
}
