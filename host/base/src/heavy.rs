//! Runs work that takes milliseconds without holding up other tasks.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Texts with more bytes than this take milliseconds to parse and write, and many times their size in memory.
pub const LARGE_TEXT_BYTES: usize = 64 * 1024;

/// Runs work on this many bytes. If it may take long and the runtime has several threads, this thread's other tasks are moved to
/// another thread first.
pub fn heavy<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let others = || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes > LARGE_TEXT_BYTES && others() { tokio::task::block_in_place(work) } else { work() }
}
