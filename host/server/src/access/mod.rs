//! What a call may touch: the operator's grants and the client's roots, opened, intersected, and handed over as a scope.

pub mod grants;
pub mod roots;
pub mod scope;
