//! MCP over HTTP: Streamable HTTP, and its predecessor HTTP+SSE.

pub mod access_log;
pub mod admin;
pub mod body;
mod card;
pub mod connections;
pub mod endpoint;
pub mod entry;
pub mod front;
pub mod guard;
pub mod headers;
pub mod health;
pub mod http2;
pub mod listener;
pub mod listens;
mod login;
pub mod paced;
pub mod refused;
pub mod reply;
pub mod resume;
pub mod routes;
pub mod sessions;
mod sips;
pub mod socket;
pub mod sse_legacy;
mod status;
pub mod tls;
mod unsent;
