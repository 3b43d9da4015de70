//! Cross-compiles C for plugins that are partly in C, and for macOS. The compiler is `zig cc` from PyPI, which authors of plugins in C use
//! too.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    installed,
    tree::{TARGET, build_guests, guest_packages},
};

/// A wrapper script for `zig cc`. Build scripts pass Rust's name of the target, which Zig does not know, and for macOS the path of an
/// Apple SDK, which Zig includes; the script removes both.
const COMPILER: &str = r#"#!/bin/sh
left_out=
for argument; do
    shift
    if [ "$left_out" ]; then left_out=; continue; fi
    case $argument in
        --target=* | -mmacosx-version-min=*) ;;
        -arch | -isysroot) left_out=1 ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "$(dirname "$0")/../tools/bin/python" -m ziglang cc -target ZIG_TARGET "$@"
"#;

const ARCHIVER: &str = r#"#!/bin/sh
exec "$(dirname "$0")/../tools/bin/python" -m ziglang ar "$@"
"#;

/// Builds plugins that are partly in C.
pub fn guests(root: &Path, plugins: &[&str]) -> Result<()> {
    if plugins.is_empty() {
        return Ok(());
    }
    let known = guest_packages(true)?;
    if let Some(unknown) = plugins.iter().find(|plugin| !known.iter().any(|known| known == *plugin)) {
        bail!("{unknown} is not a plugin that is partly in C; those are: {}", known.join(", "));
    }
    let environment = compiler(root, TARGET, "wasm32-wasi")?;
    let plugins: Vec<String> = plugins.iter().map(|plugin| (*plugin).to_owned()).collect();
    build_guests(&plugins, &environment).context("the C code could not be compiled")
}

/// Installs a C compiler for `target`, which Zig calls `zig_target`, and returns the environment variables by which build scripts find it.
pub fn compiler(root: &Path, target: &str, zig_target: &str) -> Result<[(String, PathBuf); 2]> {
    let folder = root.join("target/languages");
    installed::python(&root.join("tests/languages/requirements.txt"), &folder.join("tools"))?;
    let programs = folder.join("c");
    fs::create_dir_all(&programs)?;
    let program = |name: String, text: &str| -> Result<PathBuf> {
        let file = programs.join(name);
        fs::write(&file, text)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        Ok(file)
    };
    let suffix = target.replace('-', "_");
    Ok([
        (format!("CC_{suffix}"), program(format!("cc-{zig_target}"), &COMPILER.replace("ZIG_TARGET", zig_target))?),
        (format!("AR_{suffix}"), program("ar".to_owned(), ARCHIVER)?),
    ])
}
