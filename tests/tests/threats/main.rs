//! Attacks on the host by hostile plugins and hostile clients, and mistakes of operators: each is tested on the real binary, while another
//! client works.
//!
//! In each test, the other client is answered, memory use stays within the configured limits, and refusals are reported. All attacks are
//! listed in README.md.

#![expect(clippy::disallowed_methods, reason = "tests write what wharf is to read; what they spawn ends with them")]
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "tests print their measurements")]

mod bystander;
mod clients;
mod compiler;
mod control;
mod disk;
mod greedy;
mod guests;
mod memory;
mod named;
mod neighbours;
mod operators;
mod parts;
mod raw;
mod trees;
