//! The file of the audit log and the older files beside it: `audit.jsonl`, then `audit.jsonl.1`, which was rotated away last, and so
//! on. Lines are only ever added to the first. One process writes it, which holds a lock on `audit.jsonl.lock`.

#![expect(clippy::disallowed_methods, reason = "the audit log is written and read here")]

use std::{
    ffi::OsString,
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
use crate::{
    base::{
        guard::{check_trusted_directory, check_trusted_file},
        paths::FileId,
    },
    config::Audit,
};

/// How much of a file's end is read at first to find its last line.
const TAIL_BYTES: u64 = 64 << 10;

/// The file that lines are added to.
pub struct LogFile {
    path: PathBuf,
    keep: usize,
    file: Arc<File>,
    id: FileId,
    /// How long it is, as far as it was written as a whole.
    pub length: u64,
    /// Whether a write failed half-way, and what it left could not be taken away.
    ragged: bool,
    lock: Option<File>,
}

/// A file that was opened, and what was found in it.
pub struct Opened {
    pub file: LogFile,
    /// The end of the chain so far.
    pub head: Head,
    /// Where an unfinished line was put, and how long it was.
    pub torn: Option<(PathBuf, usize)>,
}

/// Whether lines still go to the same file.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    Same,
    /// Somebody has moved or removed it, so a new one was made.
    Anew,
}

impl LogFile {
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
                ensure!(last.is_some() || is_ours(&torn), "{}: is no audit log; name another file", path.display());
                Some((put_aside(path, &file, &torn).with_context(unusable)?, torn.len()))
            }
        };
        let head = match last {
            Some(last) => Head::of_line(&last).with_context(|| {
                format!("{}: its last line is none of an audit log; move the file away", path.display())
            })?,
            None => head_of_older(path)?,
        };
        let metadata = file.metadata()?;
        let file = Self {
            path: path.clone(),
            keep: config.keep,
            id: FileId::of(&metadata),
            length: metadata.len(),
            file: Arc::new(file),
            ragged: false,
            lock: Some(lock),
        };
        Ok(Opened { file, head, torn })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds whole lines. If that fails, none of them is there.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.ragged {
            self.file.set_len(self.length)?;
            self.ragged = false;
        }
        if let Err(error) = (&*self.file).write_all(lines) {
            self.ragged = self.file.set_len(self.length).is_err();
            return Err(error);
        }
        self.length += lines.len() as u64;
        Ok(())
    }

    /// The file itself, to be synced while others write.
    pub fn handle(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Lets others write the log. Nothing is written from then on.
    pub fn unlock(&mut self) {
        self.lock = None;
    }

    /// Makes sure that the file is still where it should be.
    pub fn place(&mut self) -> io::Result<Place> {
        match FileId::at(&self.path) {
            Some(id) if id == self.id => Ok(Place::Same),
            Some(_) => Err(io::Error::other("another file was put in its place; move that away")),
            None => self.begin_anew().map(|()| Place::Anew),
        }
    }

    /// Puts the file aside as the newest of the old ones, and begins another. What is older than all that are to be kept goes.
    pub fn rotate(&mut self) -> io::Result<()> {
        // After a failure half-way, the rest is to do.
        if FileId::at(&self.path) == Some(self.id) {
            for number in older(&self.path)?.into_iter().rev() {
                if number >= self.keep {
                    std::fs::remove_file(numbered(&self.path, number))?;
                } else {
                    std::fs::rename(numbered(&self.path, number), numbered(&self.path, number + 1))?;
                }
            }
            std::fs::rename(&self.path, numbered(&self.path, 1))?;
        }
        self.begin_anew()
    }

    fn begin_anew(&mut self) -> io::Result<()> {
        let file = open(&self.path)?;
        let metadata = file.metadata()?;
        (self.id, self.length, self.ragged) = (FileId::of(&metadata), metadata.len(), false);
        self.file = Arc::new(file);
        File::open(self.path.parent().unwrap_or(Path::new("/")))?.sync_all()
    }
}

