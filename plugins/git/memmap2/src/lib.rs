//! A replacement for the crate memmap2, for gix: WASI has no memory-mapped files, so a file is read into memory.

use std::{
    fs::File,
    io::{self, Error, ErrorKind, Read, Seek, SeekFrom},
    ops::Deref,
};

/// The bytes of a file at the time it was read.
pub struct Mmap(Vec<u8>);

impl Deref for Mmap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Mmap {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for Mmap {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} bytes", self.0.len())
    }
}

/// The options of a mapping. There are no options here.
#[derive(Default)]
pub struct MmapOptions;

impl MmapOptions {
    pub fn new() -> Self {
        Self
    }

    /// Reads the file.
    ///
    /// # Safety
    ///
    /// This function is safe; it is declared unsafe because memmap2's is.
    pub unsafe fn map_copy_read_only(&self, file: &File) -> io::Result<Mmap> {
        let bytes = file.metadata()?.len();
        let size = usize::try_from(bytes).map_err(|_| too_large(bytes))?;
        let mut content = Vec::new();
        content.try_reserve_exact(size).map_err(|_| too_large(bytes))?;
        // The position in the file is restored, because callers continue to read from it.
        let mut file = file;
        let at = file.stream_position()?;
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut content)?;
        file.seek(SeekFrom::Start(at))?;
        Ok(Mmap(content))
    }
}

fn too_large(bytes: u64) -> Error {
    let mib = bytes >> 20;
    Error::new(ErrorKind::OutOfMemory, format!("a file of {mib} MiB does not fit into this call's memory"))
}
