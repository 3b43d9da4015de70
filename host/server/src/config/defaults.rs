//! Every default there is.

pub const LISTEN: &str = "127.0.0.1:7300";
pub const SESSIONS: usize = 1024;
pub const LISTENS: usize = 1024;
pub const IN_FLIGHT: usize = 256;

pub const TOTAL_CONCURRENCY: usize = 64;
pub const TOTAL_MEMORY_MIB: usize = 2048;
pub const MESSAGE_KIB: usize = 8192;
pub const PAGE_ITEMS: usize = 1000;

pub const CONCURRENCY: usize = 16;
pub const MEMORY_MIB: usize = 64;
pub const TIMEOUT_MS: u64 = 30_000;
pub const OUTPUT_KIB: usize = 4096;

pub const TOTAL_TASKS: usize = 1024;
pub const TASK_TIMEOUT_MS: u64 = 600_000;
pub const TASK_TTL_MS: u64 = 600_000;
