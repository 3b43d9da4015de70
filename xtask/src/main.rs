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

mod adapted;
mod c;
mod checks;
mod conformance;
mod debian;
mod deny;
mod existing;
mod figures;
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
mod release;
mod replicas;
mod search;
mod service;
mod signatures;
mod slots;
mod toolchain;
mod tree;
mod wrapper;

const USAGE: &str = "\
cargo xtask demo       builds wharf and its plugins, and demonstrates them with an MCP client; --serve keeps the server running
cargo xtask test       what a pull request has to pass: formatting, lints, and all tests that need only Rust, Redis and a registry (Debian's
                       packages of the last two are unpacked if the machine has none)
cargo xtask try NAME   builds what has changed, and runs the tests whose path contains NAME
cargo xtask check NAME what tests wharf with other projects' programs, and more: below; --merge runs all that a change has to pass
cargo xtask all        everything that a release has to pass (three hours)
cargo xtask build      builds wharf for use, target/release/wharf, and the plugins at target/plugins/; with `plugins` only these, with
                       `sqlite` also that one, which is partly in C and needs Python 3
cargo xtask bench      compares wharf with the official SDK without a sandbox and with bare servers; --brief, --full, --micro, --cores;
                       --fixed with the build of one fixed commit and the best so far, --record adds that to tests/bench/history.tsv;
                       --profile writes the profile by which builds for use are optimised (as long as three builds);
                       --builds measures demo, test and the checks before a merge from an empty folder, --record keeps that
cargo xtask package    builds the binary that is packaged, and packages it at target/dist/ (archive, npm, wheel, mcpb, deb, install, and, with
                       --repository URL, brew, nix, server.json, links); --binary FILE packages that one, --target TRIPLE, --only KIND;
                       --from FOLDER makes the last four of finished packages; --check installs and uses each, --steps also runs the
                       steps of the workflows that take less than a minute; --build-only; needs npm and Python 3
cargo xtask generate   writes what is generated: docs/contract.md, docs/config.md, docs/wharf.schema.json, docs/limits.md, the table in
                       CONTRIBUTING.md, and the accepted weight of the project in xtask/budget.txt; --pictures draws those in docs/pictures from
                       real runs, which needs Python 3, npm and Debian
cargo xtask toolchain  prints the name of the Rust toolchain that these commands use, and installs it if the machine's is too old

demo, test, try and check share one build, at target/debug. It is for trying and for tests.

Checks:
";

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
        "demo" => tree::demo(rest),
        "test" => tree::test(),
        "try" => tree::try_tests(rest),
        "check" => checks::check(rest),
        "all" => checks::all(),
        "build" => release::build(&root(), rest),
        "bench" => bench(rest),
        "package" if rest == ["--build-only"] => release::shipped(&root()),
        "package" => package::run_command(&root(), rest),
        "generate" if rest == ["--pictures"] => pictures(),
        "generate" => generate(),
        "toolchain" => toolchain::print(),
        _ => {
            say(&format!("{USAGE}{}", checks::list()));
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

/// Returns a command of cargo, without the variables that cargo has set for this program. Build scripts of some crates run again when those
/// change, and so would be compiled again after each command that is typed without `cargo xtask`.
fn cargo() -> Command {
    let mut cargo = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Runs the crate `tidy`. It is a program of its own, so that its parsers of Rust and WIT are compiled only when it is used.
fn tidy(arguments: &[&str]) -> Result<()> {
    tree::cargo(["build", "--quiet", "--bin", "tidy"])?;
    run(Command::new(tree::built("tidy")).args(arguments))
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

/// Writes what is generated from the code.
fn generate() -> Result<()> {
    checks::write_table(false)?;
    tidy(&["contract"])?;
    let mut tests = tree::command(["test", "--lib", "the_generated_files"])?;
    run(tests.env("WRITE_SCHEMA", "1"))?;
    let mut tests = tree::command(["test", "--lib", "the_table_of_limits"])?;
    run(tests.env("WRITE_LIMITS", "1"))?;
    // Comes last, because it counts the words of what was written.
    tidy(&["budget"])
}

/// Draws the pictures of the documents.
fn pictures() -> Result<()> {
    let root = root();
    tree::prepare(&["demo"])?;
    let source = root.join("tests/pictures");
    let python = installed::python(&source.join("requirements.txt"), &root.join("target/pictures"))?;
    let mut command = Command::new(python);
    command.arg(source.join("record.py")).arg(tree::wharf()).arg(tree::built("demo"));
    run(command.arg(root.join("docs/pictures")))?;
    others::window(&root, &["--pictures".to_owned()])
}

fn soak(_: &Path, rest: &[String]) -> Result<()> {
    tree::prepare(&["soak"])?;
    run(Command::new(tree::built("soak")).args(rest))
}

fn bench(rest: &[String]) -> Result<()> {
    let root = root();
    let has = |word: &str| rest.iter().any(|argument| argument == word);
    if has("--profile") {
        return release::write(&root);
    }
    if has("--builds") {
        return figures::measure(&root, rest);
    }
    if has("--micro") {
        tree::guests()?;
        return run(cargo().args(["bench", "--locked", "--bench", "micro"]));
    }
    release::bench(&root, has("--brief"))?;
    if has("--fixed") {
        return fixed::compare(&root, rest);
    }
    // Plugins in other languages are measured if `cargo xtask check languages` has made them.
    run(Command::new(root.join("target/release/bench")).args(rest))
}
