//! Turns bytes into messages and back. Transports know nothing about plugins.

pub mod admission;
pub mod http;
pub mod pipe;
pub mod stdio;
