//! The operator's settings for a plugin that was not made for wharf.

use super::command::CommandTool;
use crate::bindings::tools::Hints;

/// How a plugin is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedAs {
    /// The plugin was made for wharf and exports interfaces of the contract.
    Contract,
    /// Each function that the component exports is a tool.
    Functions,
    /// The component is a command, and its tools are those that the operator declares.
    Command,
}

/// The operator's settings for how a plugin is served.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Adapter {
    /// `None`: what the component exports decides.
    pub kind: Option<ServedAs>,
    /// The tools of a command.
    pub commands: Vec<CommandTool>,
    /// An additional tool of a command, which takes any arguments.
    pub run: Option<CommandTool>,
    /// The operator's descriptions of functions, by the names of their tools.
    pub described: Vec<Described>,
}

/// The operator's description of a function, which replaces or supplements the component's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// The name of its tool, without the plugin's prefix.
    pub name: String,
    /// What the model reads.
    pub description: String,
    /// The hints of the contract.
    pub hints: Hints,
}

impl Adapter {
    /// The tools of a command.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &CommandTool> {
        self.commands.iter().chain(&self.run)
    }
}
