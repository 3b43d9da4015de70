//! Runs work that takes milliseconds without holding up other tasks.

pub use wharf_sandbox::heavy::*;
