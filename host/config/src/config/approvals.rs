//! `[approvals]`, and `confirm` of each plugin: which calls a person has to approve before they run, and who asks that person.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

pub use super::raw::Remember;
use super::{default_paths::state_dirs, raw};
use wharf_base::{pattern::Pattern, program::Command};
use wharf_policy::access::capability::Absolute;

/// Which calls of one plugin a person has to approve, who asks that person, and for how long the answer can be remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct Confirm {
    pub which: Which,
    pub asker: Asker,
    /// The longest time for which a person may approve of further calls that a rule covers.
    pub remember: Remember,
}

/// Which calls a person has to approve.
#[derive(Debug, Clone, PartialEq)]
pub enum Which {
    /// All calls of tools, resources and prompts.
    All,
    /// Calls in which the plugin's grants let it change anything outside its sandbox.
    Writes,
    /// Calls of tools that the plugin does not mark as non-destructive.
    Destructive,
    /// Calls of these tools, by the plugin's own names.
    Tools(Vec<Pattern>),
}

/// Who asks the person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Asker {
    /// The client that makes the call.
    #[default]
    Client,
    /// A program of the operator.
    Command(Command),
}

/// `[approvals]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Approvals {
    asker: Asker,
    remember: Remember,
}

impl Approvals {
    pub fn resolve(raw: raw::Approvals, absolute: Absolute<'_>) -> Result<Self> {
        let asker = match raw.ask {
            None => Asker::Client,
            Some(raw::Asker::Word(word)) if word == "client" => Asker::Client,
            Some(raw::Asker::Word(word)) => bail!("`ask`: `{word}` is neither \"client\" nor {{ command = [ … ] }}"),
            Some(raw::Asker::Program(raw::Command { command })) => {
                Asker::Command(Command::resolve(command, absolute).context("`ask`")?)
            }
        };
        Ok(Self { asker, remember: raw.remember })
    }

    /// Returns the files of the command that asks: its program, and arguments that are files. No plugin may write them, since that
    /// would let it approve its own calls.
    pub fn programs(&self) -> Vec<PathBuf> {
        match &self.asker {
            Asker::Client => Vec::new(),
            Asker::Command(command) => command.files(),
        }
    }

    /// Resolves `confirm` of a plugin. `is_pinned`: whether its code is known: by `sha256`, or because it is in wharf.
    pub fn confirm(&self, written: raw::Confirm, is_pinned: bool) -> Result<Confirm> {
        let which = match written {
            raw::Confirm::Word(word) => match word.as_str() {
                "all" => Which::All,
                "writes" => Which::Writes,
                "destructive" => {
                    ensure!(
                        is_pinned,
                        "`confirm`: \"destructive\" relies on what the plugin says about its tools, so it needs `sha256`, which pins \
                         the code of the plugin; \"writes\" relies on the grants alone"
                    );
                    Which::Destructive
                }
                other => bail!(
                    "`confirm`: `{other}` is not one of \"all\", \"writes\", \"destructive\"; names of tools stand in a list, such as \
                     [\"{other}\"]"
                ),
            },
            raw::Confirm::Tools(names) => {
                ensure!(
                    !names.is_empty(),
                    "`confirm` is empty, so nothing would be asked; if that is intended, remove it"
                );
                Which::Tools(names.into_iter().map(Pattern::new).collect())
            }
        };
        Ok(Confirm { which, asker: self.asker.clone(), remember: self.remember })
    }
}

impl Confirm {
    /// Describes the calls that have to be approved, for the operator.
    pub fn describe(&self) -> String {
        match &self.which {
            Which::All => "every call".into(),
            Which::Writes => "every call in which it could change anything".into(),
            Which::Destructive => "every call of a tool that may destroy something".into(),
            Which::Tools(patterns) => {
                let names: Vec<String> = patterns.iter().map(|pattern| format!("`{pattern}`")).collect();
                format!("calls of {}", names.join(", "))
            }
        }
    }
}

/// The file of approvals that are valid until they are revoked: `$XDG_STATE_HOME/wharf/approvals.jsonl`, else
/// `~/.local/state/wharf/approvals.jsonl`. None: there is no home directory.
pub fn file() -> Option<PathBuf> {
    state_dirs().first().map(|folder| folder.join("approvals.jsonl"))
}
