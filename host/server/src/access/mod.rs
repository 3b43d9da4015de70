//! What a call may touch: the operator's grants and the client's roots are opened, intersected and handed over as a scope.

#![expect(clippy::disallowed_methods, reason = "directories are opened here, below what the operator allows")]

pub mod approval;
pub mod capability;
pub mod grants;
pub mod open;
pub mod overlap;
pub mod rehearsal;
pub mod scope;
pub mod wants;
pub mod within;
