//! `cargo xtask bench --fixed`: compares this build with that of the commit that `tests/bench/history.tsv` names, and with the best that each
//! row ever was.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    run, say,
    tree::{TARGET, add_target},
};

const HISTORY: &str = "tests/bench/history.tsv";
/// What the line of the history begins with that names the commit.
const NAMES_COMMIT: &str = "# fixed build: ";

/// Builds the fixed commit with its own lock file and this toolchain, unless that was done before. Returns its binary and the folder with
/// its plugins.
fn build(root: &Path) -> Result<(PathBuf, PathBuf)> {
    let history = fs::read_to_string(root.join(HISTORY))?;
    let commit = history.lines().find_map(|line| line.strip_prefix(NAMES_COMMIT));
    let commit = commit.with_context(|| format!("{HISTORY} has no line `{NAMES_COMMIT}...`"))?;
    let folder = root.join("target/fixed").join(commit);
    let (source, target, plugins) = (folder.join("source"), folder.join("target"), folder.join("plugins"));
    let wharf = target.join("release/wharf");
    if wharf.exists() && plugins.join("echo.wasm").exists() {
        return Ok((wharf, plugins));
    }
    if !source.exists() {
        fs::create_dir_all(&folder)?;
        run(Command::new("git").args(["clone", "--quiet", "--no-checkout", "--shared", "."]).arg(&source))?;
        run(Command::new("git").arg("-C").arg(&source).args(["checkout", "--quiet", commit]))
            .with_context(|| format!("{commit} is not in this repository; fetch its whole history"))?;
    }
    add_target(TARGET)?;
    say(&format!("building wharf at {commit} (as long as any release build)"));
    let cargo = || {
        let mut cargo = crate::cargo();
        cargo.arg("build").arg("--locked").arg("--manifest-path").arg(source.join("Cargo.toml"));
        cargo.arg("--target-dir").arg(&target).env_remove("WHARF_BUILTINS");
        cargo
    };
    run(cargo().args(["--profile", "guest", "--target", TARGET, "--package", "echo"]))?;
    run(cargo().args(["--release", "--bin", "wharf"]))?;
    fs::create_dir_all(&plugins)?;
    fs::copy(target.join(TARGET).join("guest/echo.wasm"), plugins.join("echo.wasm"))?;
    Ok((wharf, plugins))
}

/// Runs the comparison. `rest`: the other arguments of the bench; `--record` adds the figures to the history.
pub fn compare(root: &Path, rest: &[String]) -> Result<()> {
    let (wharf, plugins) = build(root)?;
    let rest = rest.iter().filter(|argument| *argument != "--fixed");
    run(Command::new(root.join("target/release/bench"))
        .arg("--before")
        .arg(wharf)
        .arg("--before-plugins")
        .arg(plugins)
        .arg("--history")
        .arg(root.join(HISTORY))
        .args(rest))
}
