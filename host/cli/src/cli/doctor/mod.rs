//! `wharf doctor`: checks how wharf is set up on this machine, and says how to fix each problem. It changes nothing, loads no plugin and
//! fetches no secret.

use std::{path::Path, process::ExitCode};

use anyhow::Result;
use serde_json::json;

use super::{arguments::Doctor, load::print};
use wharf_base::text;

mod clients;
mod config;
mod machine;
mod port;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fine,
    /// It works, but could work better.
    Note,
    Wrong,
}

/// One check and its result.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// What was checked, in a word or two.
    about: String,
    state: State,
    says: String,
    /// How to fix it, unless the state is fine.
    remedy: Option<String>,
}

impl Finding {
    fn fine(about: impl Into<String>, says: impl Into<String>) -> Self {
        Self { about: about.into(), state: State::Fine, says: says.into(), remedy: None }
    }

    fn note(about: impl Into<String>, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { about: about.into(), state: State::Note, says: says.into(), remedy: Some(remedy.into()) }
    }

    fn wrong(about: impl Into<String>, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { about: about.into(), state: State::Wrong, says: says.into(), remedy: Some(remedy.into()) }
    }

    /// Returns a finding without a remedy, since the error itself says what to do.
    fn error(about: impl Into<String>, error: &anyhow::Error) -> Self {
        Self { about: about.into(), state: State::Wrong, says: format!("{error:#}"), remedy: None }
    }

    fn line(&self) -> String {
        let state = match self.state {
            State::Fine => "ok   ",
            State::Note => "note ",
            State::Wrong => "WRONG",
        };
        let remedy = self.remedy.iter().map(|remedy| format!("; {}", text::escaped(remedy)));
        format!("{state} {}: {}{}", text::escaped(&self.about), text::escaped(&self.says), remedy.collect::<String>())
    }

    fn json(&self) -> String {
        let state = match self.state {
            State::Fine => "ok",
            State::Note => "note",
            State::Wrong => "wrong",
        };
        json!({ "about": self.about, "state": state, "says": self.says, "remedy": self.remedy }).to_string()
    }
}

pub(super) async fn run(command: Doctor) -> Result<ExitCode> {
    let (mut findings, config) = config::look(command.config.config.as_deref());
    findings.insert(0, config::binary());
    findings.extend(clients::look().await);
    findings.extend(machine::look(Path::new("/proc"), config.as_ref()));
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
