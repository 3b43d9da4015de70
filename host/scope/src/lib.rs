//! What one call of a plugin may access, its limits, and how a plugin is served that was not made for wharf: plain data, so that the crates
//! that decide it do not need the sandbox that obeys it.

#![deny(missing_docs)]

pub mod adapter;
pub mod braces;
pub mod changes;
mod denial;
mod directory;
mod fixed;
mod limits;
pub mod network;

use std::sync::Arc;

pub use denial::Denial;
pub use directory::{Directory, FileIdentity, identity_of};
pub use fixed::Fixed;
pub use limits::{Limits, MAX_COMPONENT_BYTES, MAX_INSTRUCTIONS_BYTES, MemoryLimit};

use network::Network;

/// Everything a call may reach beyond its own memory. The default is nothing.
#[derive(Clone, Default)]
pub struct Scope {
    /// The directories that are open to it.
    pub directories: Vec<Directory>,
    /// Its environment variables, by name. It has no others.
    pub environment: Vec<(String, String)>,
    /// Sends its HTTP requests. `None`: all of them are refused.
    pub network: Option<Arc<dyn Network>>,
    /// The clock and the random numbers that a test prescribes.
    pub fixed: Fixed,
}
