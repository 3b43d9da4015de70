//! Programs of Debian: those that `cargo xtask test` has unpacked into target/debian, or the machine's own.

use tokio::process::Command;

use crate::target;

/// Returns the command that starts a program. `path`: where its package has it.
pub fn program(name: &str, path: &str) -> Command {
    let unpacked = target().join("debian");
    let own = unpacked.join(path);
    if !own.exists() {
        return Command::new(name);
    }
    let mut command = Command::new(own);
    command.env("LD_LIBRARY_PATH", unpacked.join("usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH)));
    command
}
