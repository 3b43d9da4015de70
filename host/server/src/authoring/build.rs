//! From the sources of a plugin to its component: looks for the programs that are needed, and runs the author's own commands.

#![expect(clippy::disallowed_methods, reason = "works in the author's own folder, on what the author's tools made")]

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use tokio::process::Command;

use super::project::Project;
use crate::base::{
    failed::{OrFailed, failed},
    group::Group,
    text::{self, clip},
};

/// What ends a command of the author before it ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// A key at the terminal, such as ctrl-c, which the system reports to this process, to the command and to every process that the
    /// command started. This process ends at once and cannot pass it on, so all of them stay in one group.
    Interrupted,
    /// The caller, which is told of every signal and then drops its future: that kills the command with every process that it started.
    Dropped,
}

/// What a build made.
#[derive(Debug, Clone)]
pub struct Built {
    /// The component.
    pub component: Vec<u8>,
    pub took: Duration,
}

/// Makes sure that the plugin can be built. `set_up`: whether what is done once may be done now, if it was not yet.
pub async fn ready(project: &Project, set_up: bool) -> Result<()> {
    check_needs(project).or_failed()?;
    let Some(setup) = project.build.setup.as_ref().filter(|setup| !setup.makes.exists()) else { return Ok(()) };
    ensure!(
        set_up,
        "{} is not set up: run the same with --setup, which runs `{}` in {} first",
        project.name,
        shown(&setup.command),
        text::path(&project.folder)
    );
    tracing::info!("setting up: {}", shown(&setup.command));
    // Nothing is served yet, and no signal is handled.
    run(project, &setup.command, Until::Interrupted).await.context("it could not be set up")?;
    if !setup.makes.exists() {
        let (command, makes) = (shown(&setup.command), text::path(&setup.makes));
        return Err(failed(anyhow!("`{command}` made no {makes}, which plugin.toml says it makes")));
    }
    Ok(())
}

/// Builds a plugin.
pub async fn build(project: &Project, until: Until) -> Result<Built> {
    tracing::info!("building: {}", shown(&project.build.command));
    let began = Instant::now();
    run(project, &project.build.command, until).await.context("it could not be built")?;
    let artifact = &project.build.artifact;
    let missing =
        || format!("`{}` made no {}, the artifact of plugin.toml", shown(&project.build.command), text::path(artifact));
    let made = fs::read(artifact).with_context(missing).or_failed()?;
    let component = if wharf_forge::is_core_module(&made) {
        wharf_forge::wrap(&made).with_context(|| text::path(artifact)).or_failed()?
    } else {
        made
    };
    Ok(Built { component, took: began.elapsed() })
}

/// Says of the first program that is missing how to get it.
fn check_needs(project: &Project) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    for (programs, how) in &project.build.needs {
        if !programs.split('|').any(is_there) {
            bail!("{} is needed to build {}, and is not on PATH. {how}", programs.replace('|', " or "), project.name);
        }
    }
    Ok(())
}

/// Runs a command of the author in the plugin's folder. What it prints goes to stderr, as the author's tools print it.
async fn run(project: &Project, command: &str, until: Until) -> Result<()> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(&project.folder).stdin(Stdio::null()).stdout(std::io::stderr());
    if until == Until::Dropped {
        shell.process_group(Group::OWN);
    }
    let mut child = shell.kill_on_drop(true).spawn().context("there is no sh to run it").or_failed()?;
    let status = match until {
        Until::Interrupted => child.wait().await,
        Until::Dropped => Group::of(&child).wait(&mut child).await,
    };
    let status = status.or_failed()?;
    if !status.success() {
        return Err(failed(anyhow!("`{}` {}", shown(command), ended(status))));
    }
    Ok(())
}

/// A command in one line that is not too long.
fn shown(command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().filter(|word| *word != "\\").collect();
    clip(&words.join(" "))
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(127), _) => "ended with code 127: a program that it names is missing".to_owned(),
        (Some(code), _) => format!("ended with code {code}"),
        (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
    }
}
