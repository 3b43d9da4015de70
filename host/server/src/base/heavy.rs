//! Runs work that takes milliseconds without holding up other tasks.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Texts with more bytes than this take milliseconds to read and write, and many times their size in memory.
pub const LARGE: usize = 64 * 1024;

/// Does work on so many bytes. If that may take long and the runtime has several threads, it hands this thread's other tasks to
/// another one first.
pub fn heavy<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let others = || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes > LARGE && others() { tokio::task::block_in_place(work) } else { work() }
}
