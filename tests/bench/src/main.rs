//! Measures wharf side by side with what bounds it, in one run: `cargo xtask bench`.
//!
//! Everything is a ratio of two loads that alternate in short rounds, so that what else the machine does hits both alike.
//! `--brief` takes a minute and fails below wide margins; `--full` takes longer rounds and more of them; `--rival CMD` adds
//! any other stdio server that has a tool `echo` with an argument `message`.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};

mod load;
mod report;
mod rows;
mod sandboxes;
mod servers;
mod whole;

/// How long and how often.
pub struct Effort {
    pub round: Duration,
    pub rounds: u32,
    pub brief: bool,
    pub rival: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
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
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--brief" => {
                effort = Effort { round: Duration::from_millis(400), rounds: 3, brief: true, ..effort };
            }
            "--full" => effort = Effort { round: Duration::from_secs(2), rounds: 15, brief: false, ..effort },
            "--rival" => effort.rival = Some(arguments.next().context("--rival needs a command")?),
            "--out" => out = Some(arguments.next().context("--out needs a folder")?.into()),
            other => bail!("unknown argument {other}; there are --brief, --full, --rival CMD, --out FOLDER"),
        }
    }
    let built = servers::Built::find()?;
    let mut report = report::Report::default();
    rows::targets(&built, &effort, &mut report).await?;
    sandboxes::compare(&built, &effort, &mut report)?;
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
