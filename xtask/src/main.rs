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
mod debian;
mod deny;
mod existing;
mod fixed;
mod fuzz;
mod installed;
mod languages;
mod lint;
mod macos;
mod others;
mod package;
mod packs;
mod pages;
mod profile;
mod replicas;
mod search;
mod service;
mod signatures;
mod slots;
mod toolchain;
mod wrapper;

const USAGE: &str = "\
cargo xtask build        builds the release binary at target/release/wharf and the plugins at target/plugins/; with `sqlite` also that
                         one, which is partly in C and needs Python 3
cargo xtask demo         demonstrates wharf with a real MCP client; --serve keeps the server running
cargo xtask test         formats, lints, builds and runs all tests that need nothing but Rust, a Redis server and a registry (Debian's are
                         unpacked if the machine has none)
cargo xtask conformance  drives wharf with the official conformance suite and other clients; needs npm and Python 3
cargo xtask dropin       compares the answers of the plugins with those of the reference servers that they replace; --timing; needs npm
                         and Python 3
cargo xtask adapted      serves third-party programs and components; --brief for one of each kind; needs Python 3
cargo xtask existing     runs existing MCP servers in Python and TypeScript as plugins; --brief for a few; needs npm and Python 3
cargo xtask clients      drives wharf with clients of many frameworks, and restarts it; --brief for a few; needs npm and
                         Python 3
cargo xtask agents       drives wharf with coding agents and a scripted model; --brief for two, --only NAME; needs npm
cargo xtask languages    makes plugins in every SDK language as authors do, and tests them; --brief, --only LANG, --abilities; needs npm and
                         Python 3
cargo xtask login        logs in with official clients at an identity provider; --only TEXT; needs npm and Python 3
cargo xtask search       evaluates the tool search on the tools of hundreds of other servers; needs npm and Python 3
cargo xtask replicas     loads three replicas behind nginx and HAProxy while they and Redis are killed, with official clients and many people;
                         --only load|clients|ratio|people; --brief: the load behind nginx, for a minute; needs Node.js, and Debian
                         or its programs; without --brief also npm and Python 3
cargo xtask service      tests the systemd unit and the container image; --unit, --image; needs root on Debian
cargo xtask signatures   verifies signatures by sigstore's own library, with a second opinion; --record keeps them; needs npm and Python 3
cargo xtask slots        checks that no data of one call reaches the next: [CALLS], --languages with guests of `cargo xtask languages`,
                         --swap with memory that is swapped out, which needs root
cargo xtask bench        compares wharf with the official SDK without a sandbox and with bare servers; --brief, --full, --micro, --cores;
                         --fixed with the build of one fixed commit and the best so far, --record adds that to tests/bench/history.tsv
cargo xtask fuzz         fuzzes the parsers of untrusted input: [TARGET] [SECONDS], by default a minute for all; needs a C++ compiler
cargo xtask soak         runs all hostile clients and plugins at once, next to well-behaved clients: [SECONDS], by default a minute
cargo xtask package      builds the binary that is packaged (see `shipped`) and packages it at target/dist/ (archive, npm, wheel, mcpb, deb);
                         --binary FILE packages that one, --only KIND, --check installs and uses each; needs npm and Python 3
cargo xtask packs        makes packages of plugins with `wharf pack`, installs and uses each; needs npm and Python 3
cargo xtask profile      writes the profile by which release builds are optimised, at tests/bench/profiles/; takes as long as three builds
cargo xtask shipped      builds the binary that is packaged, target/shipped/wharf, optimised by a profile that is made for it
cargo xtask macos        checks that wharf compiles for macOS; --brief for one of two processors; needs Python 3
cargo xtask deny         checks licences, bans and sources of all dependencies with cargo-deny, and advisories where they can be fetched
cargo xtask contract     generates docs/contract.md from wit/
cargo xtask tidy         checks project rules that the compiler does not check
cargo xtask toolchain    prints the name of the Rust toolchain that these commands use, and installs it if the machine's is too old
cargo xtask guests       builds only the plugins";

const TARGET: &str = "wasm32-wasip2";

