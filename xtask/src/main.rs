//! The project's own commands. `cargo xtask` lists them.
//!
//! Everything a fresh machine needs beyond Rust itself is set up here, so that one command is enough.

#![expect(clippy::disallowed_methods, reason = "the project's own commands work on its files")]

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};
use cargo_metadata::MetadataCommand;

mod adapted;
mod c;
mod conformance;
mod deny;
mod fuzz;
mod installed;
mod languages;
mod macos;
mod others;
mod package;
mod search;
mod service;
mod slots;
mod toolchain;

const USAGE: &str = "\
cargo xtask build        the release binary at target/release/wharf, every plugin at target/plugins/; [PLUGIN] that is partly in C
                         (sqlite) besides; that needs Python 3
cargo xtask demo         shows the main job, with a real MCP client; --serve keeps the server running
cargo xtask test         formats, lints, builds and runs all tests that need nothing but Rust
cargo xtask conformance  drives wharf with the official conformance suite and other clients; needs npm and Python 3
cargo xtask dropin       asks the reference servers and the plugins that take their place the same; --timing; needs npm, Python 3
cargo xtask adapted      serves what others compiled to WebAssembly; --brief for one of each kind; needs Python 3
cargo xtask clients      drives wharf with clients of many frameworks; --brief for a few; needs npm and Python 3
cargo xtask languages    makes plugins in every language as authors do, and tests them; --only LANG, --abilities; needs npm and Python 3
cargo xtask login        logs in with official clients at an identity provider; --only TEXT; needs npm and Python 3
cargo xtask search       looks for tools among hundreds of other servers, in the catalog for limited clients; needs npm, Python 3
cargo xtask service      the unit under systemd and the image in a container; --unit, --image; needs root on Debian
cargo xtask slots        that nothing of one call reaches the next: [CALLS], --languages with guests of `cargo xtask languages`, --swap with
                         memory that is swapped out, which needs root
cargo xtask bench        ratios beside the official SDK without a sandbox, and beside bare servers; --brief, --full, --micro
cargo xtask fuzz         fuzzes what strangers send: [TARGET] [SECONDS], a minute for all if not said; needs a C++ compiler
cargo xtask soak         everything hostile at once for [SECONDS], a minute if not said, beside clients that want to work
cargo xtask package      a small binary at target/shipped/wharf, and archive, npm, wheel, mcpb and deb of it at target/dist/; --binary FILE for
                         another one, --only KIND, --check uses each; needs npm, Python 3
cargo xtask macos        checks that wharf compiles for macOS; needs Python 3
cargo xtask deny         licences, bans and sources of all dependencies, by cargo-deny; advisories where they can be fetched
cargo xtask contract     docs/contract.md from wit/
cargo xtask tidy         the rules of the house that no compiler checks
cargo xtask toolchain    the name of the Rust toolchain that these commands use, installed if the machine's is too old
cargo xtask guests       only the plugins";

const TARGET: &str = "wasm32-wasip2";

