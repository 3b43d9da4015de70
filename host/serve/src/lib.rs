//! Serves clients: sessions, the methods of the protocol, stdio and HTTP.

#![deny(clippy::large_futures)]
#![forbid(unsafe_code)]

pub mod client;
pub mod methods;
pub mod transport;
