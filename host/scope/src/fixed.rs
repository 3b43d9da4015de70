//! A fixed clock and seeded random numbers for tests, so that a guest behaves the same in every run.

use std::time::SystemTime;

/// The clock and the random numbers that a test prescribes. The default prescribes nothing. Only tests may prescribe anything: with a seed,
/// everybody can predict the guest's random numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fixed {
    /// The constant time of the wall clock. The monotonic clock then begins at zero with each instance, but advances, because guests that
    /// sleep wait for it.
    pub now: Option<SystemTime>,
    /// The seed of all random numbers.
    pub seed: Option<u64>,
}

impl Fixed {
    /// Whether nothing is prescribed.
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }
}
