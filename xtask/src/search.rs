//! Looks for tools of other people's servers in the catalog for clients that are better off with few.

use std::{path::Path, process::Command};

use anyhow::Result;

use crate::{installed, prepare, run};

pub fn check(root: &Path) -> Result<()> {
    let (source, target) = (root.join("tests/search"), root.join("target/search"));
    installed::npm(&source, &target.join("npm"))?;
    installed::python(&source.join("requirements.txt"), &target.join("python"))?;
    prepare(&["search"])?;
    run(&mut Command::new(root.join("target/release/search")))
}
