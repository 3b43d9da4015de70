//! `cargo xtask check deny`: checks wharf's dependencies with cargo-deny, by the rules in `deny.toml`. Licences, sources and bans are also in
//! `cargo xtask test`, without it.

use std::{path::Path, process::Command};

use anyhow::{Result, ensure};

use crate::{run_in, say};

pub fn check(root: &Path) -> Result<()> {
    let installed = Command::new("cargo-deny").arg("--version").output().is_ok_and(|output| output.status.success());
    ensure!(installed, "cargo-deny is not installed: cargo install --locked cargo-deny");
    // These checks need the network only where cargo itself needs it.
    run_in(root, Command::new("cargo-deny").args(["check", "bans", "licenses", "sources"]))?;
    if run_in(root, Command::new("cargo-deny").args(["check", "advisories"])).is_err() {
        say("there are advisories, or they could not be fetched: see above");
    }
    Ok(())
}
