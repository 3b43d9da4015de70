//! The operator's config, read once into types that need no further checks, and its lock file.

#![deny(clippy::large_futures)]
#![forbid(unsafe_code)]

pub mod config;
pub mod lock;
