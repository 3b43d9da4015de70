//! Serves components that are MCP servers over HTTP: they export `wasi:http/incoming-handler`. wharf is their only client. It calls that
//! function in the process, so there is no socket, and reads their answers as any client of Streamable HTTP does.
//!
//! The server is in an instance, so what it remembers is gone with the instance. If it speaks a revision that begins with `initialize`,
//! each instance is greeted before its first request.

pub(crate) mod answers;
mod asking;
pub(crate) mod entries;
mod events;
pub(crate) mod exchange;
mod message;
mod reader;
mod request;
pub(crate) mod talk;

use std::collections::HashMap;

/// What a plugin's server has told about itself. It holds for all instances of the plugin.
#[derive(Debug, Default)]
pub(crate) struct Learnt {
    pub(crate) era: Era,
    /// Whether it suggests values for arguments.
    pub(crate) completions: bool,
    /// For each tool with arguments that are mirrored in headers: where each argument is, and the name of its header.
    mirrored: HashMap<String, Vec<Mirrored>>,
}

/// An argument of a tool that its server also wants in a header, by `x-mcp-header` in the schema.
#[derive(Debug)]
struct Mirrored {
    path: Vec<String>,
    header: http::HeaderName,
}

/// How a server has to be addressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Era {
    /// Each instance is greeted with `initialize`.
    #[default]
    Greeted,
    /// Each request describes itself (revision 2026-07-28).
    SelfDescribing,
}
