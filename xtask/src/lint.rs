//! Compiles with clippy, and denies its warnings. `cargo clippy` only checks, so everything that the workspace depends on would be compiled
//! once more for it; here the linter makes the programs that are tested.
//!
//! cargo calls this program as `RUSTC_WORKSPACE_WRAPPER` for the workspace's own crates, and the program calls `clippy-driver`, which takes
//! the arguments of rustc.

use std::{
    env,
    ffi::OsString,
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::Result;

/// The environment variable that makes this program act as the wrapper of rustc.
const WRAPPER: &str = "WHARF_LINT_WRAPPER";

/// Lints and compiles if cargo started this program as the wrapper of rustc; otherwise returns `None`.
pub fn compile_if_asked() -> Option<ExitCode> {
    env::var_os(WRAPPER)?;
    let mut arguments = env::args_os().skip(1);
    let rustc = arguments.next()?;
    let rest: Vec<OsString> = arguments.collect();
    // Next to rustc, as rustup installs it.
    let mut command = Command::new(Path::new(&rustc).with_file_name("clippy-driver"));
    command.arg(&rustc).args(&rest);
    // It is not for queries about the compiler itself, which name no crate.
    if rest.iter().any(|argument| argument == "--crate-name") {
        command.args(["--deny", "warnings"]);
    }
    let ended = command.status().ok()?;
    Some(ExitCode::from(u8::try_from(ended.code().unwrap_or(1)).unwrap_or(1)))
}

/// Runs cargo with the linter as the compiler of the workspace's own crates.
pub fn cargo(arguments: &[&str]) -> Result<()> {
    crate::run(crate::cargo_command(arguments)?.env("RUSTC_WORKSPACE_WRAPPER", env::current_exe()?).env(WRAPPER, "1"))
}
