//! Builds a plugin's component from its sources: checks that the required programs are installed, and runs the author's commands.

#![expect(clippy::disallowed_methods, reason = "reads what the author's tools wrote into the author's folder")]

use std::{
    fs,
    io::Write,
    os::unix::process::ExitStatusExt,
    path::Path,
    pin::pin,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, BufReader},
    net::unix::pipe::Receiver,
    process::Command,
};

use super::{
    confinement::{Confined, MEMORY_BYTES, Step, is_set},
    project::{Build, Live, Project},
    said::Said,
};
use wharf_base::{
    below::Below,
    failed::{OrFailed, failed},
    group::Group,
    text::{self, clip},
};
use wharf_scope::MAX_COMPONENT_BYTES;

/// How a running command of the author is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// By a key at the terminal, such as ctrl-c: the system signals the whole foreground process group. This process then exits at once
    /// and cannot forward the signal, so the command stays in the same process group.
    Interrupted,
    /// By the caller, which handles signals and drops its future: this kills the command and every process that it started.
    Dropped,
}

/// What becomes of the output of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// It goes to stderr as it is, so that compilers see a terminal.
    Passed,
    /// The same, and its last lines become part of the error if the command fails: a client shows nothing else.
    Quoted,
}

/// A finished build.
#[derive(Debug, Clone)]
pub struct Built {
    /// The component.
    pub component: Vec<u8>,
    pub took: Duration,
}

/// Checks that the plugin can be built. `set_up`: whether to run the one-time setup if it was not run yet.
pub async fn ready(project: &Project, set_up: bool, (until, output): (Until, Output)) -> Result<()> {
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
    install(project, &setup.command, (until, output)).await.context("the setup failed")?;
    if !setup.makes.exists() {
        let (command, makes) = (shown(&setup.command), text::path(&setup.makes));
        return Err(failed(anyhow!("`{command}` did not create {makes}, which is `build.setup.makes` in plugin.toml")));
    }
    Ok(())
}

/// Runs the setup. Where it has fetched a package that has to be built, it ends, so that no code of the package runs in a step with network.
async fn install(project: &Project, setup: &str, how: (Until, Output)) -> Result<()> {
    for _ in 0..MAX_WHEELS {
        if let Ended::Well = run(project, (setup, Step::Install), how).await? {
            return Ok(());
        }
        tracing::info!("building a package that is published only as source, without network");
        let wheel = project.confined.as_ref().map(Confined::wheel).context("only a confined setup waits")?;
        run(project, (&wheel, Step::Wheel), how).await?;
    }
    bail!(
        "more than {MAX_WHEELS} packages of this server are published only as source, or one asks for something else each time"
    )
}

/// Builds a plugin.
pub async fn build(project: &Project, how: (Until, Output)) -> Result<Built> {
    let Build { command, artifact, .. } = &project.build;
    make(project, (command, artifact, "build.artifact"), how).await
}

/// Builds a plugin for development: the component without the plugin's code, and the folder with that code.
pub async fn build_live(project: &Project, live: &Live, how: (Until, Output)) -> Result<Built> {
    let built = make(project, (&live.command, &live.artifact, "build.live.artifact"), how).await?;
    let is_there = match &project.confined {
        Some(_) => Below::open(&project.folder)?.folder(live.source.strip_prefix(&project.folder)?)?.is_some(),
        None => live.source.is_dir(),
    };
    ensure!(
        is_there,
        "`{}` did not create {}, which is `build.live.source` in plugin.toml",
        shown(&live.command),
        text::path(&live.source)
    );
    Ok(built)
}

async fn make(project: &Project, (command, artifact, key): (&str, &Path, &str), how: (Until, Output)) -> Result<Built> {
    tracing::info!("building: {}", shown(command));
    let began = Instant::now();
    run(project, (command, Step::Make), how).await.context("the build failed")?;
    Ok(Built { component: read(project, command, artifact, key)?, took: began.elapsed() })
}

/// Reads the component that the build command made.
pub fn component(project: &Project) -> Result<Vec<u8>> {
    read(project, &project.build.command, &project.build.artifact, "build.artifact")
}

