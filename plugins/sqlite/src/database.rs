//! Access to the database file: locking, detection of concurrent changes, and recovery.
//!
//! Calls run in parallel, in separate instances, and WASI has no file locks. A call that changes the database holds a lock file. A call
//! that reads checks before and after reading that nobody changes the database, and otherwise reads again. A journal that is not empty
//! belongs to a change that is running or was interrupted. If a lock was taken over with it, the journal is that of a stopped call of this
//! plugin, and is rolled back; otherwise it belongs to another program.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read, Seek, SeekFrom, Write},
    path::PathBuf,
    rc::Rc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use kept::{Lock, Patience, at, random, with_suffix};
use rusqlite::Connection;
use wharf_sdk::{Error, Result};

use crate::{guard, log::Log, statement::said};

pub const PATIENCE: Patience =
    Patience { held: Duration::from_secs(5), stale: Duration::from_secs(10), waited: Duration::from_secs(20) };

const MAGIC: &[u8] = b"SQLite format 3\0";

pub struct Database {
    pub file: PathBuf,
    pub writable: bool,
    pub patience: Patience,
}

/// The state of the file. It differs after every change.
#[derive(PartialEq)]
struct Seen {
    length: u64,
    changed: Option<SystemTime>,
    /// The header of the file, unless the file is empty. It contains SQLite's change counter.
    begin: Option<[u8; 100]>,
    /// The state of the write-ahead log, unless it is empty or does not exist.
    log: Option<SeenLog>,
}

/// The state of a write-ahead log. It differs after every change of the log, and before pages of it that were not there are copied into the
/// database file.
#[derive(PartialEq)]
struct SeenLog {
    length: u64,
    changed: Option<SystemTime>,
    /// The header of the file, which differs after each time that the log begins again.
    begin: [u8; 32],
}

impl Seen {
    /// Whether the database is in WAL mode, in which changes are first written to a separate file.
    fn logs(&self) -> bool {
        self.begin.is_some_and(|begin| begin.get(18..20).is_some_and(|versions| versions.contains(&2)))
    }
}

impl Database {
    /// Runs `work` on a consistent state of the database. Runs it again if the database was changed meanwhile.
    pub fn read<T>(&self, work: impl Fn(&mut Connection) -> Result<T>) -> Result<T> {
        let began = Instant::now();
        loop {
            let before = self.settled(began)?;
            let opened = match &before {
                Some(Seen { begin: Some(_), log, .. }) => {
                    let log = if log.is_some() { self.log()? } else { None };
                    guard::reading(&self.file, log)
                }
                _ => Connection::open_in_memory(),
            };
            let done = opened.map_err(|error| said(&error)).and_then(|mut connection| work(&mut connection));
            if !self.disturbed()? && self.seen()? == before {
                return done;
            }
            if began.elapsed() > self.patience.waited {
                return Err(self.busy());
            }
        }
    }

    /// Runs `work`, which may change the database, under the lock.
    pub fn write<T>(&self, work: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        if !self.writable {
            return Err(Error::failed(format!(
                "this server has read-only access to {}; the operator can grant more, with `access = \"read-write\"`",
                self.file.display()
            )));
        }
        let lock = self.lock(Instant::now())?;
        // First roll back the journal of a stopped call. Once the lock that was taken over is released, the journal would count as that of
        // another program.
        if lock.inherited() && self.journal()? {
            self.roll_back(&lock)?;
        }
        let logs = self.seen()?.is_some_and(|seen| seen.logs());
        if logs {
            // Programs that have the database open in WAL mode have these files open.
            if self.exists("-wal")? || self.exists("-shm")? {
                return Err(self.unshared());
            }
            // Without a log, the mode is only these numbers, which SQLite writes too when it changes the mode. If the call is stopped, the
            // mode stays changed, and programs that want the other one set it again when they open the database.
            self.set_versions(&lock, 1)?;
        }
        let done = guard::writing(&self.file, &lock, |mut connection| {
            let done = work(&mut connection);
            drop(connection);
            done
        });
        let counts = lock.counts();
        if self.journal()? {
            lock.leave();
        } else if logs {
            self.set_versions(&lock, 2)?;
        }
        match done.map_err(|error| said(&error)).and_then(|done| done) {
            Err(Error::Failed(_)) if !counts => {
                Err(Error::failed("the disk was too slow, and nothing was changed; try again"))
            }
            done => done,
        }
    }

    /// Waits until nobody changes the database, and rolls back the change of a call that was stopped.
    fn settled(&self, began: Instant) -> Result<Option<Seen>> {
        while self.disturbed()? {
            if began.elapsed() > self.patience.waited {
                return Err(self.busy());
            }
            // Most changes end soon, so a reader waits for a while before it tries to take the lock over.
            if !self.writable || began.elapsed() < self.patience.stale / 10 {
                pause();
                continue;
            }
            let lock = self.lock(began)?;
            if self.journal()? {
                self.roll_back(&lock)?;
            }
        }
        self.seen()
    }

