//! The set of plugins: files noticed, loaded, asked for their lists, and published as one catalog after the other.

#![expect(clippy::disallowed_methods, reason = "plugins are found and opened here")]

pub mod announced;
pub mod catalog;
pub mod install;
pub mod library;
pub mod loader;
pub mod published;
pub mod snapshot;
pub mod status;
pub mod watcher;
