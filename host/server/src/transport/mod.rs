//! Bytes to messages and back. Transports know nothing of plugins.

pub mod admission;
pub mod http;
pub mod pipe;
pub mod stdio;
