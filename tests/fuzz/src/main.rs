//! One target under libFuzzer: `WHARF_FUZZ_TARGET` names it. `cargo xtask check fuzz` builds and runs this.

#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = std::env::var("WHARF_FUZZ_TARGET").unwrap_or_default();
    let found = fuzz::TARGETS.iter().find(|(name, _)| *name == wanted);
    found.map_or(fuzz::nothing, |(_, target)| *target)
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| (*TARGET)(data));
