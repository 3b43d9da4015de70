//! Fetches the components of plugins with `source`: from registries (OCI), URLs and files, into the store. Only commands that a person or a
//! pipeline starts do this; a wharf that serves reads the store and `wharf.lock`, and uses no network for its plugins.
//!
//! `web` sends requests and follows redirects, `registry` speaks the OCI distribution protocol, `challenge` reads what a registry asks for,
//! `manifest` is what registries store, `version` chooses among tags, `signatures` finds what is attached, `trust` checks it, `store` is
//! the folder of components, `push` publishes.

#![forbid(unsafe_code)]

mod challenge;
mod login;
mod manifest;
pub mod push;
mod registry;
pub mod release;
mod signatures;
pub mod store;
pub mod trust;
mod version;
mod web;

pub use manifest::{TITLE, VERSION};
pub use release::{Candidate, Fetched, Supply, annotations};
pub use version::parse as parse_version;
