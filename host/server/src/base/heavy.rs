//! Work that takes milliseconds, and what counts as such.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Larger texts take milliseconds to read and write, and many times their size in memory.
pub const LARGE: usize = 64 * 1024;

/// Does what takes long for so many bytes without holding up the worker it runs on, if there are others.
pub fn heavy<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let others = || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes > LARGE && others() { tokio::task::block_in_place(work) } else { work() }
}
