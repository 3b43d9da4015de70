//! Chooses the Rust toolchain that wharf is compiled with. xtask itself compiles with an older Rust than wharf, so if the machine's Rust is
//! older than `rust-version` in Cargo.toml, xtask installs a newer one with rustup and leaves the machine's default unchanged.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};
use cargo_metadata::{MetadataCommand, semver::Version};

use crate::say;

/// Runs this program again with a Rust that can compile wharf, and returns its exit code. Returns `None` if the current one can.
pub fn again_if_too_old(root: &Path) -> Result<Option<ExitCode>> {
    let (needed, found) = (needed(root)?, found()?);
    if found >= needed {
        return Ok(None);
    }
    // rustup names a toolchain by its version.
    let toolchain = needed.to_string();
    if env::var_os("RUSTUP_TOOLCHAIN").is_some_and(|active| active == *toolchain) {
        bail!("the active toolchain is {toolchain}, but its rustc reports version {found}");
    }
    if !installed(&toolchain) {
        say(&format!(
            "wharf needs Rust {needed}, and this is {found}: installing the toolchain {toolchain} with rustup"
        ));
        let mut install = Command::new("rustup");
        install.args(["toolchain", "install", &toolchain, "--profile", "minimal"]);
        install.args(["--component", "clippy", "--component", "rustfmt"]);
        if !install.status().is_ok_and(|status| status.success()) {
            bail!(
                "wharf needs Rust {needed}, and this is {found}. Install it, for example by `rustup toolchain install {toolchain} \
                 --profile minimal --component clippy --component rustfmt`, and run this command again"
            );
        }
    }
    say(&format!("using the toolchain {toolchain}, since the active one is {found}"));
    let mut again = Command::new(env::current_exe().context("cannot find the path of this program")?);
    // Cargo passes its own path to programs that it runs. Without these variables, rustup's proxies choose the toolchain again.
    again.args(env::args_os().skip(1)).env("RUSTUP_TOOLCHAIN", &toolchain).env_remove("CARGO").env_remove("RUSTC");
    let status = again.status().context("cannot run this program again")?;
    Ok(Some(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)))
}

/// Prints the name of the toolchain in use, for scripts that prepare it further.
pub fn print() -> Result<()> {
    use std::io::Write;
    let active =
        env::var("RUSTUP_TOOLCHAIN").context("cargo was not started by rustup, so the toolchain has no name")?;
    writeln!(std::io::stdout(), "{active}").context("cannot print")
}

/// Returns the `rust-version` in Cargo.toml.
fn needed(root: &Path) -> Result<Version> {
    let metadata = MetadataCommand::new().current_dir(root).no_deps().exec()?;
    let wharf = metadata.packages.into_iter().find(|package| package.name.as_str() == "wharf");
    wharf.and_then(|package| package.rust_version).context("Cargo.toml of host/wharf has no `rust-version`")
}

/// Returns the version of the compiler that cargo would use.
pub fn found() -> Result<Version> {
    let output = Command::new("rustc").arg("--version").output().context("rustc is not installed")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().nth(1).and_then(|version| Version::parse(version).ok());
    let mut version = version.with_context(|| format!("`rustc --version` said {text:?}"))?;
    // A nightly or beta compiler counts as its version.
    version.pre = cargo_metadata::semver::Prerelease::EMPTY;
    Ok(version)
}

/// Returns the folder that the active compiler has for a target: its standard library and, for its own target, its tools.
pub fn libraries(target: &str) -> Result<PathBuf> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().context("rustc is not installed")?;
    Ok(Path::new(String::from_utf8(sysroot.stdout)?.trim()).join("lib/rustlib").join(target))
}

fn installed(toolchain: &str) -> bool {
    let listed = Command::new("rustup").args(["toolchain", "list"]).output();
    listed.is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().any(|line| line.starts_with(&format!("{toolchain}-")))
    })
}
