//! `[limits]`, and `limits` of one plugin.

use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The maximum number of calls of all plugins at once. Needs a restart.
    ///
    /// Default: `64`, or 16 for each core, up to 1024
    pub total_concurrency: Option<usize>,
    /// The memory of all instances of plugins together. Needs a restart.
    ///
    /// Default: `2048`, or 32 for each of the calls at once
    pub total_memory_mib: Option<usize>,
    /// The memory that wharf itself uses for plugins and clients. Compiled code and lists get at most a half, the lists of one plugin an
    /// eighth, one session an eighth, and one client at most a half (docs/operations.md#memory-and-connections). Needs a restart.
    ///
    /// Default: `1024`
    pub total_host_memory_mib: Option<usize>,
    /// The address space of all processes that compile plugins at once. Needs a restart.
    ///
    /// Default: `4096`
    pub compile_memory_mib: Option<usize>,
    /// The time limit for compiling one plugin. Needs a restart.
    ///
    /// Default: `120000`
    pub compile_timeout_ms: Option<u64>,
    /// The maximum size of a client's message. Needs a restart.
    ///
    /// Default: `8192`
    pub message_kib: Option<usize>,
    /// The maximum number of entries on one page of a list.
    ///
    /// Default: `1000`
    pub page_items: Option<usize>,
    /// The maximum number of stored tasks. One client has at most three quarters, and its finished tasks are dropped in favour of clients
    /// with fewer. Needs a restart.
    ///
    /// Default: `1024`
    pub total_tasks: Option<usize>,
    /// The maximum number of calls of one plugin at once.
    ///
    /// Default: `16`, or 4 for each core, up to 256
    pub concurrency: Option<usize>,
    /// The memory of one instance of a plugin. A call may write sixteen times as many bytes to files.
    ///
    /// Default: `64`, or four times the memory that the component starts with, up to 256
    pub memory_mib: Option<usize>,
    /// The time limit of one call.
    ///
    /// Default: `30000`
    pub timeout_ms: Option<u64>,
    /// The maximum size of the result of one call.
    ///
    /// Default: `4096`
    pub output_kib: Option<usize>,
    /// The maximum number of HTTP requests of one call.
    ///
    /// Default: `100`
    pub http_requests: Option<usize>,
    /// The maximum number of HTTP requests of one call at once. Further requests wait up to 10 s.
    ///
    /// Default: `8`
    pub http_at_once: Option<usize>,
    /// The maximum size of all bodies together that one call receives.
    ///
    /// Default: `16384`
    pub http_in_kib: Option<usize>,
    /// The maximum size of all bodies together that one call sends.
    ///
    /// Default: `4096`
    pub http_out_kib: Option<usize>,
    /// The time limit of one run of a background call (a task).
    ///
    /// Default: `600000`
    pub task_timeout_ms: Option<u64>,
    /// How long a task is stored, running or not, and the longest time that a client may request.
    ///
    /// Default: `600000`
    pub task_ttl_ms: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PluginLimits {
    /// The maximum number of calls in a minute, for all callers together. Without this key, there is no limit.
    pub calls_per_minute: Option<u32>,
    /// The maximum number of calls in an hour, for all callers together. Without this key, there is no limit.
    pub calls_per_hour: Option<u32>,
    /// The maximum number of calls in a day, for all callers together. Without this key, there is no limit.
    pub calls_per_day: Option<u32>,
    /// The maximum number of calls at once.
    ///
    /// Default: that of `[limits]`
    pub concurrency: Option<usize>,
    /// The memory of one instance.
    ///
    /// Default: that of `[limits]`
    pub memory_mib: Option<usize>,
    /// The time limit of one call.
    ///
    /// Default: that of `[limits]`
    pub timeout_ms: Option<u64>,
    /// The maximum size of the result of one call.
    ///
    /// Default: that of `[limits]`; `16384` for `builtin = "files"`, if `[limits]` sets none
    pub output_kib: Option<usize>,
    /// The maximum number of HTTP requests of one call.
    ///
    /// Default: that of `[limits]`
    pub http_requests: Option<usize>,
    /// The maximum number of HTTP requests of one call at once. Further requests wait up to 10 s.
    ///
    /// Default: that of `[limits]`
    pub http_at_once: Option<usize>,
    /// The maximum size of all bodies together that one call receives.
    ///
    /// Default: that of `[limits]`
    pub http_in_kib: Option<usize>,
    /// The maximum size of all bodies together that one call sends.
    ///
    /// Default: that of `[limits]`
    pub http_out_kib: Option<usize>,
    /// The time limit of one run of a background call (a task).
    ///
    /// Default: that of `[limits]`
    pub task_timeout_ms: Option<u64>,
    /// How long a task is stored, running or not, and the longest time that a client may request.
    ///
    /// Default: that of `[limits]`
    pub task_ttl_ms: Option<u64>,
}
