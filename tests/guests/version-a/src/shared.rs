//! Code that both versions share: waiting in a way that the test can observe.

use wharf_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
pub struct Slow {
    pub ms: u64,
}

/// Reports progress, so that the client knows the call is under way, then sleeps.
pub fn wait(call: &Call, args: &Slow) {
    call.progress(1.0, None, Some("under way"));
    std::thread::sleep(std::time::Duration::from_millis(args.ms));
}
