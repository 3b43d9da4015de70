//! MCP over HTTP: Streamable HTTP, and its predecessor HTTP+SSE.

pub mod admin;
pub mod body;
pub mod connections;
pub mod endpoint;
pub mod entry;
pub mod guard;
pub mod headers;
pub mod listener;
mod login;
pub mod paced;
pub mod refused;
pub mod reply;
pub mod resume;
pub mod routes;
pub mod sessions;
pub mod sse_legacy;
