//! All defaults. The bounds on how much runs at once depend on the number of cores.

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
pub fn total_memory_mib(total_concurrency: usize) -> usize {
    (32 * total_concurrency).max(2048)
}

/// The memory that wharf itself may use for the code and lists of plugins and the messages of clients.
pub const TOTAL_HOST_MEMORY_MIB: usize = 1024;
/// The address space of all compiling processes together.
pub const COMPILE_MEMORY_MIB: usize = 4096;
pub const COMPILE_TIMEOUT_MS: u64 = 120_000;

pub const LISTEN: &str = "127.0.0.1:7300";
pub const ADMIN_LISTEN: &str = "127.0.0.1:9464";
pub const CONNECTIONS: usize = 4096;
pub const SESSIONS: usize = 1024;
pub const SESSION_IDLE_MS: u64 = 3_600_000;
pub const SESSION_LIFETIME_S: u64 = 7 * 24 * 3600;
pub const LISTENS: usize = 1024;
pub const DRAIN_S: u64 = 30;
pub const SOCKET_MODE: u32 = 0o660;

pub const MESSAGE_KIB: usize = 8192;
pub const PAGE_ITEMS: usize = 1000;

pub const TIMEOUT_MS: u64 = 30_000;
pub const OUTPUT_KIB: usize = 4096;
/// The built-in plugin files reads pictures, and those of today's cameras are larger than the default allows.
pub const FILES_OUTPUT_KIB: usize = 16_384;

pub const HTTP_REQUESTS: usize = 100;
pub const HTTP_AT_ONCE: usize = 8;
pub const HTTP_IN_KIB: usize = 16_384;
pub const HTTP_OUT_KIB: usize = 4096;

pub const TELEMETRY_SAMPLE: f64 = 0.01;
pub const TELEMETRY_METRICS_MS: u64 = 60_000;

pub const AUDIT_ROTATE_MIB: usize = 64;
pub const AUDIT_KEEP: usize = 8;

pub const TOTAL_TASKS: usize = 1024;
pub const TASK_TIMEOUT_MS: u64 = 600_000;
pub const TASK_TTL_MS: u64 = 600_000;

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
            assert_eq!(total_memory_mib(total_concurrency), memory);
        }
    }
}
