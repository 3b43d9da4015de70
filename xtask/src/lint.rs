//! Compiles the workspace's own crates with clippy. `cargo clippy` only checks, so everything that the workspace depends on would be compiled
//! once more for it; here the linter makes the programs that are tested.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, ensure};

use crate::{
    root,
    wrapper::{self, Call},
};

/// The environment variable that makes this program act as the wrapper of rustc.
pub const WRAPPER: &str = "WHARF_LINT_WRAPPER";
/// The linter, a program that takes the place of rustc.
const LINTER: &str = "clippy-driver";

/// Lints and compiles if cargo started this program as the wrapper of rustc; otherwise returns `None`.
pub fn compile_if_asked() -> Option<ExitCode> {
    let call = Call::of(WRAPPER)?;
    // Next to rustc, as rustup installs it. It takes the arguments of rustc. Where it is not installed, rustc compiles alone; what needs the
    // linter asks for it by `require`.
    let linter = Path::new(&call.rustc).with_file_name(LINTER);
    if linter.is_absolute() && !linter.is_file() {
        return Some(wrapper::run(Command::new(&call.rustc).args(&call.arguments)));
    }
    Some(wrapper::run(Command::new(linter).arg(&call.rustc).args(&call.arguments)))
}

/// Fails if the toolchain has no linter.
pub fn require() -> Result<()> {
    let ended = Command::new(LINTER).arg("--version").output();
    ensure!(ended.is_ok_and(|output| output.status.success()), "this needs Rust's linter: rustup component add clippy");
    Ok(())
}

/// Makes cargo use the linter as the compiler of the workspace's own crates.
pub fn compile_with(cargo: &mut Command) -> Result<()> {
    wrapper::wrap(cargo, &copy()?, WRAPPER);
    Ok(())
}

/// Returns the path of a copy of this program. Cargo builds this program too, and would replace it while it runs.
pub fn copy() -> Result<PathBuf> {
    let (own, copy) = (env::current_exe()?, root().join("target/xtask/wrapper"));
    let program = fs::read(&own).with_context(|| own.display().to_string())?;
    if fs::read(&copy).ok().as_ref() != Some(&program) {
        let (folder, partial) = (root().join("target/xtask"), copy.with_extension("partial"));
        fs::create_dir_all(folder)?;
        fs::copy(&own, &partial)?;
        fs::rename(&partial, &copy)?;
    }
    Ok(copy)
}
