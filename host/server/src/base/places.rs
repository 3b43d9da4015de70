//! Bounded places with a part for each taker, for rooms that know no sandbox.

pub use wharf_sandbox::places::*;