    /// Takes the lock, and waits until no other program changes the database.
    fn lock(&self, began: Instant) -> Result<Rc<Lock>> {
        loop {
            let lock = Lock::take(&self.file, self.patience)?;
            if lock.inherited() || !self.journal()? {
                return Ok(Rc::new(lock));
            }
            drop(lock);
            if began.elapsed() > self.patience.waited {
                return Err(self.busy());
            }
            pause();
        }
    }

    /// Rolls back an interrupted change. SQLite does so as soon as it reads anything.
    fn roll_back(&self, lock: &Rc<Lock>) -> Result<()> {
        let done = guard::writing(&self.file, lock, |connection| {
            connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))
        });
        if self.journal()? {
            lock.leave();
        }
        done.and_then(|done| done).map_err(|error| said(&error))
    }

    /// Whether somebody is changing the database, or was interrupted while changing it.
    fn disturbed(&self) -> Result<bool> {
        let lock = with_suffix(&self.file, ".lock");
        let locked = lock.try_exists().map_err(|error| at(&lock, &error))?;
        Ok(locked || self.journal()?)
    }

    /// Whether there is an active journal. Some programs leave an inactive one: empty, or with a zeroed header.
    fn journal(&self) -> Result<bool> {
        let journal = with_suffix(&self.file, "-journal");
        let mut first = [0];
        match File::open(&journal).and_then(|mut file| file.read(&mut first)) {
            Ok(length) => Ok(length > 0 && first != [0]),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(at(&journal, &error)),
        }
    }

    fn exists(&self, suffix: &str) -> Result<bool> {
        let file = with_suffix(&self.file, suffix);
        file.try_exists().map_err(|error| at(&file, &error))
    }

    /// Writes the version numbers of the format: 2 for WAL mode, 1 for the others.
    fn set_versions(&self, lock: &Lock, version: u8) -> Result<()> {
        if !lock.keep() {
            return Err(Error::failed("the disk was too slow, and nothing was changed; try again"));
        }
        let set = || {
            let mut file = File::options().write(true).open(&self.file)?;
            file.seek(SeekFrom::Start(18))?;
            file.write_all(&[version; 2])?;
            file.sync_all()
        };
        set().map_err(|error| at(&self.file, &error))
    }

    /// Reads the write-ahead log.
    fn log(&self) -> Result<Option<Log>> {
        let log = with_suffix(&self.file, "-wal");
        match File::open(&log).and_then(Log::of) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map_err(|error| at(&log, &error)),
        }
    }

    /// Returns the state of the write-ahead log, unless it is empty or does not exist.
    fn seen_log(&self) -> Result<Option<SeenLog>> {
        let log = with_suffix(&self.file, "-wal");
        let seen = || {
            let mut file = File::open(&log)?;
            let found = file.metadata()?;
            let mut begin = [0; 32];
            file.read_exact(&mut begin)?;
            std::io::Result::Ok(SeenLog { length: found.len(), changed: found.modified().ok(), begin })
        };
        match seen() {
            Ok(seen) => Ok(Some(seen)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) => Ok(None),
            Err(error) => Err(at(&log, &error)),
        }
    }

    fn seen(&self) -> Result<Option<Seen>> {
        let told = |error| at(&self.file, &error);
        match fs::symlink_metadata(&self.file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(told(error)),
            // The lock file's name is derived from the database's, so two names of one database would have two locks.
            Ok(found) if found.is_symlink() => {
                return Err(Error::failed(format!(
                    "{} is a link; the operator can name the file that it leads to",
                    self.file.display()
                )));
            }
            Ok(_) => {}
        }
        let mut file = File::open(&self.file).map_err(told)?;
        let found = file.metadata().map_err(told)?;
        let mut begin = [0; 100];
        let begin = match file.read_exact(&mut begin) {
            Ok(()) if begin.starts_with(MAGIC) => Some(begin),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof && found.len() == 0 => None,
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(told(error)),
            _ => return Err(Error::failed(format!("{} is not an SQLite database", self.file.display()))),
        };
        let mut seen = Seen { length: found.len(), changed: found.modified().ok(), begin, log: None };
        if seen.logs() {
            seen.log = self.seen_log()?;
        }
        Ok(Some(seen))
    }

    fn busy(&self) -> Error {
        Error::failed(format!(
            "{} is being changed, or another program was interrupted while changing it; try again. If no program is changing it, open it \
             once with that program, which rolls back the change in {}",
            self.file.display(),
            with_suffix(&self.file, "-journal").display()
        ))
    }

    fn unshared(&self) -> Error {
        Error::failed(format!(
            "{} is in WAL mode, and another program has it open or ended without closing it. It can be read here meanwhile, but not changed: \
             close it in that program; if no program has it open, open and close it once",
            self.file.display()
        ))
    }
}