/// Makes the folder of the log, if only that is missing.
fn make_folder(path: &Path) -> Result<()> {
    let folder = path.parent().context("it has no folder")?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("{}: the folder of the audit log cannot be made", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Checks that nobody else can write the log.
pub fn check(config: &Audit) -> Result<()> {
    let path = &config.file;
    let folder = path.parent().context("it has no folder")?;
    if folder.exists() {
        check_trusted_directory(folder, "folder of the audit log")?;
    }
    if path.exists() { check_trusted_file(path, "audit log") } else { Ok(()) }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

fn lock(path: &Path) -> Result<File> {
    let own = with_suffix(path, ".lock");
    let lock = open(&own).with_context(|| format!("{}: cannot be opened", own.display()))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => bail!(
            "{}: another wharf writes this audit log; end that one first, or give each a `file` of its own in [audit]",
            path.display()
        ),
        Err(error) => Err(error).with_context(|| format!("{}: cannot be locked", own.display())),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(suffix);
    path.with_file_name(name)
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    with_suffix(path, &format!(".{number}"))
}

/// Whether there are lines of a log, in its file or in older ones.
pub fn has_lines(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0) || older(path).is_ok_and(|older| !older.is_empty())
}

/// The numbers of the older files, the newest first.
fn older(path: &Path) -> io::Result<Vec<usize>> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let prefix = with_suffix(path, ".").file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        // Only as this program writes them: no sign, no zeros before.
        let number =
            digits.and_then(|digits| digits.parse::<usize>().ok().filter(|number| number.to_string() == digits));
        numbers.extend(number.filter(|number| *number > 0));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// All files of a log that are there, the oldest first. They are opened from the newest to the oldest, so that one that is rotated
/// meanwhile is not missed.
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

/// The last whole line of a file, and what stands after it.
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

/// Whether an unfinished first line can be one of this log, so that a file of something else is not taken apart.
fn is_ours(torn: &[u8]) -> bool {
    const BEGINNING: &[u8] = b"{\"seq\":";
    let length = torn.len().min(BEGINNING.len());
    torn.get(..length) == BEGINNING.get(..length) || torn.iter().all(|byte| *byte == 0)
}

/// Moves an unfinished line from the end of a file into a file of its own.
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

/// The head of a chain whose newest file is empty: that of the newest old file with a line in it.
fn head_of_older(path: &Path) -> Result<Head> {
    for number in older(path)? {
        let own = numbered(path, number);
        check_trusted_file(&own, "audit log")?;
        if let (Some(last), _) = end(&File::open(&own)?)? {
            return Head::of_line(&last).with_context(|| {
                format!("{}: its last line is none of an audit log; move the file away", own.display())
            });
        }
    }
    Ok(Head::NONE)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;
    use crate::config::audit::{Arguments, OnFailure};

    fn config(folder: &Path) -> Audit {
        let (arguments, on_failure) = (Arguments::Digest, OnFailure::Refuse);
        Audit { file: folder.join("audit.jsonl"), arguments, on_failure, rotate_bytes: 1 << 20, keep: 2 }
    }

    fn line(head: &mut Head) -> Vec<u8> {
        let mut line = Vec::new();
        *head = head.append(b"\"event\":\"e\"", &mut line);
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
            assert_eq!(file.place().unwrap(), Place::Same);
        }
        assert_eq!(names(folder.path()), ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2", "audit.jsonl.lock"]);
        let all = open_all(&config.file).unwrap();
        let names: Vec<_> = all.iter().map(|(path, _)| path.extension().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["2", "1", "jsonl"], "the oldest first");
        assert_eq!(std::fs::metadata(&config.file).unwrap().mode() & 0o777, 0o600);
        // A rotation that ended half-way left no file.
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
            ("dear diary", "is no audit log"),
            ("dear diary\n", "its last line is none"),
            ("{\"seq\":0}\n", "its last line is none"),
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
        assert!(refusal(&deeper).contains("the folder of the audit log cannot be made"), "{}", refusal(&deeper));
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
        assert_eq!(file.place().unwrap(), Place::Anew);
        file.write(&line(&mut head)).unwrap();
        assert_eq!(file.place().unwrap(), Place::Same);
        assert!(std::fs::read_to_string(&config.file).unwrap().starts_with("{\"seq\":2,"));
        std::fs::rename(folder.path().join("elsewhere"), &config.file).unwrap();
        assert!(file.place().unwrap_err().to_string().contains("another file was put in its place"));
    }
}
