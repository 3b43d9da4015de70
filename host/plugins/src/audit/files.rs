//! The log file and the rotated files next to it: `audit.jsonl`, then `audit.jsonl.1`, which was rotated most recently, and so on. Lines
//! are only appended to `audit.jsonl`. Only the process that holds a lock on `audit.jsonl.lock` writes it.

#![expect(clippy::disallowed_methods, reason = "the audit log is written and read here")]

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{FlockOperation, flock};

use super::chain::Head;
use wharf_base::{
    appended::{Appended, AtPath, open, with_suffix},
    guard::{check_trusted_directory, check_trusted_file},
    paths::FileId,
};
use wharf_config::config::Audit;

/// How much is first read from the end of a file to find its last line.
const TAIL_BYTES: u64 = 64 << 10;

/// The file to which lines are appended.
pub struct LogFile {
    file: Appended,
    keep: usize,
    lock: Option<File>,
}

/// An opened log file, and what was found in it.
pub struct Opened {
    pub file: LogFile,
    /// The end of the chain so far.
    pub head: Head,
    /// The file into which an unfinished line was moved, and the length of that line.
    pub torn: Option<(PathBuf, usize)>,
}

/// Whether the log file is still at its path.
#[derive(Debug, PartialEq, Eq)]
pub enum Presence {
    Same,
    /// The file was moved or removed, so a new one was created.
    Recreated,
}

impl LogFile {
    /// Opens the log file, or creates it, and locks it. An unfinished line at its end is moved to a separate file.
    pub fn open(config: &Audit) -> Result<Opened> {
        let path = &config.file;
        make_folder(path)?;
        check(config)?;
        let lock = lock(path)?;
        let unusable = || format!("{}: the audit log cannot be opened", path.display());
        let file = open(path).with_context(unusable)?;
        let (last, torn) = end(&file).with_context(unusable)?;
        let torn = match torn {
            torn if torn.is_empty() => None,
            torn => {
                ensure!(
                    last.is_some() || is_ours(&torn),
                    "{}: is not an audit log; set another `file` in [audit]",
                    path.display()
                );
                Some((put_aside(path, &file, &torn).with_context(unusable)?, torn.len()))
            }
        };
        let head = match last {
            Some(last) => Head::of_line(&last).with_context(|| {
                format!("{}: its last line is not a line of an audit log; move the file away", path.display())
            })?,
            None => head_of_older(path)?,
        };
        let file = Self { file: Appended::new(path, file)?, keep: config.keep, lock: Some(lock) };
        Ok(Opened { file, head, torn })
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the length of the file up to the last completely written line.
    pub fn length(&self) -> u64 {
        self.file.length()
    }

    /// Appends complete lines. If that fails, the file contains none of them.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write(lines)
    }

    /// Returns the file, so that it can be synced while other threads write.
    pub fn handle(&self) -> Arc<File> {
        self.file.handle()
    }

    /// Releases the lock, so that other processes can write the log. To be called after the last write.
    pub fn unlock(&mut self) {
        self.lock = None;
    }

    /// Checks that the file is still at its path. Creates a new one if it is missing; a different file at the path is an error.
    pub fn ensure_present(&mut self) -> io::Result<Presence> {
        match self.file.place() {
            AtPath::Same => Ok(Presence::Same),
            AtPath::Other => Err(io::Error::other("another file was put in its place; move that file away")),
            AtPath::Empty => self.reopen().map(|()| Presence::Recreated),
        }
    }

    /// Rotates the log: renames the file to the first numbered one and creates a new file. Removes numbered files beyond `keep`.
    pub fn rotate(&mut self) -> io::Result<()> {
        // If an earlier rotation failed half-way and the file was already renamed, only the new file must be created.
        if self.file.place() == AtPath::Same {
            let path = self.file.path();
            for number in older(path)?.into_iter().rev() {
                if number >= self.keep {
                    std::fs::remove_file(numbered(path, number))?;
                } else {
                    std::fs::rename(numbered(path, number), numbered(path, number + 1))?;
                }
            }
            std::fs::rename(path, numbered(path, 1))?;
        }
        self.reopen()
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.file.reopen()?;
        File::open(self.path().parent().unwrap_or(Path::new("/")))?.sync_all()
    }
}

/// Creates the folder of the log. Its parent must exist.
fn make_folder(path: &Path) -> Result<()> {
    let folder = path.parent().context("it has no folder")?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("{}: the folder of the audit log cannot be created", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Checks that no other user can write the log.
pub fn check(config: &Audit) -> Result<()> {
    let path = &config.file;
    let folder = path.parent().context("it has no folder")?;
    if folder.exists() {
        check_trusted_directory(folder, "folder of the audit log")?;
    }
    if path.exists() { check_trusted_file(path, "audit log") } else { Ok(()) }
}

fn lock(path: &Path) -> Result<File> {
    let own = with_suffix(path, ".lock");
    let lock = open(&own).with_context(|| format!("{}: cannot be opened", own.display()))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => bail!(
            "{}: another wharf writes this audit log; stop that one first, or set a different `file` in [audit] for each",
            path.display()
        ),
        Err(error) => Err(error).with_context(|| format!("{}: cannot be locked", own.display())),
    }
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    with_suffix(path, &format!(".{number}"))
}

/// Whether a log has lines, in its file or in rotated ones.
pub fn has_lines(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0) || older(path).is_ok_and(|older| !older.is_empty())
}

