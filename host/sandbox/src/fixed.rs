//! A fixed clock and seeded random numbers for tests, so that a guest behaves the same in every run.

use std::time::{Duration, SystemTime};

use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
use wasmtime_wasi::{
    WasiCtxBuilder,
    clocks::{HostWallClock, MonotonicClock},
};

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
    pub(crate) fn is_nothing(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn apply(self, wasi: &mut WasiCtxBuilder) {
        if let Some(now) = self.now {
            let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            wasi.wall_clock(Standing(since)).monotonic_clock(MonotonicClock::new());
        }
        if let Some(seed) = self.seed {
            // Three streams, so that reading from one does not change the others. This generator yields the same numbers on every platform
            // and in every version.
            let stream = |number| {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                random.set_stream(number);
                random
            };
            let mut seed = [0; 16];
            chacha20::rand_core::Rng::fill_bytes(&mut stream(2), &mut seed);
            wasi.secure_random(stream(0)).insecure_random(stream(1)).insecure_random_seed(u128::from_le_bytes(seed));
        }
    }
}

/// A clock that stands still.
struct Standing(Duration);

impl HostWallClock for Standing {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        self.0
    }
}
