//! Plugins made from existing MCP servers in Python, TypeScript or JavaScript, whose source stays as it is.
//!
//! A server that a command line or a config names, as a file, a package or the line that starts it without wharf ([`line`]), has a project in the cache,
//! keyed by the canonical path of its file or by the package ([`started`], [`project`]). It is built when it is first used, and again when its
//! source or the list of its packages has changed by content ([`inputs`], [`make`]), in confinement, by [`tools`] that all servers share.
//! `wharf new --from` makes a project of the person's own from it ([`adopt`]).

pub mod adopt;
mod build_files;
pub mod cache;
pub mod detached;
pub mod entry;
pub mod inputs;
pub mod line;
pub mod locks;
pub mod make;
pub mod outline;
pub mod project;
pub mod started;
mod tools;
