//! Runs wharf with third-party software: compares its plugins with the reference servers that they replace, drives it with the frameworks
//! that clients are written with and with agents, and logs in to it through an identity provider.

use std::{path::Path, process::Command};

use anyhow::{Context, Result};

use crate::{
    c, debian, installed, run,
    tree::{plugins, prepare, wharf},
};

/// Sends the same requests to the reference servers and to the plugins, and compares the answers.
pub fn dropin(root: &Path, rest: &[String]) -> Result<()> {
    let without_sqlite = rest.iter().any(|argument| argument == "--brief" || argument == "--figures");
    prepare(&[])?;
    let (source, target) = (root.join("tests/dropin"), root.join("target/dropin"));
    installed::npm(&source, &target)?;
    let python = installed::python(&source.join("requirements.txt"), &target.join("venv"))?;
    let mut command = Command::new("node");
    command.arg(source.join("differential.mjs")).arg("--bin").arg(wharf());
    command.arg("--plugins").arg(plugins());
    command.arg("--modules").arg(target.join("node_modules")).arg("--python").arg(python);
    if !without_sqlite {
        c::guests(root, &["sqlite"])?;
        let older = installed::python(&source.join("requirements-1.txt"), &target.join("venv-1"))?;
        command.arg("--python-1").arg(older);
    }
    run(command.args(rest)).context("an answer differs, or there is no Node.js 20 or newer")
}

/// Drives wharf with clients of many frameworks, and restarts it under the official ones.
pub fn clients(root: &Path, rest: &[String]) -> Result<()> {
    prepare(&[])?;
    for script in ["matrix.mjs", "restarts.mjs"] {
        let mut command = Command::new("node");
        command.arg(root.join("tests/clients").join(script)).arg("--bin").arg(wharf());
        command.arg("--plugins").arg(plugins()).args(rest);
        run(&mut command).context("a client failed, or there is no Node.js 20 or newer, npm or Python 3")?;
    }
    Ok(())
}

/// Drives agents that people use, with a scripted model behind them.
pub fn agents(root: &Path, rest: &[String]) -> Result<()> {
    prepare(&[])?;
    let mut command = Command::new("node");
    command.arg(root.join("tests/agents/agents.mjs")).arg("--bin").arg(wharf());
    command.arg("--plugins").arg(plugins()).arg("--target").arg(root.join("target/agents")).args(rest);
    run(&mut command).context("an agent failed, or there is no Node.js 20 or newer, or npm")
}

/// Uses the page of `wharf open` in Chromium. `--pictures` draws its views for the documentation.
pub fn window(root: &Path, rest: &[String]) -> Result<()> {
    prepare(&[])?;
    let (source, target) = (root.join("tests/window"), root.join("target/window"));
    installed::npm(&source, &target)?;
    let chromium = debian::program(root, "chromium", "usr/lib/chromium/chromium")?;
    let mut command = Command::new("node");
    command.arg(source.join("page.mjs")).arg("--bin").arg(wharf()).arg("--plugins").arg(plugins());
    command.arg("--modules").arg(target).arg("--chromium").arg(chromium.get_program());
    // For Chromium alone, and not for Node.js.
    let libraries = chromium.get_envs().find_map(|(name, value)| value.filter(|_| name == "LD_LIBRARY_PATH"));
    command.arg("--libraries").arg(libraries.unwrap_or_default());
    if rest.iter().any(|argument| argument == "--pictures") {
        command.arg("--pictures").arg(root.join("docs/pictures"));
    }
    run(&mut command).context("the page failed, or there is no Node.js 20 or newer, npm or Chromium")
}

/// Logs in to wharf with official clients through a third-party identity provider.
pub fn login(root: &Path, rest: &[String]) -> Result<()> {
    prepare(&[])?;
    let (source, target) = (root.join("tests/login-dance"), root.join("target/login-dance"));
    installed::npm(&source, &target)?;
    let mut command = Command::new("node");
    command.arg(source.join("dance.mjs")).arg("--bin").arg(wharf());
    command.arg("--plugins").arg(plugins()).arg("--modules").arg(target.join("node_modules"));
    for (requirements, environment) in [("requirements.txt", "venv"), ("requirements-1.txt", "venv-1")] {
        let python = installed::python(&source.join(requirements), &target.join(environment))?;
        command.arg("--python").arg(python);
    }
    run(command.args(rest)).context("a login failed, or there is no Node.js 20 or newer, npm or Python 3")
}
