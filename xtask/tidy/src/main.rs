//! Checks the rules of the house that no compiler checks; with the argument `contract`, writes docs/contract.md.

#![expect(clippy::disallowed_methods, reason = "it works on the project's files")]

use std::{env, fs, io::Write, path::Path, process::ExitCode};

use anyhow::{Context, Result, bail};

use crate::imports::collect;

mod contract;
mod imports;
mod shown;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If stderr is closed, there is nowhere left to say it.
            writeln!(std::io::stderr(), "error: {error:#}").ok();
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.ancestors().nth(2).context("it is not in the project's folder")?;
    match env::args().nth(1).as_deref() {
        None => check(root),
        Some("contract") => contract::write(root),
        Some(_) => bail!("it takes `contract`, or nothing"),
    }
}

/// Files longer than this hold more than one concern.
const MAX_LINES: usize = 600;

fn check(root: &Path) -> Result<()> {
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for folder in ["host", "sdk-guest", "plugins", "examples", "tests", "xtask"] {
        collect(&root.join(folder), &mut files)?;
    }
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
        let lines = text.lines().count();
        if lines > MAX_LINES {
            problems.push(format!("{name}: {lines} lines; split it where a second concern lives"));
        }
        let described =
            text.starts_with("//!") || text.starts_with("#!") || name.starts_with("examples/") || name.contains("/ui/");
        if !described {
            problems.push(format!("{name}: says at its top neither what it is nor what it is not"));
        }
        for floor in FLOORS {
            if name.starts_with(floor.room) {
                for forbidden in floor.forbidden {
                    if text.lines().any(|line| line.contains(forbidden) && !line.trim_start().starts_with("//")) {
                        problems.push(format!("{name}: names {forbidden}, which belongs to another floor"));
                    }
                }
            }
        }
    }
    problems.extend(imports::problems(root)?);
    problems.extend(shown::problems(root)?);
    problems.extend(contract::check(root).err().map(|problem| format!("{problem:#}")));
    if problems.is_empty() { Ok(()) } else { bail!("untidy:\n  {}", problems.join("\n  ")) }
}

struct Floor {
    room: &'static str,
    forbidden: &'static [&'static str],
}

/// Names that must not appear in the files of certain folders, so that dependencies go in one direction only.
const FLOORS: [Floor; 4] = [
    Floor { room: "host/protocol/", forbidden: &["tokio", "wasmtime", "wharf_sandbox", "std::fs", "std::net"] },
    Floor { room: "host/sandbox/", forbidden: &["wharf_protocol", "jsonrpc"] },
    Floor { room: "host/server/src/transport/", forbidden: &["wharf_sandbox"] },
    Floor { room: "host/server/src/access/grants.rs", forbidden: &["wharf_sandbox", "wharf_protocol", "tokio"] },
];
