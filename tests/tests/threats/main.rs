//! What hostile plugins, hostile clients and careless operators could do to the host around the sandbox: each thing is tried
//! on the real binary, with a client beside it that wants to work.
//!
//! Whatever is tried, the client beside it is answered, the memory in use stays within what the config says, and what is
//! refused is said. The table of all that is tried is docs/threats.md.

#![expect(clippy::disallowed_methods, reason = "tests write what wharf is to read; what they spawn ends with them")]
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "what was measured is for whoever runs it")]

mod beside;
mod clients;
mod compiler;
mod control;
mod greedy;
mod guests;
mod memory;
mod operators;
mod parts;
mod raw;
