//! The defaults that the types of keys do not say. The bounds on how much runs at once depend on the number of cores.

use std::thread::available_parallelism;

/// The bounds that depend on the number of cores that the process may use.
#[derive(Debug, PartialEq, Eq)]
pub struct CoreScaled {
    pub total_concurrency: usize,
    pub concurrency: usize,
    pub in_flight: usize,
}

impl CoreScaled {
    pub fn for_this_machine() -> Self {
        Self::for_cores(available_parallelism().map_or(1, usize::from))
    }

    fn for_cores(cores: usize) -> Self {
        Self {
            total_concurrency: (16 * cores).clamp(64, 1024),
            concurrency: (4 * cores).clamp(16, 256),
            in_flight: (64 * cores).clamp(256, 4096),
        }
    }
}

/// The memory that all calls together may hold, given how many may run at once.
pub fn total_memory_bytes(total_concurrency: usize) -> usize {
    (32 * total_concurrency).max(2048) << 20
}

pub const LISTEN: &str = "127.0.0.1:7300";
pub const ADMIN_LISTEN: &str = "127.0.0.1:9464";
pub const CONNECTIONS: u64 = 4096;
pub const SOCKET_MODE: u32 = 0o660;

/// The built-in plugin files reads pictures, and those of today's cameras are larger than the default allows.
pub const FILES_OUTPUT_KIB: usize = 16_384;

pub const TELEMETRY_SAMPLE: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_with_the_machine_within_limits() {
        for (cores, total_concurrency, concurrency, in_flight, memory) in [
            (1, 64, 16, 256, 2048),
            (2, 64, 16, 256, 2048),
            (4, 64, 16, 256, 2048),
            (16, 256, 64, 1024, 8192),
            (512, 1024, 256, 4096, 32_768),
        ] {
            let expected = CoreScaled { total_concurrency, concurrency, in_flight };
            assert_eq!(CoreScaled::for_cores(cores), expected, "{cores} cores");
            assert_eq!(total_memory_bytes(total_concurrency), memory << 20);
        }
    }
}
