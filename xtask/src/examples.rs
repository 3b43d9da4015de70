//! Builds the example plugins in other languages as their READMEs describe, and calls them.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use crate::{run, run_in, say};

/// The version that the Python example names.
const COMPONENTIZE_PY: &str = "componentize-py==0.25.1";

/// Builds the examples, and calls them with the `wharf` in `target/release`.
pub fn build_and_call(root: &Path) -> Result<()> {
    let javascript = root.join("examples/javascript");
    npm(&javascript, &["install", "--no-audit", "--no-fund"]).context("the JavaScript example needs npm")?;
    npm(&javascript, &["run", "--silent", "build"])?;
    greets(root, &javascript.join("hello-js.wasm"))?;

    let environment = root.join("target/python");
    run(Command::new("python3").args(["-m", "venv"]).arg(&environment))
        .context("the Python example needs python3 with venv")?;
    run(Command::new(environment.join("bin/pip")).args(["install", "--quiet", COMPONENTIZE_PY]))?;
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", environment.join("bin").display());
    let python = root.join("examples/python");
    run(Command::new("sh").arg(python.join("build.sh")).env("PATH", path))?;
    greets(root, &python.join("hello-py.wasm"))
}

fn npm(folder: &Path, arguments: &[&str]) -> Result<()> {
    run_in(folder, Command::new("npm").args(arguments))
}

fn greets(root: &Path, plugin: &Path) -> Result<()> {
    let output =
        Command::new(root.join("target/release/wharf")).arg("call").arg(plugin).args(["greet", "name=Ada"]).output()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    ensure!(
        output.status.success() && said == "Hello, Ada!",
        "{} answers {said:?}: {}",
        plugin.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    say(&format!("{} greets", plugin.display()));
    Ok(())
}
