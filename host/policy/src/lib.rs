//! Who may do what: the grants of plugins and the roots of clients, which give the scope of each call; roles; logins; profiles.

#![deny(clippy::large_futures)]
#![forbid(unsafe_code)]

pub mod access;
pub mod auth;
pub mod profiles;
pub mod roles;
