//! One check of `wharf check --machine` and its result.

use serde_json::json;
use wharf_base::text;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Fine,
    /// It works, but could work better.
    Note,
    Wrong,
}

/// One check and its result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// What was checked, in a word or two.
    pub(super) about: String,
    pub(super) state: State,
    pub(super) says: String,
    /// How to fix it, unless the state is fine.
    pub(super) remedy: Option<String>,
}

impl Finding {
    pub(super) fn fine(about: impl Into<String>, says: impl Into<String>) -> Self {
        Self { about: about.into(), state: State::Fine, says: says.into(), remedy: None }
    }

    pub(super) fn note(about: impl Into<String>, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { about: about.into(), state: State::Note, says: says.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn wrong(about: impl Into<String>, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { about: about.into(), state: State::Wrong, says: says.into(), remedy: Some(remedy.into()) }
    }

    /// Returns a finding without a remedy, since the error itself says what to do.
    pub(super) fn error(about: impl Into<String>, error: &anyhow::Error) -> Self {
        Self { about: about.into(), state: State::Wrong, says: format!("{error:#}"), remedy: None }
    }

    pub(super) fn line(&self) -> String {
        let state = match self.state {
            State::Fine => "ok   ",
            State::Note => "note ",
            State::Wrong => "WRONG",
        };
        let remedy = self.remedy.iter().map(|remedy| format!("; {}", text::escaped(remedy)));
        format!("{state} {}: {}{}", text::escaped(&self.about), text::escaped(&self.says), remedy.collect::<String>())
    }

    pub(super) fn json(&self) -> String {
        let state = match self.state {
            State::Fine => "ok",
            State::Note => "note",
            State::Wrong => "wrong",
        };
        json!({ "about": self.about, "state": state, "says": self.says, "remedy": self.remedy }).to_string()
    }
}
