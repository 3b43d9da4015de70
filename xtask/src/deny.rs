//! `cargo xtask check deny`: checks wharf's dependencies with cargo-deny, by the rules in `deny.toml`.

use std::{path::Path, process::Command};

use anyhow::{Result, bail};

use crate::{run_in, say};

/// Runs the checks. If cargo-deny is not installed, that is an error if it is `needed`, and otherwise only reported.
pub fn check(root: &Path, needed: bool) -> Result<()> {
    let installed = Command::new("cargo-deny").arg("--version").output().is_ok_and(|output| output.status.success());
    if !installed {
        let how = "cargo-deny is not installed: cargo install --locked cargo-deny";
        if needed {
            bail!("{how}");
        }
        say(&format!("not checked: licences and bans of dependencies ({how})"));
        return Ok(());
    }
    // These checks need the network only where cargo itself needs it.
    run_in(root, Command::new("cargo-deny").args(["check", "bans", "licenses", "sources"]))?;
    if needed && run_in(root, Command::new("cargo-deny").args(["check", "advisories"])).is_err() {
        say("there are advisories, or they could not be fetched: see above");
    }
    Ok(())
}
