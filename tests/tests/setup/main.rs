//! From nothing to a tool in a client: plugins that are in the binary, the configs of clients, and what `wharf doctor` finds.

#![expect(clippy::disallowed_methods, reason = "tests write the configs of clients")]
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]

mod builtins;
mod codes;
mod doctor;
mod edits;
mod install;
