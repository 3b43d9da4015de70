//! The `wharf` binary: reads the command line and runs the command.

use std::process::ExitCode;

use clap::Parser;

/// Calls allocate and free much memory in small pieces, on any thread. jemalloc returns unused memory to the system within
/// seconds, even that of threads that do not run again. Elsewhere than on Linux the system's own allocator serves.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Read by the allocator when it starts; the format is jemalloc's. What was freed counts as in use until it is used again or given back,
/// so there is one arena for each core and not four, and each thread keeps little of what is large: under a mix of clients that take all
/// they can, 245 MiB were in use at the most instead of 325, of which 128 were charged.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the only way to configure the allocator without the environment of the process")]
#[unsafe(export_name = "_rjem_malloc_conf")]
static ALLOCATOR_OPTIONS: &[u8] = b"background_thread:true,dirty_decay_ms:2000,muzzy_decay_ms:0,\
    percpu_arena:percpu,lg_tcache_max:16,tcache_nslots_large:4\0";

fn main() -> ExitCode {
    if let Some(ended) = wharf_sandbox::compile_if_asked() {
        return ended;
    }
    wharf::cli::run(wharf::cli::Arguments::parse())
}
