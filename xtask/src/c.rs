//! Builds plugins that are partly in C. The compiler is the one that authors of plugins in C have, and comes from PyPI.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{build_guests, guest_packages, installed};

/// What the crates that compile C give the compiler is for Rust's name of the target, which Zig does not know.
const COMPILER: &str = r#"#!/bin/sh
for argument; do
    shift
    case $argument in --target=*) ;; *) set -- "$@" "$argument" ;; esac
done
exec "$(dirname "$0")/../tools/bin/python" -m ziglang cc -target wasm32-wasi "$@"
"#;

const ARCHIVER: &str = r#"#!/bin/sh
exec "$(dirname "$0")/../tools/bin/python" -m ziglang ar "$@"
"#;

/// Builds these plugins.
pub fn guests(root: &Path, plugins: &[&str]) -> Result<()> {
    if plugins.is_empty() {
        return Ok(());
    }
    let known = guest_packages(true)?;
    if let Some(unknown) = plugins.iter().find(|plugin| !known.iter().any(|known| known == *plugin)) {
        bail!("{unknown} is no plugin that is partly in C: {}", known.join(", "));
    }
    let folder = root.join("target/languages");
    installed::python(&root.join("tests/languages/requirements.txt"), &folder.join("tools"))?;
    let program = |name: &str, text: &str| -> Result<PathBuf> {
        let file = folder.join("c").join(name);
        fs::create_dir_all(folder.join("c"))?;
        fs::write(&file, text)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        Ok(file)
    };
    let environment = [
        ("CC_wasm32_wasip2".to_owned(), program("cc", COMPILER)?),
        ("AR_wasm32_wasip2".to_owned(), program("ar", ARCHIVER)?),
    ];
    let plugins: Vec<String> = plugins.iter().map(|plugin| (*plugin).to_owned()).collect();
    build_guests(&plugins, &environment).context("the parts in C could not be compiled")
}
