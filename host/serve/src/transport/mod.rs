//! Turns bytes into messages and back. Transports call no plugin: they hand each request to `methods`.

pub mod admission;
pub mod http;
pub mod pipe;
pub mod stdio;
