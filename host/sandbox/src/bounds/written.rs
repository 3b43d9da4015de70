//! Bounds what a call writes to files: a number of bytes for each call, and a reserve of each file system, of bytes and of files, that no call
//! uses up, so that one plugin with a folder cannot stop all that needs to write there, such as the audit log. Both end the call.

use std::{
    fs::File,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// What a call may write, as a multiple of the memory that its instance may use.
const TIMES_MEMORY: u64 = 16;
/// The bytes of a file system that calls leave free. Of a small one, they leave this part.
const RESERVE_BYTES: u64 = 256 << 20;
const RESERVE_PART: u64 = 16;
/// The files that can still be made in a file system which calls leave free. Of a small one, they leave the same part.
const RESERVE_FILES: u64 = 16_384;
/// How many bytes a stream writes between two looks at what is free.
const LOOK_EVERY_BYTES: u64 = 1 << 20;

/// Why a call may not write to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotWritten {
    /// It has written as many bytes as it may.
    #[error(
        "it would write more than {} MiB to files in one call, {TIMES_MEMORY} times its limit of memory; `memory_mib` in its \
         [limits] raises both",
        .0 >> 20
    )]
    TooMuch(u64),
    /// The file system has no more bytes free than these, which stay free.
    #[error(
        "the file system that it writes to has no more than {} MiB left, which wharf keeps free; delete something there, or \
         give the plugin a folder on another one",
        .0 >> 20
    )]
    Reserve(u64),
    /// The file system can hold no more files than these, which stay free.
    #[error(
        "the file system that it writes to has room for no more than {0} files, which wharf keeps free; delete some there, or give the \
         plugin a folder on another one"
    )]
    Files(u64),
}

/// What a call has written to files.
pub(crate) struct Written {
    bytes: AtomicU64,
    most: u64,
}

impl Written {
    /// `memory_bytes`: the memory that the instance may use.
    pub(crate) fn new(memory_bytes: usize) -> Arc<Self> {
        Arc::new(Self { bytes: AtomicU64::new(0), most: (memory_bytes as u64).saturating_mul(TIMES_MEMORY) })
    }

    /// Begins another call.
    pub(crate) fn renew(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Counts bytes that are written to a file. `unseen`: how many have been written since what is free was last looked at; `None` before
    /// the first time.
    pub(crate) fn count(&self, file: &File, bytes: usize, unseen: &mut Option<u64>) -> Result<(), NotWritten> {
        let bytes = bytes as u64;
        if self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > self.most {
            return Err(NotWritten::TooMuch(self.most));
        }
        let since = unseen.map_or(LOOK_EVERY_BYTES, |since| since.saturating_add(bytes));
        *unseen = Some(since);
        if since >= LOOK_EVERY_BYTES {
            *unseen = Some(0);
            // A file system that does not tell what is free has no reserve; it refuses what it has no room for.
            if let Ok(system) = rustix::fs::fstatvfs(file) {
                let size = |blocks: u64| blocks.saturating_mul(system.f_frsize);
                keeps_files(system.f_favail, system.f_files)?;
                return keeps_reserve(size(system.f_bavail), size(system.f_blocks), bytes);
            }
        }
        Ok(())
    }
}

/// Checks that a file system of `whole` bytes, of which these are free, has its reserve when this many more are written.
fn keeps_reserve(free: u64, whole: u64, bytes: u64) -> Result<(), NotWritten> {
    let reserve = RESERVE_BYTES.min(whole / RESERVE_PART);
    // Some virtual file systems say that they have no blocks at all.
    if whole > 0 && free < reserve.saturating_add(bytes) { Err(NotWritten::Reserve(reserve)) } else { Ok(()) }
}

/// Checks that a file system that can hold `whole` files, of which these are free, has its reserve.
fn keeps_files(free: u64, whole: u64) -> Result<(), NotWritten> {
    let reserve = RESERVE_FILES.min(whole / RESERVE_PART);
    // Some have no limit, and say that they have none at all.
    if whole > 0 && free <= reserve { Err(NotWritten::Files(reserve)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_writes_no_more_than_it_may() {
        let file = tempfile::tempfile().unwrap();
        let written = Written::new(1 << 20);
        let mut unseen = None;
        for _ in 0..16 {
            assert_eq!(written.count(&file, 1 << 20, &mut unseen), Ok(()));
        }
        let refused = Err(NotWritten::TooMuch(16 << 20));
        assert_eq!(written.count(&file, 1, &mut unseen), refused);
        assert_eq!(written.count(&file, 1, &mut None), refused, "by whichever stream");
        written.renew();
        assert_eq!(written.count(&file, 1, &mut unseen), Ok(()));
    }

    #[test]
    fn a_part_of_a_file_system_stays_free() {
        let (mib, gib) = (1 << 20, 1 << 30);
        for (free, whole, bytes, reserve) in [
            (100 * gib, 200 * gib, mib, None),
            (257 * mib, 200 * gib, mib, None),
            (257 * mib - 1, 200 * gib, mib, Some(256 * mib)),
            (0, 200 * gib, mib, Some(256 * mib)),
            (5 * mib, 64 * mib, mib, None),
            (5 * mib - 1, 64 * mib, mib, Some(4 * mib)),
            (0, 0, mib, None),
        ] {
            let expected = reserve.map_or(Ok(()), |reserve| Err(NotWritten::Reserve(reserve)));
            assert_eq!(keeps_reserve(free, whole, bytes), expected, "{free} of {whole}");
        }
        for (free, whole, reserve) in [
            (0, 0, None),
            (17_000, 1 << 20, None),
            (16_384, 1 << 20, Some(16_384)),
            (10, 160, Some(10)),
            (11, 160, None),
        ] {
            let expected = reserve.map_or(Ok(()), |reserve| Err(NotWritten::Files(reserve)));
            assert_eq!(keeps_files(free, whole), expected, "{free} of {whole}");
        }
    }
}