fn pause() {
    thread::sleep(Duration::from_millis(1 + random() % 20));
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::statement;

    fn database(folder: &TempDir, patience: Patience) -> Database {
        Database { file: folder.path().join("a b?%23.db"), writable: true, patience }
    }

    fn write(database: &Database, query: &str) -> Result<String> {
        database.write(|connection| statement::write(connection, query))
    }

    fn read(database: &Database, query: &str) -> Result<String> {
        database.read(|connection| statement::read(connection, query))
    }

    fn why(done: Result<String>) -> String {
        match done {
            Err(Error::Failed(why)) => why,
            Err(_) => panic!("another error"),
            Ok(done) => panic!("{done}"),
        }
    }

    fn names(folder: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn who_reads_and_writes_at_once_sees_and_loses_nothing() {
        let folder = TempDir::new().unwrap();
        let database = database(&folder, PATIENCE);
        write(&database, "CREATE TABLE t (a, b)").unwrap();
        write(&database, "INSERT INTO t VALUES (0, 0)").unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        // The change is in two rows, so that a reader could see half of it.
                        write(
                            &database,
                            "INSERT INTO t SELECT max(a) + 1, 1 FROM t UNION ALL SELECT max(a) + 1, -1 FROM t",
                        )
                        .unwrap();
                    }
                });
                scope.spawn(|| {
                    for _ in 0..10 {
                        assert_eq!(read(&database, "SELECT sum(b) AS b FROM t").unwrap(), r#"[{"b":0}]"#);
                    }
                });
            }
        });
        assert_eq!(read(&database, "SELECT count(*) AS n, max(a) AS m FROM t").unwrap(), r#"[{"n":81,"m":40}]"#);
        assert_eq!(names(&folder), ["a b?%23.db"]);
    }

    /// Returns a database, and a copy of it with its journal from the middle of a change.
    fn cut_off() -> (TempDir, Database) {
        let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let short = Patience { stale: Duration::from_millis(50), waited: Duration::from_millis(200), ..PATIENCE };
        let [whole, half] = [&first, &second].map(|folder| database(folder, short));
        write(&whole, "CREATE TABLE t (a)").unwrap();
        let many =
            "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 9000) INSERT INTO t SELECT 'before' FROM c";
        write(&whole, many).unwrap();
        let done = whole.write(|connection| {
            connection.execute_batch("PRAGMA cache_size = 2; BEGIN; UPDATE t SET a = 'after!'").unwrap();
            for more in ["", "-journal"] {
                fs::copy(with_suffix(&whole.file, more), with_suffix(&half.file, more)).unwrap();
            }
            Ok(())
        });
        assert!(done.is_ok());
        let text = fs::read(&half.file).unwrap();
        assert!(text.windows(6).any(|part| part == b"after!"), "nothing was changed before it was cut off");
        (second, half)
    }

    const ALL: &str = "SELECT a, count(*) AS n FROM t GROUP BY a";

    #[test]
    fn a_change_that_was_cut_off_is_rolled_back() {
        for first in [read, write] {
            let (folder, database) = cut_off();
            fs::write(with_suffix(&database.file, ".lock"), "gone").unwrap();
            let query = if std::ptr::fn_addr_eq(first, read as fn(&Database, &str) -> Result<String>) {
                ALL
            } else {
                "DELETE FROM t WHERE a = ''"
            };
            first(&database, query).unwrap();
            assert_eq!(read(&database, ALL).unwrap(), r#"[{"a":"before","n":9000}]"#);
            assert_eq!(names(&folder), ["a b?%23.db"]);
        }
    }

    #[test]
    fn what_another_program_was_doing_is_its_own_business() {
        let (folder, mut database) = cut_off();
        let before = fs::read(&database.file).unwrap();
        for writable in [true, false] {
            database.writable = writable;
            assert!(why(read(&database, ALL)).contains("a b?%23.db-journal"));
        }
        database.writable = true;
        assert!(why(write(&database, "DELETE FROM t")).contains("a b?%23.db-journal"));
        assert_eq!(fs::read(&database.file).unwrap(), before);
        assert_eq!(names(&folder), ["a b?%23.db", "a b?%23.db-journal"]);
    }

    #[test]
    fn who_is_silent_for_too_long_changes_nothing() {
        let folder = TempDir::new().unwrap();
        let whole = database(&folder, PATIENCE);
        write(&whole, "CREATE TABLE t (a)").unwrap();
        let late = database(&folder, Patience { held: Duration::ZERO, stale: Duration::from_millis(50), ..PATIENCE });
        assert!(why(write(&late, "INSERT INTO t VALUES (1)")).contains("too slow"));
        // The journal is empty.
        assert_eq!(names(&folder), ["a b?%23.db", "a b?%23.db-journal", "a b?%23.db.lock"]);
        let next = database(&folder, Patience { stale: Duration::from_millis(50), ..PATIENCE });
        assert_eq!(read(&next, "SELECT * FROM t").unwrap(), "[]");
        assert_eq!(write(&next, "INSERT INTO t VALUES (2)").unwrap(), r#"[{"affected_rows":1}]"#);
        assert_eq!(names(&folder), ["a b?%23.db"]);
    }

    #[test]
    fn a_database_in_wal_mode_is_read_while_it_is_open_and_written_when_it_is_closed() {
        let folder = TempDir::new().unwrap();
        let database = database(&folder, PATIENCE);
        let other = Connection::open(&database.file).unwrap();
        other.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (7)").unwrap();
        assert_eq!(read(&database, "SELECT * FROM t").unwrap(), r#"[{"a":7}]"#);
        // A transaction that is not committed, in the log.
        other.execute_batch("PRAGMA cache_size = 1; BEGIN").unwrap();
        for _ in 0..100 {
            other.execute("INSERT INTO t VALUES (randomblob(1000))", []).unwrap();
        }
        assert!(fs::metadata(with_suffix(&database.file, "-wal")).unwrap().len() > 50_000);
        assert_eq!(read(&database, "SELECT a FROM t").unwrap(), r#"[{"a":7}]"#);
        other.execute_batch("ROLLBACK; UPDATE t SET a = 8").unwrap();
        assert_eq!(read(&database, "SELECT a FROM t").unwrap(), r#"[{"a":8}]"#);
        // A log that begins again.
        other.execute_batch("PRAGMA wal_checkpoint(RESTART); UPDATE t SET a = 9").unwrap();
        assert_eq!(read(&database, "SELECT a FROM t").unwrap(), r#"[{"a":9}]"#);
        assert!(why(write(&database, "DELETE FROM t")).contains("another program has it open"));
        drop(other);
        assert_eq!(write(&database, "INSERT INTO t VALUES (10)").unwrap(), r#"[{"affected_rows":1}]"#);
        assert!(why(write(&database, "INSERT INTO t VALUES (x)")).contains("no such column"));
        assert_eq!(read(&database, "SELECT a FROM t").unwrap(), "[{\"a\":9},\n{\"a\":10}]");
        assert_eq!(names(&folder), ["a b?%23.db"]);
        let other = Connection::open(&database.file).unwrap();
        let mode: String = other.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
    }

    #[test]
    fn who_reads_while_another_program_writes_a_log_sees_whole_transactions() {
        let folder = TempDir::new().unwrap();
        let database = database(&folder, PATIENCE);
        let other = Connection::open(&database.file).unwrap();
        other
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 5; CREATE TABLE t (a, b, c)")
            .unwrap();
        let read_often = |times: usize| {
            for _ in 0..times {
                assert_eq!(read(&database, "SELECT coalesce(sum(a), 0) AS a FROM t").unwrap(), r#"[{"a":0}]"#);
                assert_eq!(read(&database, "PRAGMA integrity_check").unwrap(), r#"[{"integrity_check":"ok"}]"#);
            }
        };
        thread::scope(|scope| {
            let reader = scope.spawn(|| read_often(30));
            while !reader.is_finished() {
                let many =
                    "WITH c(x) AS (VALUES (1), (-1)) INSERT INTO t SELECT x, randomblob(700), randomblob(3000) FROM c";
                other.execute(many, []).unwrap();
                pause();
            }
            reader.join().unwrap();
        });
        read_often(1);
    }

    #[test]
    fn what_is_no_database_stays_as_it_is() {
        let folder = TempDir::new().unwrap();
        let mut database = database(&folder, PATIENCE);
        assert_eq!(read(&database, "SELECT name FROM sqlite_master").unwrap(), "[]");
        assert_eq!(names(&folder), [""; 0]);
        fs::write(&database.file, "a".repeat(200)).unwrap();
        for done in [read(&database, "SELECT 1"), write(&database, "CREATE TABLE t (a)")] {
            assert!(why(done).contains("is not an SQLite database"));
        }
        std::os::unix::fs::symlink(&database.file, folder.path().join("link")).unwrap();
        database.file = folder.path().join("link");
        assert!(why(read(&database, "SELECT 1")).contains("is a link"));
        database.writable = false;
        assert!(why(write(&database, "CREATE TABLE t (a)")).contains("this server has read-only access to"));
    }
}
