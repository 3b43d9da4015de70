//! The configs of MCP clients: where each client has its own, how a server stands in it, and edits that change nothing else.
//!
//! All of this is text in and text out; who calls it reads and writes the files.

pub mod clients;
pub mod form;
pub mod format;
mod json;
#[cfg(test)]
mod tests;
mod toml;
mod yaml;
