//! `cargo xtask check search`: evaluates the tool search, which clients with a limited number of tools use, on the tools of third-party servers.

use std::{path::Path, process::Command};

use anyhow::Result;

use crate::{
    installed, run,
    tree::{built, prepare},
};

pub fn check(root: &Path) -> Result<()> {
    let (source, target) = (root.join("tests/search"), root.join("target/search"));
    installed::npm(&source, &target.join("npm"))?;
    installed::python(&source.join("requirements.txt"), &target.join("python"))?;
    prepare(&["search"])?;
    run(&mut Command::new(built("search")))
}
