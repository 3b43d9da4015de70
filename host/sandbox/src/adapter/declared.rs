//! What the operator says about how a plugin is served that was not made for wharf.

use super::command::CommandTool;
use crate::bindings::tools::Hints;

/// How a plugin is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// By the contract, which it was made for.
    Contract,
    /// Each function that it exports is a tool.
    Functions,
    /// It is a command, and its tools are those that the operator declares.
    Command,
}

/// What the operator says about how a plugin is served.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Adapter {
    /// `None`: what the component exports decides.
    pub kind: Option<Served>,
    /// The tools of a command.
    pub commands: Vec<CommandTool>,
    /// One more tool if it is a command: the one that takes any arguments.
    pub run: Option<CommandTool>,
    /// What the operator says of functions, by the names of their tools.
    pub described: Vec<Described>,
}

/// What the operator says of a function, in place of what its component says or in addition to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// The name of its tool, without the plugin's prefix.
    pub name: String,
    /// What the model reads.
    pub description: String,
    /// Hints as the contract has them.
    pub hints: Hints,
}

impl Adapter {
    /// The tools of a command.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &CommandTool> {
        self.commands.iter().chain(&self.run)
    }
}