/// Returns the numbers of the rotated files, the newest first.
fn older(path: &Path) -> io::Result<Vec<usize>> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let prefix = with_suffix(path, ".").file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        // Accept a number only as this program writes it, without a sign or leading zeros.
        let number =
            digits.and_then(|digits| digits.parse::<usize>().ok().filter(|number| number.to_string() == digits));
        numbers.extend(number.filter(|number| *number > 0));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Opens all existing files of a log, and returns them oldest first. They are opened from the newest to the oldest, so that a rotation at
/// the same time hides none of them.
pub fn open_all(path: &Path) -> Result<Vec<(PathBuf, File)>> {
    let mut files: Vec<(FileId, PathBuf, File)> = Vec::new();
    let mut add = |path: PathBuf| -> io::Result<()> {
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        let id = FileId::of(&file.metadata()?);
        if files.iter().all(|(other, ..)| *other != id) {
            files.push((id, path, file));
        }
        Ok(())
    };
    let cannot = || format!("{}: cannot be read", path.display());
    add(path.to_owned()).with_context(cannot)?;
    for number in older(path).with_context(cannot)? {
        add(numbered(path, number)).with_context(cannot)?;
        add(numbered(path, number + 1)).with_context(cannot)?;
    }
    ensure!(!files.is_empty(), "{}: there is no such audit log", path.display());
    Ok(files.into_iter().rev().map(|(_, path, file)| (path, file)).collect())
}

/// Returns the last complete line of a file, and the bytes after it.
fn end(file: &File) -> io::Result<(Option<Vec<u8>>, Vec<u8>)> {
    let length = file.metadata()?.len();
    let mut read = TAIL_BYTES;
    loop {
        let from = length.saturating_sub(read);
        let mut bytes = Vec::new();
        let mut file = file;
        file.seek(SeekFrom::Start(from))?;
        file.take(length - from).read_to_end(&mut bytes)?;
        let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            if from == 0 {
                return Ok((None, bytes));
            }
            read = read.saturating_mul(4);
            continue;
        };
        let torn = bytes.split_off(last + 1);
        bytes.pop();
        match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(before) => return Ok((Some(bytes.split_off(before + 1)), torn)),
            None if from == 0 => return Ok((Some(bytes), torn)),
            None => read = read.saturating_mul(4),
        }
    }
}

/// Whether an unfinished first line can be the beginning of an audit log. A file with other contents is not modified.
fn is_ours(torn: &[u8]) -> bool {
    const BEGINNING: &[u8] = b"{\"seq\":";
    let length = torn.len().min(BEGINNING.len());
    torn.get(..length) == BEGINNING.get(..length) || torn.iter().all(|byte| *byte == 0)
}

/// Moves an unfinished line from the end of a file into a separate file.
fn put_aside(path: &Path, file: &File, torn: &[u8]) -> io::Result<PathBuf> {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(['-', ':'], "");
    let mut own = with_suffix(path, &format!(".torn-{now}"));
    let mut again = 1;
    let mut aside = loop {
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&own) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && again < 100 => {
                again += 1;
                own = with_suffix(path, &format!(".torn-{now}-{again}"));
            }
            opened => break opened?,
        }
    };
    aside.write_all(torn)?;
    aside.sync_all()?;
    file.set_len(file.metadata()?.len().saturating_sub(torn.len() as u64))?;
    file.sync_all()?;
    Ok(own)
}

