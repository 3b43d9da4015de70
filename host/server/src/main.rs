//! The `wharf` binary: reads the command line, runs the command, says what went wrong.

use std::process::ExitCode;

use clap::Parser;

/// Every call makes and drops many small things, on whichever thread it happens to be.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(ended) = wharf_sandbox::compile_if_asked() {
        return ended;
    }
    wharf::cli::run(wharf::cli::Arguments::parse())
}
