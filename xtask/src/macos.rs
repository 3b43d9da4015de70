//! `cargo xtask check macos`: checks on any system that wharf compiles for macOS, by running clippy for its targets. Nothing is linked or run.

use std::path::Path;

use anyhow::Result;

use crate::{c, run, say, tree::add_target};

/// The targets by Rust's name and by Zig's.
const TARGETS: [(&str, &str); 2] = [("aarch64-apple-darwin", "aarch64-macos"), ("x86_64-apple-darwin", "x86_64-macos")];

/// `rest`: the arguments of the command.
pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    let brief = rest.iter().any(|argument| argument == "--brief");
    let wanted = if brief { 1 } else { TARGETS.len() };
    let mut arguments = vec!["clippy", "--locked", "--package", "wharf"];
    // Build scripts ask Xcode for the path of the SDK unless this variable is set. The C compiler needs no SDK, so any folder will do.
    let mut environment = vec![("SDKROOT".to_owned(), root.join("target/languages/c"))];
    for (target, zig_target) in TARGETS.into_iter().take(wanted) {
        add_target(target)?;
        environment.extend(c::compiler(root, target, zig_target)?);
        arguments.extend(["--target", target]);
    }
    arguments.extend(["--", "--deny", "warnings"]);
    say(if brief {
        "checking wharf for macOS, on one processor"
    } else {
        "checking wharf for macOS, on both processors"
    });
    let mut cargo = crate::cargo();
    run(cargo.args(&arguments).envs(environment))
}