fn read(project: &Project, command: &str, artifact: &Path, key: &str) -> Result<Vec<u8>> {
    let missing =
        || format!("`{}` did not create {}, which is `{key}` in plugin.toml", shown(command), text::path(artifact));
    // The author's own build may link to what it has made elsewhere. That of a stranger could link to something that it cannot read itself.
    let real = match &project.confined {
        Some(_) => None,
        None => Some(fs::canonicalize(artifact).with_context(missing).or_failed()?),
    };
    let (folder, file) = match &real {
        Some(real) => (real.parent().with_context(missing)?, Path::new(real.file_name().with_context(missing)?)),
        None => (project.folder.as_path(), artifact.strip_prefix(&project.folder)?),
    };
    let made = Below::open(folder).and_then(|folder| folder.bytes(file, MAX_COMPONENT_BYTES as u64));
    let made = made.or_failed()?.with_context(missing).or_failed()?;
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

/// How a command ended that did not fail.
enum Ended {
    Well,
    /// A setup ended because a package has to be built before it goes on.
    Waits,
}

/// Runs a command of the author in the plugin's folder. Its output goes to stderr.
async fn run(project: &Project, (command, step): (&str, Step), (until, output): (Until, Output)) -> Result<Ended> {
    let _protected = project.protect();
    let mut shell = Command::new("/bin/sh");
    let words = if step == Step::Make { project.build.arguments.as_str() } else { "" };
    let script = format!("{command}{words}");
    let limited = project.confined.as_ref().map(|_| Confined::limited(&script));
    shell
        .arg("-c")
        .arg(limited.as_deref().unwrap_or(&script))
        .current_dir(&project.folder)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    if until == Until::Dropped {
        shell.process_group(Group::OWN);
    }
    let reader = match output {
        Output::Passed => {
            shell.stdout(std::io::stderr());
            None
        }
        Output::Quoted => {
            let (reader, writer) = std::io::pipe().or_failed()?;
            shell.stdout(writer.try_clone().or_failed()?).stderr(writer);
            Some(Receiver::from_owned_fd(reader.into()).or_failed()?)
        }
    };
    let started = match &project.confined {
        Some(confined) => confined.start(&mut shell, step).map(|(child, leader)| (child, Some(leader))),
        None => shell.spawn().map(|child| (child, None)).context("`sh` could not be started"),
    };
    let (mut child, leader) = started.or_failed()?;
    // Holds the other end of the pipe, which would never end.
    drop(shell);
    let is_led = leader.is_some();
    let (mut said, mut is_read) = (Said::default(), reader.is_none());
    let status = {
        let mut quoted = pin!(quote(reader, &mut said));
        let ended = async {
            match until {
                Until::Dropped if !is_led => Group::of(&child).wait(&mut child).await,
                _ => child.wait().await,
            }
        };
        let mut ended = pin!(ended);
        let status = tokio::select! {
            status = &mut ended => status,
            () = &mut quoted, if !is_read => {
                is_read = true;
                ended.await
            }
        };
        // Nothing of a stranger runs on, so nothing changes what was made before it is read.
        drop(leader);
        if !is_read {
            // A process that the command leaves running may keep the pipe open.
            tokio::time::timeout(REST_TIMEOUT, quoted).await.ok();
        }
        status.or_failed()?
    };
    if is_led && step == Step::Install && status.code() == Some(WAITS) {
        return Ok(Ended::Waits);
    }
    if !status.success() {
        let lines: String = said.last().iter().flat_map(|line| ["; ", line]).collect();
        // The commands of an existing server are wharf's own, and say nothing to a person.
        let (shown, reason) =
            if is_led { (String::new(), said.reason()) } else { (format!("`{}` ", shown(command)), None) };
        let unreachable = said.unreachable(is_set).filter(|_| is_led && step == Step::Install);
        let reason = unreachable.or(reason).filter(|_| status.code().is_some());
        let reason = reason.unwrap_or_else(|| format!("{shown}{}{lines}", ended(status)));
        let limit = if is_led && said.is_about_memory {
            format!("; each process of this build may use {} GiB of memory", MEMORY_BYTES >> 30)
        } else {
            String::new()
        };
        return Err(failed(anyhow!("{reason}{limit}")));
    }
    Ok(Ended::Well)
}

/// The exit code of a confined setup that waits for a wheel.
const WAITS: i32 = 75;
/// The most rounds of a setup. A package needs one to four: for what builds it, and for the build.
const MAX_WHEELS: usize = 64;

/// How long to wait for the rest of the output of a command that has ended.
const REST_TIMEOUT: Duration = Duration::from_millis(500);

/// The longest line that is read in one piece. A stranger may print without end.
const MAX_LINE_BYTES: u64 = 16 << 10;

/// Returns the next line that a program prints, or the next piece of a long one; `None` at the end.
pub async fn next_line<R: AsyncBufRead + Unpin>(reader: &mut R) -> Option<String> {
    let mut line = Vec::new();
    let read = reader.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await.ok()?;
    line.pop_if(|last| *last == b'\n');
    (read > 0).then(|| String::from_utf8_lossy(&line).into_owned())
}

/// Copies the output of a command to stderr, and stores what an error repeats.
async fn quote(reader: Option<Receiver>, said: &mut Said) {
    let Some(reader) = reader else { return };
    let mut reader = BufReader::new(reader);
    while let Some(line) = next_line(&mut reader).await {
        // Packages of strangers print too. If stderr is closed, nobody reads it.
        writeln!(std::io::stderr(), "{}", text::escaped(&line)).ok();
        said.read(&line);
    }
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
