//! The commands of the binary.

#![forbid(unsafe_code)]

pub mod authoring;
pub mod cli;
pub mod setup;
