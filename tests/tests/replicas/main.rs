//! Several wharf processes behind one address, which share what they must through a real Redis server: any of them answers any request.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and sets up its files"
)]

mod charged;
mod common;
mod counted;
mod login;
mod partition;
mod redis_gone;
mod relayed;
mod replayed;
mod sessions;
mod tasks;
