//! Profile-guided optimisation. A build that counts runs the calls of `bench --train`, and the compiler then knows which functions and
//! branches calls execute: it places those together and optimises them for speed, and everything else for size. A call executes a little of
//! very many functions, so the processor mostly waits for code, and this halves the time that a call takes. The build that counts also
//! compiles one plugin.
//!
//! The profile for release builds is in the repository, because counting and building again takes four times as long as building. It
//! refers to functions by names that contain the version of the compiler, so it is used only with that version. After a change, the
//! functions that changed are compiled as without a profile.

use std::{
    env, fs,
    hash::{DefaultHasher, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    c, run, say, toolchain,
    tree::{Steps, guests},
};

/// The only target with a profile.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The crate by which it is known whether a profile fits, as names of functions contain it. It depends on most others.
const CRATE: &str = "_11wharf_serve";
/// The flag that suppresses a warning for each function that has changed since the profile was written.
const NO_WARNINGS: &str = "-Cllvm-args=-no-pgo-warn-mismatch";

/// Returns where the profile for release builds with this compiler is.
fn file(root: &Path) -> Result<PathBuf> {
    Ok(root.join("tests/bench/profiles").join(format!("release-{}.profdata", toolchain::found()?)))
}

/// Returns an argument of cargo with which it passes this flag to the compiler, and `more` after it.
fn config(flag: &str, path: &Path, more: &[&str]) -> Result<String> {
    let path = path.to_str().context("the path of this folder is not UTF-8")?;
    let flags: Vec<String> =
        [format!("-C{flag}={path}")].into_iter().chain(more.iter().map(ToString::to_string)).collect();
    // The quotes and escapes of Rust's strings are those of TOML's, for all but unusual characters.
    Ok(format!("target.{TARGET}.rustflags={flags:?}"))
}

/// Returns a command of cargo that builds with these settings (`release` or `shipped`), with the allocator for use.
fn build_with(settings: &str, more: &[&str]) -> Command {
    let mut cargo = crate::cargo();
    cargo.args([
        "build",
        "--locked",
        "--profile",
        settings,
        "--features",
        "wharf/jemalloc,bench/jemalloc",
        "--bin",
        "wharf",
    ]);
    cargo.args(more.iter().flat_map(|program| ["--bin", program]));
    cargo
}

/// Builds the plugins, also those that are partly in C and named in `rest`, and `target/release/wharf`, which contains six of them.
pub fn build(root: &Path, rest: &[String]) -> Result<()> {
    if rest == ["plugins"] {
        return guests();
    }
    let mut steps = Steps::new(2);
    steps.begin("building plugins (two minutes, the first time)");
    let in_c: Vec<&str> = rest.iter().map(String::as_str).collect();
    c::guests(root, &in_c)?;
    guests()?;
    steps
        .begin("building target/release/wharf (10 to 20 minutes the first time, on two cores; most of it is wasmtime)");
    programs(root, &[])
}

/// Builds wharf and the other programs in `more` for use, or to be measured. They are chosen by `--bin` and not by `--package`: for one
/// package alone, cargo would enable other features of shared dependencies, so that wasmtime would be compiled twice and the measured binary
/// would differ from the one for use.
pub fn programs(root: &Path, more: &[&str]) -> Result<()> {
    run(build_with("release", more).args(arguments(root)?))?;
    check(root, &root.join("target/release/wharf"))
}

/// Builds everything that `cargo xtask bench` runs, or with `brief` what a brief run does, in which the other side is built like wharf.
pub fn bench(root: &Path, is_brief: bool) -> Result<()> {
    guests()?;
    if is_brief {
        return programs(root, &["bench", "sdk_echo", "bare_echo"]);
    }
    programs(root, &["bench"])?;
    let mut cargo = crate::cargo();
    run(cargo.args(["build", "--locked", "--profile", "rival", "--package", "rivals", "--bins"]))
}

/// Returns the arguments that make cargo use the profile for a release build. They are empty if the repository has no profile for this
/// compiler.
fn arguments(root: &Path) -> Result<Vec<String>> {
    let file = file(root)?;
    if !file.exists() {
        return Ok(Vec::new());
    }
    Ok(vec!["--config".into(), config("profile-use", &named_by_contents(root, &file)?, &[NO_WARNINGS])?])
}

/// Says so if the profile does not fit this binary. The names of functions contain a hash of their crate's version, features and
/// dependencies, so that after a change of any of these the compiler finds nothing about the crate's functions in the profile.
fn check(root: &Path, wharf: &Path) -> Result<()> {
    let file = file(root)?;
    if !file.exists() || cfg!(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))) {
        return Ok(());
    }
    let hash =
        hash_of(CRATE, &fs::read(&file)?).with_context(|| format!("{} does not name {CRATE}", file.display()))?;
    if !Command::new("grep").args(["-qF", &format!("{hash}{CRATE}")]).arg(wharf).status()?.success() {
        say(
            "the profile does not fit this wharf, because the dependencies of its crates have changed since it was written: a small call \
             takes a third longer; `cargo xtask bench --profile` (22 minutes on two cores) writes it again",
        );
    }
    Ok(())
}