fn main() -> ExitCode {
    if let Some(ended) = fuzz::compile_if_asked() {
        return ended;
    }
    let arguments: Vec<String> = env::args().skip(1).collect();
    if !arguments.is_empty() {
        match toolchain::again_if_too_old(&root()) {
            Ok(None) => {}
            Ok(Some(ended)) => return ended,
            Err(error) => {
                say(&format!("error: {error:#}"));
                return ExitCode::FAILURE;
            }
        }
    }
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", [].as_slice()),
    };
    let done = match command {
        "build" => build(rest),
        "guests" => guests(),
        "demo" => demo(rest),
        "test" => test(),
        "conformance" => conformance::check(&root()),
        "dropin" => others::dropin(&root(), rest),
        "adapted" => adapted::check(&root(), rest),
        "clients" => others::clients(&root(), rest),
        "languages" => languages::check(&root(), rest),
        "login" => others::login(&root(), rest),
        "search" => search::check(&root()),
        "service" => service::check(&root(), rest),
        "slots" => slots::check(&root(), rest),
        "bench" => bench(rest),
        "fuzz" => fuzz::run(&root(), rest),
        "soak" => soak(rest),
        "macos" => macos::check(&root()),
        "package" => package::run_command(&root(), rest),
        "deny" => deny::check(&root(), true),
        "contract" => tidy(&["contract"]),
        "tidy" => tidy(&[]),
        "toolchain" => toolchain::print(),
        _ => {
            say(USAGE);
            return if command == "help" { ExitCode::SUCCESS } else { ExitCode::from(2) };
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

pub fn say(text: &str) {
    use std::io::Write;
    // If stderr is closed, there is nowhere left to say it.
    writeln!(std::io::stderr(), "{text}").ok();
}

fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Runs cargo.
fn cargo(arguments: &[&str]) -> Result<()> {
    cargo_with(arguments, &[])
}

/// Runs cargo, with more in the environment. Every build of the host has the plugins in itself, since cargo would build it anew
/// whenever that changed.
fn cargo_with(arguments: &[&str], more: &[(String, PathBuf)]) -> Result<()> {
    let mut cargo = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    let more = more.iter().map(|(name, value)| (name, value));
    run(cargo.args(arguments).envs(more).env("WHARF_BUILTINS", plugins()))
}

/// The rules of the house that no compiler checks. What reads Rust and WIT for them is compiled only when it is wanted.
fn tidy(arguments: &[&str]) -> Result<()> {
    cargo(&[&["run", "--quiet", "--locked", "--package", "tidy", "--"], arguments].concat())
}

/// Where the plugins of the repository are, once they are built.
fn plugins() -> PathBuf {
    root().join("target/plugins")
}

fn run(command: &mut Command) -> Result<()> {
    run_in(&root(), command)
}

fn run_in(folder: &Path, command: &mut Command) -> Result<()> {
    let line = format!("{command:?}").replace('"', "");
    let status = command.current_dir(folder).status().with_context(|| format!("cannot run {line}"))?;
    if !status.success() {
        bail!("{line}: {status}");
    }
    Ok(())
}

fn build(plugins: &[String]) -> Result<()> {
    let plugins: Vec<&str> = plugins.iter().map(String::as_str).collect();
    c::guests(&root(), &plugins)?;
    prepare(&[])
}

/// The plugins that the demo shows. They are always built by themselves: together with others, cargo would choose more features of
/// what they share, and what the demo compiled would be compiled once more for everything else.
const SHOWN: [&str; 4] = ["echo", "files", "hello", "time"];

/// Builds every plugin of the repository that Rust alone builds, and puts it at `target/plugins/<name>.wasm`.
fn guests() -> Result<()> {
    let (shown, others): (Vec<String>, Vec<String>) =
        guest_packages(false)?.into_iter().partition(|name| SHOWN.contains(&name.as_str()));
    build_guests(&shown, &[])?;
    build_guests(&others, &[])
}

/// Builds plugins, with more in the environment.
fn build_guests(packages: &[String], more: &[(String, PathBuf)]) -> Result<()> {
    add_target(TARGET)?;
    say(&format!("building plugins for {TARGET}: {}", packages.join(", ")));
    let mut arguments =
        vec!["build", "--locked", "--profile", "guest", "--target", TARGET, "--target-dir", "target/guests"];
    for package in packages {
        arguments.extend(["--package", package]);
    }
    cargo_with(&arguments, more)?;
    let from = root().join("target/guests").join(TARGET).join("guest");
    let to = plugins();
    std::fs::create_dir_all(&to)?;
    for package in packages {
        let file = from.join(format!("{}.wasm", package.replace('-', "_")));
        let place = to.join(format!("{package}.wasm"));
        // What is not new stays as it is, so that nothing that has it in itself is built anew.
        if std::fs::read(&place).ok() == Some(std::fs::read(&file).with_context(|| file.display().to_string())?) {
            continue;
        }
        // The copy is made under another name and then renamed, because a running wharf may be watching the folder.
        let partial = to.join(format!("{package}.partial"));
        std::fs::copy(&file, &partial).with_context(|| format!("{} was not built", file.display()))?;
        std::fs::rename(&partial, &place)?;
    }
    Ok(())
}

/// The plugins: the members of the workspace that are not default members, and are built for wasm. Those that are partly in C say
/// so in their manifest.
fn guest_packages(in_c: bool) -> Result<Vec<String>> {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec()?;
    let native = metadata.workspace_default_members.clone();
    let guests = metadata.workspace_packages().into_iter().filter(|package| !native.contains(&package.id));
    let guests = guests.filter(|package| package.metadata.pointer("/guest/compiler").is_some() == in_c);
    let mut guests: Vec<String> = guests.map(|package| package.name.to_string()).collect();
    guests.sort();
    Ok(guests)
}

/// Adds a target if rustc lacks it.
fn add_target(target: &str) -> Result<()> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().context("rustc is not installed")?;
    let sysroot = PathBuf::from(String::from_utf8(sysroot.stdout)?.trim());
    if sysroot.join("lib/rustlib").join(target).join("lib").exists() {
        return Ok(());
    }
    say(&format!("adding the target {target}"));
    run(Command::new("rustup").args(["target", "add", target])).with_context(|| {
        format!("the target {target} is missing; install it the way Rust was installed on this machine")
    })
}

fn demo(rest: &[String]) -> Result<()> {
    build_guests(&SHOWN.map(String::from), &[])?;
    native(&["demo"])?;
    run(Command::new(root().join("target/release/demo")).arg(format!("--plugins={}", SHOWN.join(","))).args(rest))
}

fn soak(rest: &[String]) -> Result<()> {
    prepare(&["soak"])?;
    run(Command::new(root().join("target/release/soak")).args(rest))
}

fn bench(rest: &[String]) -> Result<()> {
    if rest.iter().any(|argument| argument == "--micro") {
        guests()?;
        return cargo(&["bench", "--locked", "--bench", "micro"]);
    }
    prepare(&["bench", "sdk_echo", "bare_echo"])?;
    // Plugins in other languages are measured if `cargo xtask languages` has made them.
    run(Command::new(root().join("target/release/bench")).args(rest))
}

/// Builds every plugin, wharf, and the further binaries that a command runs.
fn prepare(more: &[&str]) -> Result<()> {
    guests()?;
    native(more)
}

/// Builds wharf, and the further binaries that a command runs. They are chosen by `--bin` and not by `--package`:
/// for one package alone, cargo would choose other features of shared dependencies, so that wasmtime is compiled twice and what
/// is tested is not what is shipped.
fn native(more: &[&str]) -> Result<()> {
    say(
        "building target/release/wharf (about 6 minutes the first time, on two cores; most of it is the compiler of plugins)",
    );
    let mut arguments = vec!["build", "--locked", "--release", "--bin", "wharf"];
    arguments.extend(more.iter().flat_map(|bin| ["--bin", bin]));
    cargo(&arguments)
}

/// Builds the binary that is packaged.
fn shipped() -> Result<()> {
    guests()?;
    say("building target/shipped/wharf (8 to 11 minutes on two cores; the last five are one long step)");
    cargo(&["build", "--locked", "--profile", "shipped", "--bin", "wharf"])
}

fn test() -> Result<()> {
    cargo(&["fmt", "--all", "--check"]).context("run `cargo fmt --all`")?;
    tidy(&[])?;
    deny::check(&root(), false)?;
    prepare(&[])?;
    cargo(&["clippy", "--locked", "--release", "--workspace", "--all-targets", "--", "--deny", "warnings"])?;
    // What plugins do by themselves needs no sandbox to be tested, and little of it has to be compiled.
    let plugins = ["fetch", "files", "git", "memory", "sequentialthinking", "sqlite", "time", "wharf-sdk"]
        .map(|plugin| ["-p", plugin]);
    cargo(&[&["test", "--locked", "--lib", "--features", "wharf-sdk/http"], plugins.concat().as_slice()].concat())?;
    cargo(&["test", "--locked", "--release"])
}
