//! The second version: tools `version` and `slow` answer `b`, and there is an additional tool.

#![allow(clippy::disallowed_methods, reason = "a guest for tests sleeps and ends as it likes; no test does")]

use wharf_sdk::prelude::*;

const VERSION: &str = "b";

#[path = "../../version-a/src/shared.rs"]
mod shared;

use shared::Slow;

struct Plugin;

#[tools]
impl Plugin {
    /// Which version this is.
    fn version() -> String {
        VERSION.to_owned()
    }

    /// Which version this is, after a while.
    fn slow(call: &Call, args: Slow) -> String {
        shared::wait(call, &args);
        VERSION.to_owned()
    }

    /// Only this version has it.
    fn fresh() -> String {
        "fresh".to_owned()
    }
}
