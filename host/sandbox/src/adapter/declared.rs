//! The operator's settings for a plugin that was not made for wharf.

use std::sync::LazyLock;

use http::uri::PathAndQuery;

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
    /// The component is an MCP server over HTTP, and wharf is its only client.
    Http,
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
    /// The path of the MCP endpoint of a server over HTTP; `None`: the usual one.
    pub endpoint: Option<PathAndQuery>,
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
    /// The path of the MCP endpoint of a server over HTTP.
    pub fn endpoint(&self) -> &PathAndQuery {
        static USUAL: LazyLock<PathAndQuery> = LazyLock::new(|| PathAndQuery::from_static("/mcp"));
        self.endpoint.as_ref().unwrap_or(&USUAL)
    }

    /// The tools of a command.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &CommandTool> {
        self.commands.iter().chain(&self.run)
    }
}
