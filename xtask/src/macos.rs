//! `cargo xtask macos`: checks that wharf compiles for macOS, as far as that can be known on another system. Nothing is linked or run.

use std::path::Path;

use anyhow::Result;

use crate::{add_target, c, cargo_with, say};

/// Rust's names of the targets, and Zig's.
const TARGETS: [(&str, &str); 2] = [("aarch64-apple-darwin", "aarch64-macos"), ("x86_64-apple-darwin", "x86_64-macos")];

pub fn check(root: &Path) -> Result<()> {
    // In the same profile as everything else, so that build scripts and macros are compiled once for all.
    let mut arguments = vec!["clippy", "--locked", "--release", "--package", "wharf"];
    // Crates ask Xcode where its kit is unless they are told. There is none, and the compiler does without.
    let mut environment = vec![("SDKROOT".to_owned(), root.join("target/languages/c"))];
    for (target, zig_target) in TARGETS {
        add_target(target)?;
        environment.extend(c::compiler(root, target, zig_target)?);
        arguments.extend(["--target", target]);
    }
    arguments.extend(["--", "--deny", "warnings"]);
    say("checking wharf for macOS, on both processors");
    cargo_with(&arguments, &environment)
}
