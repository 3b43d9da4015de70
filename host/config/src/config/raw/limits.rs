//! `[limits]`, and `limits` of one plugin.

use serde::Deserialize;

use super::number::{Calls, Count, Kib, Mebibytes, Mib, Millis, NONE, Number};
use crate::config::defaults::{CoreScaled, total_memory_bytes};

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The maximum number of calls of all plugins at once. Needs a restart.
    ///
    /// Default: `64`, or 16 for each core, up to 1024
    pub total_concurrency: Option<Count<NONE, 4096>>,
    /// The memory of all instances of plugins together. Needs a restart.
    ///
    /// Default: `2048`, or 32 for each of the calls at once
    pub total_memory_mib: Option<Mib<NONE>>,
    /// The memory that wharf itself uses for plugins and clients. Compiled code and lists get at most a half, the lists of one plugin an
    /// eighth, one session an eighth, and one client at most a half (docs/operations.md#memory-and-connections). Needs a restart.
    pub total_host_memory_mib: Mib<1024>,
    /// The time limit for compiling one plugin, longer on a busy machine. Needs a restart.
    pub compile_timeout_ms: Millis<120_000>,
    /// The maximum size of a client's message. Needs a restart.
    pub message_kib: Kib<8192>,
    /// The maximum number of entries on one page of a list.
    pub page_items: Count<1000, 100_000>,
    /// The maximum number of stored tasks. One client has at most three quarters, and its finished tasks are dropped in favour of clients
    /// with fewer. Needs a restart.
    pub total_tasks: Count<1024, 1_000_000>,
    /// The space in the state folder for what calls change in folders, which `wharf undo` takes back. Each is kept for at most seven days. 0
    /// keeps nothing. Needs a restart.
    pub undo_mib: Number<Mebibytes, 1024, 0, { 1 << 20 }>,
    /// The maximum number of calls of one plugin at once.
    ///
    /// Default: `16`, or 4 for each core, up to 256
    pub concurrency: Option<Count<NONE, 4096>>,
    /// The memory of one instance of a plugin. A call may write sixteen times as many bytes to files.
    ///
    /// Default: `64`, or four times the memory that the component starts with, up to 256
    pub memory_mib: Option<Mib<NONE>>,
    /// The time limit of one call.
    pub timeout_ms: Millis<30_000>,
    /// The maximum size of the result of one call. By default, that of the built-in plugin `files` is 16384, for pictures.
    pub output_kib: Kib<4096>,
    /// The maximum number of HTTP requests of one call.
    pub http_requests: Count<100, { 1 << 20 }>,
    /// The maximum number of HTTP requests of one call at once. Further requests wait up to 10 s.
    pub http_at_once: Count<8, 1024>,
    /// The maximum size of all bodies together that one call receives.
    pub http_in_kib: Kib<16_384>,
    /// The maximum size of all bodies together that one call sends.
    pub http_out_kib: Kib<4096>,
    /// The time limit of one run of a background call (a task).
    pub task_timeout_ms: Millis<600_000>,
    /// How long a task is stored, running or not, and the longest time that a client may request.
    pub task_ttl_ms: Millis<600_000>,
}

impl Limits {
    pub fn total_concurrency(&self) -> usize {
        self.total_concurrency.map_or_else(|| CoreScaled::for_this_machine().total_concurrency, Number::get)
    }

    pub fn total_memory_bytes(&self) -> usize {
        let default = || total_memory_bytes(self.total_concurrency());
        self.total_memory_mib.map_or_else(default, Number::get)
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PluginLimits {
    /// The maximum number of calls in a minute, for all callers together. Without this key, there is no limit.
    pub calls_per_minute: Option<Calls>,
    /// The maximum number of calls in an hour, for all callers together. Without this key, there is no limit.
    pub calls_per_hour: Option<Calls>,
    /// The maximum number of calls in a day, for all callers together. Without this key, there is no limit.
    pub calls_per_day: Option<Calls>,
    /// The maximum number of calls at once.
    ///
    /// Default: that of `[limits]`
    pub concurrency: Option<Count<NONE, 4096>>,
    /// The memory of one instance.
    ///
    /// Default: that of `[limits]`
    pub memory_mib: Option<Mib<NONE>>,
    /// The time limit of one call.
    ///
    /// Default: that of `[limits]`
    pub timeout_ms: Option<Millis<NONE>>,
}
