//! `cargo xtask check packs`: makes packages of plugins as their authors do, and installs and calls them as users do.

use std::{path::Path, process::Command};

use anyhow::{Context, Result};

use crate::{
    installed, run,
    tree::{plugins, prepare, wharf},
};

pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    prepare(&[])?;
    let (source, target) = (root.join("tests/packs"), root.join("target/packs"));
    installed::npm(&source, &target)?;
    let mut command = Command::new("node");
    command.arg(source.join("packs.mjs")).arg("--bin").arg(wharf());
    command.arg("--plugins").arg(plugins()).arg("--modules").arg(target.join("node_modules")).args(rest);
    run(&mut command).context("a package does not work, or there is no Node.js 20 or newer, npm or Python 3")
}