fn main() -> ExitCode {
    if let Some(ended) = fuzz::compile_if_asked().or_else(lint::compile_if_asked) {
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
        "existing" => existing::check(&root(), rest),
        "clients" => others::clients(&root(), rest),
        "agents" => others::agents(&root(), rest),
        "languages" => languages::check(&root(), rest),
        "login" => others::login(&root(), rest),
        "search" => search::check(&root()),
        "replicas" => replicas::check(&root(), rest),
        "service" => service::check(&root(), rest),
        "signatures" => signatures::check(&root(), rest),
        "slots" => slots::check(&root(), rest),
        "bench" => bench(rest),
        "fuzz" => fuzz::run(&root(), rest),
        "soak" => soak(rest),
        "packs" => packs::check(&root(), rest),
        "profile" => profile::write(&root()),
        "shipped" => profile::shipped(&root()),
        "macos" => macos::check(&root(), rest),
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
    // If stderr is closed, the text cannot be shown.
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

/// Runs cargo with additional environment variables.
fn cargo_with(arguments: &[&str], more: &[(String, PathBuf)]) -> Result<()> {
    let more = more.iter().map(|(name, value)| (name, value));
    run(cargo_command(arguments)?.envs(more))
}

/// Returns a command of cargo. `WHARF_BUILTINS` is set for every command, because cargo rebuilds the host whenever that variable changes.
fn cargo_command(arguments: &[&str]) -> Result<Command> {
    let mut cargo = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    let (command, rest) = arguments.split_at(1);
    cargo.args(command);
    if rest.contains(&"--release") {
        cargo.args(profile::arguments(&root())?);
    }
    cargo.args(rest).env("WHARF_BUILTINS", plugins());
    Ok(cargo)
}

/// Runs the crate `tidy`. It is a program of its own, so that its parsers of Rust and WIT are compiled only when it is used.
fn tidy(arguments: &[&str]) -> Result<()> {
    cargo(&[&["run", "--quiet", "--locked", "--package", "tidy", "--"], arguments].concat())
}

/// Returns the folder that the repository's plugins are built into.
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

/// The plugins that the demo uses. They are always built in a cargo command of their own: together with others, cargo would enable more
/// features of shared dependencies, and compile them a second time.
const DEMO_PLUGINS: [&str; 4] = ["echo", "files", "hello", "time"];

/// Builds every plugin of the repository that needs no C compiler, as `target/plugins/<name>.wasm`.
fn guests() -> Result<()> {
    let (demo, others): (Vec<String>, Vec<String>) =
        guest_packages(false)?.into_iter().partition(|name| DEMO_PLUGINS.contains(&name.as_str()));
    build_guests(&demo, &[])?;
    build_guests(&others, &[])
}

/// Builds plugins, with additional environment variables.
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
        // An unchanged file is not replaced, so that cargo does not rebuild what embeds it.
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

/// Returns the names of the plugins: the workspace members that are not default members. Plugins that are partly in C set
/// `package.metadata.guest.compiler` in their manifest; `in_c` selects those or all others.
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
    if toolchain::libraries(target)?.join("lib").exists() {
        return Ok(());
    }
    say(&format!("adding the target {target}"));
    run(Command::new("rustup").args(["target", "add", target])).with_context(|| {
        format!("the target {target} is missing; install it the way Rust was installed on this machine")
    })
}

fn demo(rest: &[String]) -> Result<()> {
    build_guests(&DEMO_PLUGINS.map(String::from), &[])?;
    native(&["demo"])?;
    let plugins = format!("--plugins={}", DEMO_PLUGINS.join(","));
    run(Command::new(root().join("target/release/demo")).arg(plugins).args(rest))
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
    if rest.iter().any(|argument| argument == "--brief") {
        // Without link-time optimisation, what the other side depends on is compiled for the tests already.
        prepare(&["bench", "sdk_echo", "bare_echo"])?;
    } else {
        prepare(&["bench"])?;
        cargo(&["build", "--locked", "--profile", "rival", "--package", "rivals", "--bins"])?;
    }
    if rest.iter().any(|argument| argument == "--fixed") {
        return fixed::compare(&root(), rest);
    }
    // Plugins in other languages are measured if `cargo xtask languages` has made them.
    run(Command::new(root().join("target/release/bench")).args(rest))
}

/// Builds every plugin, wharf, and the other binaries in `more`.
fn prepare(more: &[&str]) -> Result<()> {
    guests()?;
    native(more)
}

/// Builds wharf and the other binaries in `more`. They are chosen by `--bin` and not by `--package`: for one package alone, cargo would
/// enable other features of shared dependencies, so that wasmtime would be compiled twice and the tested binary would differ from the
/// shipped one.
fn native(more: &[&str]) -> Result<()> {
    say("building target/release/wharf (6 to 13 minutes the first time, on two cores; most of it is wasmtime)");
    let mut arguments = vec!["build", "--locked", "--release", "--bin", "wharf"];
    arguments.extend(more.iter().flat_map(|bin| ["--bin", bin]));
    cargo(&arguments)?;
    profile::check(&root(), &root().join("target/release/wharf"))
}

fn test() -> Result<()> {
    cargo(&["fmt", "--all", "--check"]).context("run `cargo fmt --all`")?;
    tidy(&[])?;
    deny::check(&root(), false)?;
    guests()?;
    // Plugins are linted, and their unit tests run, natively and in the dev profile, where little has to be compiled. They need no sandbox.
    let packages = [guest_packages(false)?, guest_packages(true)?].concat();
    let packages: Vec<&str> = packages.iter().flat_map(|name| ["--package", name]).collect();
    let sdk = ["test", "--locked", "--lib", "--bins", "--features", "wharf-sdk/http", "--package", "wharf-sdk"];
    lint::cargo(&[sdk.as_slice(), &packages].concat())?;
    // All tests are compiled by the linter, and so are the crates that they test. To optimise those takes longer than their tests run. What
    // all depend on is that of the release build.
    let hardly = own_crates_at(0)?;
    let hardly: Vec<&str> = ["--locked", "--release"].into_iter().chain(hardly.iter().map(String::as_str)).collect();
    lint::cargo(&[&["build", "--all-targets"], hardly.as_slice()].concat())?;
    lint::cargo(&[&["test", "--lib", "--bins"], hardly.as_slice()].concat())?;
    // The linter has written its own program to the place of wharf's.
    native(&[])?;
    debian::provide(&root(), "redis-server", "usr/bin/redis-server")?;
    debian::provide(&root(), "docker-registry", "usr/bin/docker-registry")?;
    lint::cargo(&[&["test", "--test", "*"], hardly.as_slice()].concat())?;
    cargo(&["test", "--locked", "--release", "--doc"])
}

/// Returns arguments for cargo with which the workspace's crates are compiled at this level of optimisation, in parallel. What they depend on
/// is compiled as always, so it is not compiled again.
fn own_crates_at(level: u8) -> Result<Vec<String>> {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec()?;
    let settings = metadata.workspace_default_packages().into_iter().flat_map(|package| {
        let of = format!("profile.release.package.{}", package.name);
        [format!("{of}.opt-level={level}"), format!("{of}.codegen-units=64")]
    });
    Ok(settings.flat_map(|setting| ["--config".to_owned(), setting]).collect())
}
