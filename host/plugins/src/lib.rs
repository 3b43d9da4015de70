//! Loads plugins and lists what they offer, and records what they do.

#![deny(clippy::large_futures)]
#![forbid(unsafe_code)]

pub mod approvals;
pub mod audit;
pub mod bridge;
pub mod observe;
pub mod plugins;
pub mod tasks;
pub mod telemetry;
