//! `cargo xtask fuzz`: runs the code that reads data from strangers under libFuzzer, on stable Rust.
//!
//! cargo calls this program in place of rustc for the workspace's own crates, and it adds the flags that make rustc count every
//! edge. The crates that they depend on are built without. This needs a C++ compiler.

use std::{
    env,
    ffi::OsString,
    fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{conformance::child::finish, say};

/// The environment variable that tells this program to stand in for rustc.
const WRAPPER: &str = "WHARF_FUZZ_WRAPPER";
const FLAGS: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];
/// Longer inputs find little that shorter ones do not.
const MAX_BYTES: u32 = 4096;
/// The most time and memory that one input may take.
const INPUT_SECONDS: u32 = 5;
const INPUT_MIB: u32 = 1024;
/// How long all targets run together if no time is given.
const SMOKE_SECONDS: u64 = 60;

/// Runs rustc with the flags for fuzzing if cargo started this program in its place; `None` if it did not.
pub fn compile_if_asked() -> Option<ExitCode> {
    env::var_os(WRAPPER)?;
    let mut arguments = env::args_os().skip(1);
    let rustc = arguments.next()?;
    let rest: Vec<OsString> = arguments.collect();
    // Probes of the compiler, build scripts and procedural macros are compiled without the flags.
    let instrumented =
        rest.iter().any(|argument| argument == "--crate-type") && !rest.iter().any(|one| one == "proc-macro");
    let mut command = Command::new(rustc);
    command.args(&rest);
    if instrumented
        && !rest.windows(2).any(|pair| {
            pair.first().is_some_and(|one| one == "--crate-name")
                && pair.get(1).is_some_and(|one| one == "build_script_build")
        })
    {
        command.args(FLAGS);
    }
    let ended = command.status().ok()?;
    Some(ExitCode::from(u8::try_from(ended.code().unwrap_or(1)).unwrap_or(1)))
}

/// `[TARGET] [SECONDS]`: one target for so long, or all of them for so long together.
pub fn run(root: &Path, rest: &[String]) -> Result<()> {
    let targets = targets(root)?;
    let (wanted, seconds) = match rest {
        [] => (targets.clone(), SMOKE_SECONDS),
        [one] => match one.parse() {
            Ok(seconds) => (targets.clone(), seconds),
            Err(_) => (vec![one.clone()], SMOKE_SECONDS),
        },
        [one, seconds] => (vec![one.clone()], seconds.parse().context("SECONDS is a number")?),
        _ => bail!("cargo xtask fuzz [TARGET] [SECONDS]"),
    };
    if let Some(unknown) = wanted.iter().find(|name| !targets.contains(name)) {
        bail!("there is no target {unknown}; there are: {}", targets.join(", "));
    }
    let program = build(root)?;
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

fn build(root: &Path) -> Result<std::path::PathBuf> {
    say("building the fuzz targets (a few minutes the first time)");
    let mut cargo = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    cargo
        // Without `--package`, cargo chooses the same features as for the tests, so the dependencies that the tests built are
        // used again.
        .args(["build", "--locked", "--release", "--features", "fuzz/libfuzzer", "--bin", "fuzz"])
        .env("RUSTC_WORKSPACE_WRAPPER", env::current_exe()?)
        .env(WRAPPER, "1");
    crate::run_in(root, &mut cargo).context("fuzzing needs a C++ compiler, such as g++")?;
    Ok(root.join("target/release/fuzz"))
}

/// Runs one target, and returns how many inputs it has tried. Inputs worth keeping go to `target/fuzz`. Those that fail go to
/// the corpus, so that every later run tries them again.
fn fuzz(root: &Path, program: &Path, name: &str, seconds: u64) -> Result<u64> {
    let found = root.join("target/fuzz").join(name);
    fs::create_dir_all(&found)?;
    let corpus = root.join("tests/fuzz/corpus").join(name);
    let log = root.join("target/fuzz").join(format!("{name}.log"));
    let mut command = Command::new(program);
    command
        .env("WHARF_FUZZ_TARGET", name)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={MAX_BYTES}"))
        .arg(format!("-timeout={INPUT_SECONDS}"))
        .arg(format!("-rss_limit_mb={INPUT_MIB}"))
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
    let inputs = line.and_then(|line| line.trim().parse().ok()).context("the fuzzer gave no figures")?;
    say(&format!("{name}: {inputs} inputs in {seconds} s"));
    Ok(inputs)
}