/// Returns the hash of a crate in the first name of a function that contains the crate, as in `CsbBssxyPH5wZ_11wharf_serve`.
fn hash_of(name: &str, profile: &[u8]) -> Option<String> {
    let at = profile.windows(name.len()).position(|window| window == name.as_bytes())?;
    let before = profile.get(..at)?;
    let length = before.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let word = str::from_utf8(before.get(at - length..)?).ok()?;
    word.rfind("Cs").and_then(|begin| word.get(begin..)).map(str::to_owned)
}

/// Copies a profile to a path that contains a hash of its contents, and returns that path: cargo builds again when the flags of the
/// compiler change, and does not read the file.
fn named_by_contents(root: &Path, file: &Path) -> Result<PathBuf> {
    let contents = fs::read(file)?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&contents);
    let folder = root.join("target/profiles");
    let named = folder.join(format!("{:016x}.profdata", hasher.finish()));
    if !named.exists() {
        fs::create_dir_all(&folder)?;
        // Renamed, so that no other command sees half of it.
        let unfinished = folder.join(format!("unfinished-{}", std::process::id()));
        fs::write(&unfinished, contents)?;
        fs::rename(unfinished, &named)?;
    }
    Ok(named)
}

/// Builds wharf with these settings of cargo (`release` or `shipped`) so that it counts, runs the calls of `bench --train`, and writes the
/// profile.
fn count(root: &Path, settings: &str, profile: &Path) -> Result<()> {
    let tool = profdata()?;
    guests()?;
    programs(root, &["bench", "sdk_echo", "bare_echo"])?;
    let (counts, target) = (root.join("target/counts"), root.join("target/counting"));
    say("building a wharf that counts what it executes (as long as any first build)");
    let mut counting = build_with(settings, &[]);
    counting.arg("--target-dir").arg(&target);
    run(counting.arg("--config").arg(config("profile-generate", &counts, &["--cfg=wharf_counts"])?))?;
    // Build scripts and macros have counted too, and what they execute is not what calls execute.
    if counts.exists() {
        fs::remove_dir_all(&counts)?;
    }
    say("counting (about half a minute)");
    run(Command::new(root.join("target/release/bench")).arg("--train").arg(target.join(settings).join("wharf")))?;
    if let Some(folder) = profile.parent() {
        fs::create_dir_all(folder)?;
    }
    run(Command::new(tool).args(["merge", "--sparse", "--output"]).arg(profile).arg(&counts))
}

/// Writes the profile for release builds.
pub fn write(root: &Path) -> Result<()> {
    let file = file(root)?;
    count(root, "release", &file)?;
    say(&format!("wrote {} ({:.1} MB)", file.display(), fs::metadata(&file)?.len() as f64 / 1e6));
    Ok(())
}

/// Builds the binary that is packaged, with a profile of its own: its functions have other names, because its crates are optimised
/// differently.
pub fn shipped(root: &Path) -> Result<()> {
    let profile = root.join("target/counts.profdata");
    if env::consts::ARCH == "x86_64" && cfg!(target_os = "linux") {
        count(root, "shipped", &profile)?;
        say("building target/shipped/wharf (10 to 25 minutes on two cores; most of that is one long step)");
        let used = config("profile-use", &profile, &[NO_WARNINGS])?;
        return run(build_with("shipped", &[]).arg("--config").arg(used));
    }
    guests()?;
    say("building target/shipped/wharf (8 to 11 minutes on two cores; the last five are one long step)");
    run(&mut build_with("shipped", &[]))
}

/// Returns the path of `llvm-profdata`, which is a component of rustup.
fn profdata() -> Result<PathBuf> {
    let tool = toolchain::libraries(TARGET)?.join("bin/llvm-profdata");
    if !tool.exists() {
        say("adding the component llvm-tools");
        run(Command::new("rustup").args(["component", "add", "llvm-tools"]))?;
    }
    if !tool.exists() {
        bail!("there is no {}; install the component llvm-tools of Rust", tool.display());
    }
    Ok(tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_crate_is_found() {
        for (profile, expected) in [
            (
                &b"\xff\0_RINvNtCsdGb51BYQAik_10tokio_utilNtCsbBssxyPH5wZ_11wharf_serve9transport"[..],
                Some("CsbBssxyPH5wZ"),
            ),
            (b"_11wharf_serve", None),
            (b"_RNvCs1_5other", None),
        ] {
            assert_eq!(hash_of(CRATE, profile).as_deref(), expected);
        }
    }
}
