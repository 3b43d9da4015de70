//! wharf as a service: TLS, how it ends, and what it says of itself.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod authority;
mod drain;
mod health;
mod http2;
mod tls;
