//! The first version: tools `version` and `slow` answer `a`.

#![allow(clippy::disallowed_methods, reason = "a guest for tests sleeps and ends as it likes; no test does")]

use wharf_sdk::prelude::*;

const VERSION: &str = "a";

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
}
