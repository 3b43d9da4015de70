//! `wharf check --machine`: checks how wharf is set up on this machine, and says how to fix each problem. It changes nothing, loads no plugin,
//! fetches no secret, and starts no program that a client's config names.

use std::{path::Path, process::ExitCode};

use anyhow::Result;

use self::finding::State;
use super::{arguments::Check, load::print};

mod clients;
mod config;
mod finding;
mod port;
mod system;

pub(super) async fn run(command: Check) -> Result<ExitCode> {
    let (mut findings, config) = config::look(command.config.config.as_deref());
    findings.insert(0, config::binary());
    findings.extend(clients::look());
    findings.extend(system::look(Path::new("/proc"), config.as_ref()));
    findings.extend(port::look(config.as_ref()).await);
    let mut wrong = 0;
    for finding in &findings {
        wrong += usize::from(finding.state == State::Wrong);
        print(&if command.json { finding.json() } else { finding.line() })?;
    }
    if !command.json {
        print(&match wrong {
            0 => "no problems found".to_owned(),
            1 => "1 problem found".to_owned(),
            more => format!("{more} problems found"),
        })?;
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
