//! wharf as a service: TLS, graceful shutdown, probes and logs.

#![expect(clippy::disallowed_methods, reason = "tests write what wharf is to read; what they spawn ends with them")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod access;
mod authority;
mod certificates;
mod container;
mod drain;
mod health;
mod keeps;
mod systemd;
mod tls;
mod unix;
