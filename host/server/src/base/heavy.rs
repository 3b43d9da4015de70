//! Work that takes milliseconds, and what counts as such.

/// Larger texts take milliseconds to read and write, and many times their size in memory.
pub const LARGE: usize = 64 * 1024;

/// Does what takes long for so many bytes without holding up the worker it runs on.
pub fn heavy<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > LARGE { tokio::task::block_in_place(work) } else { work() }
}
