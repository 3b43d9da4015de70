//! The `wharf` binary: reads the command line, runs the command, says what went wrong.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    wharf::cli::run(wharf::cli::Arguments::parse())
}
