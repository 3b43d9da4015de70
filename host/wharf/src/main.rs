//! The `wharf` binary: reads the command line and runs the command.

use std::process::ExitCode;

/// The built-in plugins, as `build.rs` has deflated them.
static BUILT_IN: &[wharf_config::config::BuiltIn] = &include!(concat!(env!("OUT_DIR"), "/builtins.rs"));

wharf_sandbox::narrow_page_scans!();

/// Calls allocate and free much memory in small pieces, on any thread. jemalloc returns unused memory to the system within seconds, even
/// memory of threads that never run again. Without the feature, and on other systems than Linux, the default allocator is used.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The options of jemalloc, in its own format, which it reads when it starts. Freed memory counts as in use until it is used again or
/// returned to the system, so there is one arena per core instead of four, and thread caches hold few large blocks. Under a mix of greedy
/// clients, the peak was 245 MiB in use instead of 325, of which 128 were charged to clients.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
#[expect(unsafe_code, reason = "the only way to configure the allocator without the environment of the process")]
#[unsafe(export_name = "_rjem_malloc_conf")]
static ALLOCATOR_OPTIONS: &[u8] = b"background_thread:true,dirty_decay_ms:2000,muzzy_decay_ms:0,\
    percpu_arena:percpu,lg_tcache_max:16,tcache_nslots_large:4\0";

fn main() -> ExitCode {
    if let Some(compiled) = wharf_sandbox::compile_if_asked() {
        return compiled;
    }
    // `build.rs` passes on the level of optimisation.
    let is_for_trying = matches!(env!("WHARF_OPT_LEVEL"), "0");
    wharf_cli::cli::run(&wharf_cli::cli::Program { built_in: BUILT_IN, is_for_trying })
}
