//! The operator's config, and the grants, roles and logins that it describes.

#![deny(clippy::large_futures)]
#![forbid(unsafe_code)]

pub mod access;
pub mod auth;
pub mod config;
pub mod lock;
pub mod profiles;
pub mod roles;
