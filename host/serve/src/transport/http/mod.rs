//! MCP over HTTP: Streamable HTTP, and its predecessor HTTP+SSE.

pub mod access_log;
pub mod admin;
pub mod body;
pub mod connections;
mod elsewhere;
pub mod endpoint;
pub mod entry;
pub mod forwarded;
mod front;
pub mod guard;
pub mod headers;
pub mod health;
pub mod listener;
pub mod listens;
mod login;
mod one_timer;
mod owner;
pub mod paced;
pub mod refused;
mod replica;
pub mod reply;
pub mod resume;
pub mod routes;
pub mod sessions;
#[cfg(target_os = "linux")]
mod sock_diag;
pub mod socket;
mod sse;
pub mod sse_legacy;
mod status;
pub mod tls;
mod unsent;
mod waits;
