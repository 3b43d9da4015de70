//! Observability of a running wharf: its metrics, and the traces and metrics that it sends.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod collector;
mod dashboard;
mod metrics;
mod scrape;
mod traces;
mod web;

pub use collector::Collector;
pub use scrape::{Scraped, scrape};
pub use web::Web;
