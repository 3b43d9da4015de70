//! Serves clients: sessions, the methods of the protocol, stdio and HTTP.

#![forbid(unsafe_code)]

pub mod client;
pub mod methods;
pub mod transport;
