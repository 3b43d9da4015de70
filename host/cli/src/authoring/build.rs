//! Builds a plugin's component from its sources: checks that the required programs are installed, and runs the author's commands.

#![expect(clippy::disallowed_methods, reason = "reads what the author's tools wrote into the author's folder")]

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use tokio::process::Command;

use super::project::Project;
use wharf_base::{
    failed::{OrFailed, failed},
    group::Group,
    text::{self, clip},
};

/// How a running command of the author is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// By a key at the terminal, such as ctrl-c: the system signals the whole foreground process group. This process then exits at once
    /// and cannot forward the signal, so the command stays in the same process group.
    Interrupted,
    /// By the caller, which handles signals and drops its future: this kills the command and every process that it started.
    Dropped,
}

/// A finished build.
#[derive(Debug, Clone)]
pub struct Built {
    /// The component.
    pub component: Vec<u8>,
    pub took: Duration,
}

/// Checks that the plugin can be built. `set_up`: whether to run the one-time setup if it was not run yet.
pub async fn ready(project: &Project, set_up: bool, until: Until) -> Result<()> {
    check_needs(project).or_failed()?;
    let Some(setup) = project.build.setup.as_ref().filter(|setup| !setup.makes.exists()) else { return Ok(()) };
    ensure!(
        set_up,
        "{} is not set up: repeat the command with --setup, which first runs `{}` in {}",
        project.name,
        shown(&setup.command),
        text::path(&project.folder)
    );
    tracing::info!("setting up: {}", shown(&setup.command));
    run(project, &setup.command, until).await.context("the setup failed")?;
    if !setup.makes.exists() {
        let (command, makes) = (shown(&setup.command), text::path(&setup.makes));
        return Err(failed(anyhow!("`{command}` did not create {makes}, which is `build.setup.makes` in plugin.toml")));
    }
    Ok(())
}

/// Builds a plugin.
pub async fn build(project: &Project, until: Until) -> Result<Built> {
    tracing::info!("building: {}", shown(&project.build.command));
    let began = Instant::now();
    run(project, &project.build.command, until).await.context("the build failed")?;
    Ok(Built { component: component(project)?, took: began.elapsed() })
}

/// Reads the component that the build command made.
pub fn component(project: &Project) -> Result<Vec<u8>> {
    let artifact = &project.build.artifact;
    let missing = || {
        format!(
            "`{}` did not create {}, which is `build.artifact` in plugin.toml",
            shown(&project.build.command),
            text::path(artifact)
        )
    };
    let made = fs::read(artifact).with_context(missing).or_failed()?;
    if wharf_forge::is_core_module(&made) {
        return wharf_forge::wrap(&made).with_context(|| text::path(artifact)).or_failed();
    }
    Ok(made)
}

/// Fails if a required program is missing. The error says how to install it.
fn check_needs(project: &Project) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    for (programs, how) in &project.build.needs {
        if !programs.split('|').any(is_there) {
            bail!("{} is needed to build {}, but is not on PATH. {how}", programs.replace('|', " or "), project.name);
        }
    }
    Ok(())
}

/// Runs a command of the author in the plugin's folder. Its output goes to stderr unchanged.
async fn run(project: &Project, command: &str, until: Until) -> Result<()> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(&project.folder).stdin(Stdio::null()).stdout(std::io::stderr());
    if until == Until::Dropped {
        shell.process_group(Group::OWN);
    }
    let mut child = shell.kill_on_drop(true).spawn().context("`sh` could not be started").or_failed()?;
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

/// Formats a command as one line, cut off if it is long. Of a script of several commands, the last one, which makes the plugin.
fn shown(command: &str) -> String {
    let joined = command.replace("\\\n", " ");
    let mut lines = joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let words: Vec<&str> = lines.next_back().unwrap_or_default().split_whitespace().collect();
    clip(&words.join(" "))
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(127), _) => "exited with code 127: a program that it runs was not found".to_owned(),
        (Some(code), _) => format!("exited with code {code}"),
        (None, signal) => format!("was killed by signal {}", signal.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_shown_by_the_command_that_makes_the_plugin() {
        for (command, expected) in [
            ("npm run  build", "npm run build"),
            ("# Comment.\ntest -x cc || exit 1\ncc -o a \\\n  *.c\n", "cc -o a *.c"),
            ("", ""),
        ] {
            assert_eq!(shown(command), expected);
        }
    }
}
