//! Compiles with clippy, and denies its warnings. `cargo clippy` only checks, so everything that the workspace depends on would be compiled
//! once more for it; here the linter makes the programs that are tested.

use std::{
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::Result;

use crate::wrapper::{self, Call};

/// The environment variable that makes this program act as the wrapper of rustc.
const WRAPPER: &str = "WHARF_LINT_WRAPPER";

/// Lints and compiles if cargo started this program as the wrapper of rustc; otherwise returns `None`.
pub fn compile_if_asked() -> Option<ExitCode> {
    let call = Call::of(WRAPPER)?;
    // Next to rustc, as rustup installs it. It takes the arguments of rustc.
    let mut command = Command::new(Path::new(&call.rustc).with_file_name("clippy-driver"));
    command.arg(&call.rustc).args(&call.arguments);
    // It is not for queries about the compiler itself, which name no crate.
    if call.has("--crate-name") {
        command.args(["--deny", "warnings"]);
    }
    Some(wrapper::run(&mut command))
}

/// Runs cargo with the linter as the compiler of the workspace's own crates.
pub fn cargo(arguments: &[&str]) -> Result<()> {
    crate::run(wrapper::wrap(&mut crate::cargo_command(arguments)?, WRAPPER)?)
}
