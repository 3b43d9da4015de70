//! The `wharf` binary: reads the command line, runs the command, says what went wrong.

use std::process::ExitCode;

use clap::Parser;

/// Every call makes and drops many small things, on whichever thread it happens to be. What is no longer in use goes back to
/// the system within seconds, whichever thread had it and whether or not that thread runs again.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Read by the allocator when it starts; the format is jemalloc's.
#[expect(unsafe_code, reason = "the only way to configure the allocator without the environment of the process")]
#[unsafe(export_name = "_rjem_malloc_conf")]
static ALLOCATOR_OPTIONS: &[u8] = b"background_thread:true,dirty_decay_ms:5000,muzzy_decay_ms:0,lg_tcache_max:18\0";

fn main() -> ExitCode {
    if let Some(ended) = wharf_sandbox::compile_if_asked() {
        return ended;
    }
    wharf::cli::run(wharf::cli::Arguments::parse())
}
