//! What a wharf that serves tells its user about itself, over a Unix socket that only this user can reach, and the page that shows what all
//! wharfs of the user tell (`wharf open`).

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod actions;
pub mod board;
pub mod files;
mod folder;
pub mod page;
pub mod socket;
pub mod state;
#[cfg(test)]
mod tests;
pub mod viewer;