/// Returns the head of a chain whose log file is empty, from the newest rotated file that contains a line.
fn head_of_older(path: &Path) -> Result<Head> {
    for number in older(path)? {
        let own = numbered(path, number);
        check_trusted_file(&own, "audit log")?;
        if let (Some(last), _) = end(&File::open(&own)?)? {
            return Head::of_line(&last).with_context(|| {
                format!("{}: its last line is not a line of an audit log; move the file away", own.display())
            });
        }
    }
    Ok(Head::NONE)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;
    use wharf_config::config::audit::{Arguments, OnFailure};

    fn config(folder: &Path) -> Audit {
        let (arguments, on_failure) = (Arguments::Digest, OnFailure::Refuse);
        Audit { file: folder.join("audit.jsonl"), arguments, on_failure, rotate_bytes: 1 << 20, keep: 2, replica: None }
    }

    fn line(head: &mut Head) -> Vec<u8> {
        let mut line = Vec::new();
        *head = head.append(b"", b"\"event\":\"e\"", &mut line);
        line
    }

    fn refusal(config: &Audit) -> String {
        LogFile::open(config).err().map(|error| format!("{error:#}")).unwrap_or_default()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_chain_goes_on_over_restarts_and_rotations() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let mut head = Head::NONE;
        for _ in 0..5 {
            let Opened { mut file, head: found, torn } = LogFile::open(&config).unwrap();
            assert_eq!((found, torn), (head, None));
            file.write(&line(&mut head)).unwrap();
            file.rotate().unwrap();
            assert_eq!(file.ensure_present().unwrap(), Presence::Same);
        }
        assert_eq!(names(folder.path()), ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2", "audit.jsonl.lock"]);
        let all = open_all(&config.file).unwrap();
        let names: Vec<_> = all.iter().map(|(path, _)| path.extension().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["2", "1", "jsonl"], "the oldest first");
        assert_eq!(std::fs::metadata(&config.file).unwrap().mode() & 0o777, 0o600);
        // An interrupted rotation leaves no log file.
        std::fs::remove_file(&config.file).unwrap();
        assert_eq!(LogFile::open(&config).unwrap().head, head);
    }

    #[test]
    fn what_was_torn_is_put_aside() {
        for (whole, torn, longer) in
            [(1, "{\"seq\":2,\"pr", 0), (0, "{\"se", 0), (2, "{\"seq\":3", 300_000), (1, "\0\0\0", 0), (0, "\0", 0)]
        {
            let folder = tempfile::tempdir().unwrap();
            let config = config(folder.path());
            let mut head = Head::NONE;
            let mut text: Vec<u8> = (0..whole).flat_map(|_| line(&mut head)).collect();
            let lines = text.clone();
            let torn = format!("{torn}{}", "x".repeat(longer));
            text.extend_from_slice(torn.as_bytes());
            std::fs::write(&config.file, &text).unwrap();
            let opened = LogFile::open(&config).unwrap();
            assert_eq!(opened.head, head, "{whole} {longer}");
            let (aside, bytes) = opened.torn.unwrap();
            assert_eq!((std::fs::read(&aside).unwrap(), bytes), (torn.clone().into_bytes(), torn.len()));
            assert_eq!(std::fs::read(&config.file).unwrap(), lines);
            assert!(aside.file_name().unwrap().to_str().unwrap().starts_with("audit.jsonl.torn-2"));
        }
    }

    #[test]
    fn what_is_no_log_of_ours_stays_as_it_is() {
        for (text, expected) in [
            ("dear diary", "is not an audit log"),
            ("dear diary\n", "its last line is not a line"),
            ("{\"seq\":0}\n", "its last line is not a line"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let config = config(folder.path());
            std::fs::write(&config.file, text).unwrap();
            assert!(refusal(&config).contains(expected), "{text}: {}", refusal(&config));
            assert_eq!(std::fs::read_to_string(&config.file).unwrap(), text);
        }
    }

    #[test]
    fn only_the_last_folder_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let inner = config(&folder.path().join("audit"));
        check(&inner).unwrap();
        LogFile::open(&inner).unwrap();
        assert_eq!(std::fs::metadata(folder.path().join("audit")).unwrap().mode() & 0o777, 0o700);
        let deeper = config(&folder.path().join("a/b"));
        assert!(refusal(&deeper).contains("the folder of the audit log cannot be created"), "{}", refusal(&deeper));
    }

    #[test]
    fn nobody_else_writes_it() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let first = LogFile::open(&config).unwrap();
        assert!(refusal(&config).contains("another wharf writes this audit log"), "{}", refusal(&config));
        drop(first);
        std::fs::set_permissions(&config.file, PermissionsExt::from_mode(0o622)).unwrap();
        assert!(refusal(&config).contains("others may write this audit log"), "{}", refusal(&config));
        std::fs::set_permissions(&config.file, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        assert!(refusal(&config).contains("others may write this folder of the audit log"), "{}", refusal(&config));
    }

    #[test]
    fn a_file_that_is_taken_away_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let (mut file, mut head) = (LogFile::open(&config).unwrap().file, Head::NONE);
        file.write(&line(&mut head)).unwrap();
        std::fs::rename(&config.file, folder.path().join("elsewhere")).unwrap();
        assert_eq!(file.ensure_present().unwrap(), Presence::Recreated);
        file.write(&line(&mut head)).unwrap();
        assert_eq!(file.ensure_present().unwrap(), Presence::Same);
        assert!(std::fs::read_to_string(&config.file).unwrap().starts_with("{\"seq\":2,"));
        std::fs::rename(folder.path().join("elsewhere"), &config.file).unwrap();
        assert!(file.ensure_present().unwrap_err().to_string().contains("another file was put in its place"));
    }
}
