//! `cargo xtask deny`: what wharf depends on, by cargo-deny and `deny.toml`.

use std::{path::Path, process::Command};

use anyhow::{Result, bail};

use crate::{run_in, say};

/// `needed`: whether it is an error that cargo-deny is not installed.
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
    // Of a network, these need no more than cargo itself does.
    run_in(root, Command::new("cargo-deny").args(["check", "bans", "licenses", "sources"]))?;
    if needed && run_in(root, Command::new("cargo-deny").args(["check", "advisories"])).is_err() {
        say("advisories were not checked, or there are some: see above");
    }
    Ok(())
}
