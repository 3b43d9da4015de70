//! This program as cargo's `RUSTC_WORKSPACE_WRAPPER`: cargo calls it in place of rustc for the workspace's own crates.

use std::{
    env,
    ffi::OsString,
    path::Path,
    process::{Command, ExitCode},
};

use crate::say;

/// A call of rustc by cargo.
pub struct Call {
    pub rustc: OsString,
    pub arguments: Vec<OsString>,
}

impl Call {
    /// Returns the call if cargo started this program on behalf of the command that set this environment variable.
    pub fn of(variable: &str) -> Option<Self> {
        env::var_os(variable)?;
        let mut arguments = env::args_os().skip(1);
        Some(Self { rustc: arguments.next()?, arguments: arguments.collect() })
    }

    /// Whether an argument is this one.
    pub fn has(&self, argument: &str) -> bool {
        self.arguments.iter().any(|one| one == argument)
    }
}

/// Runs a compiler, and returns its exit code.
pub fn run(compiler: &mut Command) -> ExitCode {
    match compiler.status() {
        Ok(ended) => ExitCode::from(u8::try_from(ended.code().unwrap_or(1)).unwrap_or(1)),
        Err(error) => {
            say(&format!("error: cannot run {}: {error}", compiler.get_program().display()));
            ExitCode::FAILURE
        }
    }
}

/// Makes cargo call `program`, a copy of this one, with this environment variable.
pub fn wrap<'a>(cargo: &'a mut Command, program: &Path, variable: &str) -> &'a mut Command {
    cargo.env("RUSTC_WORKSPACE_WRAPPER", program).env(variable, "1")
}
