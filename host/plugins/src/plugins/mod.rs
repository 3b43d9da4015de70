//! The set of plugins: watches and loads their files, asks each plugin for its lists, and publishes the result as a catalog.

#![expect(clippy::disallowed_methods, reason = "plugins are found and opened here")]

pub mod announced;
pub mod catalog;
pub mod expected;
pub mod filter;
pub mod finder;
pub mod inbox;
pub mod install;
pub mod lacking;
pub mod library;
pub mod lists;
pub mod loader;
pub mod making;
pub mod published;
pub mod served;
pub mod snapshot;
pub mod status;
pub mod view;
pub mod watcher;
