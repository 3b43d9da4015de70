//! Measures wharf side by side with what bounds it, in one run: `cargo xtask bench`.
//!
//! Everything is a ratio of two loads that alternate in short rounds, so that what else the machine does hits both alike.
//! `--brief` takes a minute and fails below wide margins; `--full` takes longer rounds and more of them; `--rival CMD` adds
//! any other stdio server that has a tool `echo` with an argument `message`; `--before WHARF` compares nothing but another build of
//! wharf with this one, whose plugins are in the folder of `--before-plugins`, and `--history FILE` fails if a row fell; `--sandboxes`
//! measures nothing but fresh sandboxes in each language; `--cores` measures nothing but what a second core adds to each kind of request;
//! `--train WHARF` measures nothing, but makes the calls from which the compiler learns what calls execute.

#![expect(
    clippy::disallowed_methods,
    reason = "it writes what servers are to read and its report; what it spawns ends with it"
)]

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use history::History;

mod before;
mod cores;
mod egress;
mod history;
mod load;
mod login;
mod report;
mod rows;
mod sandboxes;
mod servers;
mod train;
mod whole;

/// What runs in this process allocates as the binary does.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How long and how often.
#[derive(Clone)]
pub struct Effort {
    pub round: Duration,
    pub rounds: u32,
    pub brief: bool,
    pub rival: Option<String>,
}

wharf_sandbox::narrow_page_scans!();

fn main() -> ExitCode {
    // What is measured in this process compiles as wharf itself does.
    if let Some(ended) = wharf_sandbox::compile_if_asked() {
        return ended;
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            report::say(&format!("error: {error}"));
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            report::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<bool> {
    let mut effort = Effort { round: Duration::from_millis(700), rounds: 9, brief: false, rival: None };
    let mut out: Option<PathBuf> = None;
    let (mut before, mut before_plugins): (Option<PathBuf>, Option<PathBuf>) = (None, None);
    let (mut history, mut record): (Option<PathBuf>, bool) = (None, false);
    let (mut sandboxes_alone, mut cores_alone, mut train): (bool, bool, Option<PathBuf>) = (false, false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--brief" => {
                effort = Effort { round: Duration::from_millis(400), rounds: 3, brief: true, ..effort };
            }
            "--full" => effort = Effort { round: Duration::from_secs(2), rounds: 15, brief: false, ..effort },
            "--rival" => effort.rival = Some(arguments.next().context("--rival needs a command")?),
            "--before" => before = Some(PathBuf::from(arguments.next().context("--before needs a wharf")?)),
            "--before-plugins" => {
                before_plugins = Some(arguments.next().context("--before-plugins needs a folder")?.into());
            }
            "--history" => history = Some(arguments.next().context("--history needs a file")?.into()),
            "--record" => record = true,
            "--sandboxes" => sandboxes_alone = true,
            "--cores" => cores_alone = true,
            "--train" => train = Some(arguments.next().context("--train needs a wharf")?.into()),
            "--out" => out = Some(arguments.next().context("--out needs a folder")?.into()),
            other => {
                bail!(
                    "unknown argument {other}; there are --brief, --full, --sandboxes, --cores, --rival CMD, --before WHARF, --before-plugins FOLDER, --history FILE, --record, --train WHARF, --out FOLDER"
                )
            }
        }
    }
    let built = servers::Built::find(if effort.brief || train.is_some() { "release" } else { "rival" })?;
    if let Some(wharf) = train {
        train::train(&built, &wharf).await?;
        return Ok(true);
    }
    if let Some(before) = before {
        let other = before::other(&built, &before, before_plugins.as_deref());
        return compare(&built, &other, &effort, history.as_deref(), record).await;
    }
    let mut report = report::Report::default();
    if sandboxes_alone {
        sandboxes::compare(&built, &effort, &mut report)?;
        report.print();
        return Ok(true);
    }
    if cores_alone {
        cores::compare(&built, &effort, &mut report)?;
        report.print();
        return Ok(true);
    }
    rows::targets(&built, &effort, &mut report).await?;
    sandboxes::compare(&built, &effort, &mut report)?;
    egress::compare(&built, &effort, &mut report).await?;
    whole::measure(&built, &effort, &mut report).await?;
    if !effort.brief {
        rows::axes(&built, &effort, &mut report).await?;
    }
    report.print();
    if let Some(out) = out {
        report.write(&out)?;
    }
    Ok(!effort.brief || report.within_margins())
}

/// Compares two builds and, if there is a history, their rows with it, and adds them to it if they are to be recorded. Returns whether each
/// row has kept what it won.
async fn compare(
    built: &servers::Built,
    other: &servers::Built,
    effort: &Effort,
    history: Option<&Path>,
    record: bool,
) -> Result<bool> {
    let mut report = report::Report::default();
    let Some(file) = history else {
        before::compare(built, other, effort, None, &mut report).await?;
        report.print();
        return Ok(true);
    };
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let history = History::read(text, history::processor()).with_context(|| file.display().to_string())?;
    let figures = before::compare(built, other, effort, Some(&history), &mut report).await?;
    report.print();
    let problems: Vec<String> = figures.iter().filter_map(|(name, figure)| history.fallen(name, *figure)).collect();
    for problem in &problems {
        report::say(&format!("fallen: {problem}"));
    }
    if record {
        let head = std::process::Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output()?;
        let commit = String::from_utf8_lossy(&head.stdout);
        std::fs::write(file, history.with(commit.trim(), &figures))?;
    }
    Ok(problems.is_empty())
}
