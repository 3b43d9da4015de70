//! How long tests wait, and how long something may take.

use std::{sync::LazyLock, time::Duration};

/// The timeout of all waits in tests that are not about time.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Whether the wharf under test is optimised: one that `WHARF_BIN` names, as before a release, or one of a release build of the tests.
pub fn is_optimised() -> bool {
    !cfg!(debug_assertions) || std::env::var_os("WHARF_BIN").is_some()
}

/// What all bounds on time are multiplied by: the value of `WHARF_TEST_PATIENCE`, else 1 for an optimised wharf, and more for another.
static FACTOR: LazyLock<u32> = LazyLock::new(|| match std::env::var("WHARF_TEST_PATIENCE") {
    Ok(text) => text.parse().ok().filter(|factor| *factor > 0).expect("WHARF_TEST_PATIENCE is a number from 1"),
    Err(_) if is_optimised() => 1,
    Err(_) => 2,
});

/// Returns the bound on the time of what has to happen at once. A machine under load stays below it; what does not happen at once takes
/// much longer, such as the rest of a call or the timeout of a wait.
pub fn prompt() -> Duration {
    scaled(Duration::from_secs(5))
}

/// Returns a time that the speed of the machine matters for, as a bound for the wharf under test.
pub fn scaled(time: Duration) -> Duration {
    time * *FACTOR
}
