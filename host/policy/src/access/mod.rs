//! Builds the scope of a call, the resources that it may use: opens the operator's directories and the client's roots and intersects them
//! with the grants.

#![expect(clippy::disallowed_methods, reason = "directories are opened here, below what the operator allows")]

pub mod approval;
pub mod call_roots;
pub mod capability;
pub mod closed;
pub mod grants;
pub mod open;
pub mod overlap;
pub mod protected;
pub mod registry;
pub mod rehearsal;
pub mod scope;
pub mod wants;
pub mod within;
