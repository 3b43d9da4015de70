//! From an empty home directory to a tool in a client: built-in plugins, the configs of clients, and the checks of `wharf check --machine`.

#![expect(clippy::disallowed_methods, reason = "tests write the configs of clients")]
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]

mod builtins;
mod by_flags;
mod codes;
mod install;
mod machine;
mod readme;
