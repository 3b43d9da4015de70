//! The two forms of archives: zip, for `.mcpb` and wheels, and tar with gzip, for npm. The same contents make the same bytes.

use std::io::Write;

use anyhow::{Context, Result, ensure};
use flate2::{
    Compression,
    write::{DeflateEncoder, GzEncoder},
};
use rawzip::{CompressionMethod, ZipArchiveWriter};

/// A file of an archive.
pub struct Entry {
    /// Its path in the archive, with `/`.
    pub path: String,
    pub contents: Vec<u8>,
    pub is_executable: bool,
}

impl Entry {
    pub fn file(path: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), contents: contents.into(), is_executable: false }
    }

    pub fn program(path: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        Self { is_executable: true, ..Self::file(path, contents) }
    }

    fn mode(&self) -> u32 {
        if self.is_executable { 0o755 } else { 0o644 }
    }
}

/// The bit of a mode for a regular file.
const REGULAR_FILE: u32 = 0o100_000;

/// Makes a zip archive. Files have no time, which readers show as 1980.
pub fn zip(entries: &[Entry]) -> Result<Vec<u8>> {
    let mut archive = ZipArchiveWriter::new(Vec::new());
    for entry in entries {
        let file = archive.new_file(entry.path.as_str()).compression_method(CompressionMethod::DEFLATE);
        // pip makes a program executable only if its mode says that it is a regular file.
        let mode = REGULAR_FILE | entry.mode();
        let (mut file, config) = file.unix_permissions(mode).start().with_context(|| entry.path.clone())?;
        let mut data = config.wrap(DeflateEncoder::new(&mut file, Compression::default()));
        data.write_all(&entry.contents)?;
        let (deflate, written) = data.finish()?;
        deflate.finish()?;
        file.finish(written)?;
    }
    Ok(archive.finish()?)
}

/// The size of a block of a tar archive.
const BLOCK: usize = 512;
/// The time of every file, that npm gives its own: 1985-10-26T08:15:00Z.
const TIME: u64 = 499_162_500;

/// Makes a tar archive (ustar), compressed with gzip.
pub fn tgz(entries: &[Entry]) -> Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    for entry in entries {
        gzip.write_all(&header(entry)?)?;
        gzip.write_all(&entry.contents)?;
        let padding = entry.contents.len().next_multiple_of(BLOCK) - entry.contents.len();
        gzip.write_all(&vec![0; padding])?;
    }
    gzip.write_all(&[0; 2 * BLOCK])?;
    Ok(gzip.finish()?)
}

/// Returns the header of a file: fields at fixed places, numbers as octal digits, and the sum of all bytes.
fn header(entry: &Entry) -> Result<[u8; BLOCK]> {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, field: &[u8]| {
        header
            .get_mut(at..at + field.len())
            .map(|place| place.copy_from_slice(field))
            .context("a field of the header is too long")
    };
    ensure!(entry.path.len() <= 100, "{}: too long a path for a package", entry.path);
    put(0, entry.path.as_bytes())?;
    put(100, format!("{:07o}\0", entry.mode()).as_bytes())?;
    put(108, b"0000000\0")?;
    put(116, b"0000000\0")?;
    put(124, format!("{:011o}\0", entry.contents.len()).as_bytes())?;
    put(136, format!("{TIME:011o}\0").as_bytes())?;
    // The sum counts itself as spaces.
    put(148, b"        ")?;
    put(156, b"0")?;
    put(257, b"ustar\x0000")?;
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let sum = format!("{sum:06o}\0 ");
    header.get_mut(148..156).context("a field of the header is too long")?.copy_from_slice(sum.as_bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_contents_make_the_same_archive() {
        let entries = || [Entry::program("package/wharf", vec![1; 700]), Entry::file("package/x", "")];
        assert_eq!(zip(&entries()).unwrap(), zip(&entries()).unwrap());
        assert_eq!(tgz(&entries()).unwrap(), tgz(&entries()).unwrap());
        assert!(tgz(&[Entry::file("x".repeat(101), "")]).is_err());
    }
}
