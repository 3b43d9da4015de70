//! Boxes large futures without copying them.

pub use wharf_sandbox::boxed;
