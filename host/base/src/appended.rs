//! A log file, to which lines are only appended: half a line never stays in it, and it can be moved away, by its owner to rotate it or by
//! other programs at any time. What happens then is decided by the log.

#![expect(clippy::disallowed_methods, reason = "the files of logs, which the operator names")]

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::paths::FileId;

/// The file to which lines are appended.
pub struct Appended {
    path: PathBuf,
    file: Arc<File>,
    id: FileId,
    /// The length of the file up to the last completely written line.
    length: u64,
    /// Whether a write failed half-way, and the file could not be truncated to `length`.
    has_partial_line: bool,
}

/// What is at the path of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtPath {
    /// The file itself.
    Same,
    /// Another file.
    Other,
    /// No file.
    Empty,
}

/// Opens a file to read it and to append to it. Creates it if it is missing, so that only wharf's user may read it.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

impl Appended {
    /// Appends to a file that [`open`] opened at this path.
    pub fn new(path: &Path, file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let (id, length) = (FileId::of(&metadata), metadata.len());
        Ok(Self { path: path.to_owned(), file: Arc::new(file), id, length, has_partial_line: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file, so that it can be synced while other threads write.
    pub fn handle(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Returns the length of the file up to the last completely written line.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Appends complete lines. If that fails, the file contains none of them: half a line would spoil the next one. A file can be truncated
    /// even on a full disk.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.has_partial_line {
            self.file.set_len(self.length)?;
            self.has_partial_line = false;
        }
        if let Err(error) = (&*self.file).write_all(lines) {
            self.has_partial_line = self.file.set_len(self.length).is_err();
            return Err(error);
        }
        self.length += lines.len() as u64;
        Ok(())
    }

    /// Returns what is at the path now.
    pub fn place(&self) -> AtPath {
        match FileId::at(&self.path) {
            Some(id) if id == self.id => AtPath::Same,
            Some(_) => AtPath::Other,
            None => AtPath::Empty,
        }
    }

    /// Appends to the file that is at the path now, or to a new one.
    pub fn reopen(&mut self) -> io::Result<()> {
        *self = Self::new(&self.path, open(&self.path)?)?;
        Ok(())
    }
}

/// Returns the path of a file next to this one, whose name continues with `suffix`.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(suffix);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_appended_to_wherever_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "one\n").unwrap();
        let mut log = Appended::new(&path, open(&path).unwrap()).unwrap();
        log.write(b"two\n").unwrap();
        assert_eq!((log.place(), log.length()), (AtPath::Same, 8));
        let aside = with_suffix(&path, ".1");
        std::fs::rename(&path, &aside).unwrap();
        assert_eq!(log.place(), AtPath::Empty);
        log.write(b"three\n").unwrap();
        std::fs::write(&path, "other\n").unwrap();
        assert_eq!(log.place(), AtPath::Other);
        log.reopen().unwrap();
        log.write(b"four\n").unwrap();
        assert_eq!((log.place(), log.length()), (AtPath::Same, 11));
        assert_eq!(std::fs::read_to_string(aside).unwrap(), "one\ntwo\nthree\n");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "other\nfour\n");
    }

    #[test]
    fn half_a_line_is_removed_before_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Appended::new(&path, open(&path).unwrap()).unwrap();
        log.write(b"one\n").unwrap();
        // As if a write had failed half-way, and truncating the file too.
        (&*log.file).write_all(b"tw").unwrap();
        log.has_partial_line = true;
        log.write(b"three\n").unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "one\nthree\n");
    }
}
