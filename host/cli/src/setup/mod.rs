//! The configs of MCP clients: where each client has its config, how it describes a server, and edits that change nothing else.
//!
//! The functions work on text; their callers read and write the files.

pub mod client_list;
pub mod clients;
#[cfg(test)]
mod edits;
pub mod form;
pub mod format;
mod json;
mod list_changes;
pub mod server;
#[cfg(test)]
mod tests;
mod toml;
