//! A fixed clock and seeded random numbers for tests, so that a guest behaves the same in every run.

use std::time::{Duration, SystemTime};

use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
use wasmtime_wasi::{
    WasiCtxBuilder,
    clocks::{HostWallClock, MonotonicClock},
};
use wharf_scope::Fixed;

/// Prescribes them to a guest.
pub(crate) fn prescribe(fixed: Fixed, wasi: &mut WasiCtxBuilder) {
    if let Some(now) = fixed.now {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        wasi.wall_clock(Standing(since)).monotonic_clock(MonotonicClock::new());
    }
    if let Some(seed) = fixed.seed {
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
