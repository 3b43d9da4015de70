//! `cargo xtask macos`: checks that wharf compiles for macOS, as far as that can be known on another system. Nothing is linked or run.

use std::{env, path::Path, process::Command};

use anyhow::Result;

use crate::{add_target, c, plugins, run, say};

/// Rust's names of the targets, and Zig's.
const TARGETS: [(&str, &str); 2] = [("aarch64-apple-darwin", "aarch64-macos"), ("x86_64-apple-darwin", "x86_64-macos")];

pub fn check(root: &Path) -> Result<()> {
    // In the same profile as everything else, so that build scripts and macros are compiled once for all.
    let mut arguments = vec!["clippy", "--locked", "--release", "--package", "wharf"];
    let mut environment = Vec::new();
    for (target, zig_target) in TARGETS {
        add_target(target)?;
        environment.extend(c::compiler(root, target, zig_target)?);
        arguments.extend(["--target", target]);
    }
    say("checking wharf for macOS, on both processors");
    let mut cargo = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    cargo.args(arguments).args(["--", "--deny", "warnings"]).envs(environment).env("WHARF_BUILTINS", plugins());
    // Crates ask Xcode where its kit is unless they are told. There is none, and the compiler does without.
    run(cargo.env("SDKROOT", root.join("target/languages/c")))
}
