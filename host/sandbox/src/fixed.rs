//! Time and chance as a test decides them, so that a guest says the same in every run.

use std::time::{Duration, SystemTime};

use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
use wasmtime_wasi::{
    WasiCtxBuilder,
    clocks::{HostWallClock, MonotonicClock},
};

/// What a test decides in place of the machine. The default decides nothing, and nobody but a test ever decides anything: with a
/// seed, what a guest takes for random is known to everybody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fixed {
    /// What the wall clock shows, all the time. The monotonic clock then begins at zero with each instance, but goes on, because guests
    /// that sleep wait for it.
    pub now: Option<SystemTime>,
    /// What all randomness is made of.
    pub seed: Option<u64>,
}

impl Fixed {
    /// Whether nothing is decided.
    pub(crate) fn is_nothing(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn apply(self, wasi: &mut WasiCtxBuilder) {
        if let Some(now) = self.now {
            let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            wasi.wall_clock(Standing(since)).monotonic_clock(MonotonicClock::new());
        }
        if let Some(seed) = self.seed {
            // Three streams, so that what a guest takes from one does not change the others. This generator gives the same everywhere
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
