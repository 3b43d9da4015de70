//! `cargo xtask existing`: runs existing MCP servers as plugins, with the real package managers and SDKs. First two small servers by
//! `wharf call`, as a person would try them, then published servers by the scripts in `tests/existing`, which compare them with the same
//! servers outside of wharf.

use std::{path::Path, process::Command, time::Instant};

use anyhow::{Context, Result, ensure};

use crate::{installed, prepare, run, run_in, say};

/// The published servers for `--brief`.
const BRIEF_NPM: [&str; 2] =
    ["@modelcontextprotocol/server-sequential-thinking", "@modelcontextprotocol/server-memory"];
const BRIEF_PYTHON: [&str; 1] = ["mcp-server-time"];

pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    prepare(&[])?;
    let (wharf, target) = (root.join("target/release/wharf"), root.join("target/existing"));
    let folder = root.join("tests/existing");
    for server in ["notes.py", "notes.ts"] {
        smoke(root, &wharf, &folder.join("smoke").join(server))?;
    }
    let is_brief = rest.iter().any(|argument| argument == "--brief");
    let named = rest.iter().filter(|argument| *argument != "--brief");
    if folder.join("npm.mjs").is_file() {
        let npm = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        run_in(&folder, Command::new("npm").args(npm)).context("this needs npm")?;
        let mut command = Command::new("node");
        command.arg(folder.join("npm.mjs")).arg("--wharf").arg(&wharf).arg("--folder").arg(target.join("npm"));
        run(command.args(named.clone()).args(BRIEF_NPM.iter().filter(|_| is_brief)))
            .context("a server of npm differs")?;
    }
    if folder.join("python.py").is_file() {
        let python = installed::python(&folder.join("requirements.txt"), &target.join("venv"))?;
        let mut command = Command::new(python);
        command.arg(folder.join("python.py")).arg("--wharf").arg(&wharf).arg("--work").arg(target.join("python"));
        run(command.args(named).args(BRIEF_PYTHON.iter().filter(|_| is_brief))).context("a server of PyPI differs")?;
    }
    Ok(())
}

/// Calls a tool of a server twice: the first call builds the plugin, the second one starts no other program.
fn smoke(root: &Path, wharf: &Path, server: &Path) -> Result<()> {
    let cache = root.join("target/existing");
    for (how, path) in [("built and called", None), ("called again", Some("/nowhere"))] {
        let began = Instant::now();
        let mut command = Command::new(wharf);
        command.arg("call").arg(server).args(["add", "a=19", "b=23"]).env("XDG_CACHE_HOME", &cache);
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let output = command.stderr(std::process::Stdio::inherit()).output().context("wharf call")?;
        let answer = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        ensure!(output.status.success() && answer == "19 + 23 = 42", "{}: {answer:?}", server.display());
        say(&format!("{} was {how} in {:.1} s", server.display(), began.elapsed().as_secs_f64()));
    }
    Ok(())
}
