//! Bounded pools of places with a share for each party, for modules that do not otherwise use the sandbox.

pub use wharf_sandbox::places::*;
